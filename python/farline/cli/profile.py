"""`farline profile HOST`: a campaign over a grid of settings, watched, resumable."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.campaign_end import Job, Output, finish
from farline.cli.common import (
    Interruption,
    RunCommand,
    interruptible,
    target_options,
    target_text,
)
from farline.spec.options import grid_from_options, run_options

if TYPE_CHECKING:
    from farline.campaign.journal import Journal
    from farline.campaign.measure import Keeper
    from farline.campaign.plan import Plan
    from farline.campaign.settings import Campaign
    from farline.campaign.shell import MeasureOne
    from farline.cli.campaign_view import CampaignView

LAST = "last"
_PLAN_FLAGS = (
    "name", "repetitions", "min_repetitions", "max_repetitions", "relative_half_width",
    "confidence", "reference", "pause_s",
)  # fmt: skip


def _plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Flags for what stands under [campaign] in a plan."""
    for option in reversed(
        (
            click.option("--name", help="Name of the campaign [the plan file's]."),
            click.option("--repetitions", type=int, help="Run each setting so many times."),
            click.option("--min-repetitions", type=int, help="At least so many times [5]."),
            click.option("--max-repetitions", type=int, help="At most so many times [27]."),
            click.option(
                "--half-width",
                "relative_half_width",
                type=float,
                metavar="SHARE",
                help="Repeat until the mean is known to this share of it [0.05].",
            ),
            click.option("--confidence", type=float, help="Confidence of that interval [0.95]."),
            click.option("--reference", help="Reference setting: first or none [first]."),
            click.option("--pause", "pause_s", type=float, help="Seconds between two runs [0]."),
        )
    ):
        command = option(command)
    return command


@click.command(cls=RunCommand, short_help="Run a campaign over a grid of parameters.")
@target_options
@click.argument("plan_path", metavar="[PLAN.toml]", required=False)
@run_options(sweep=True)
@_plan_options
@click.option(
    "--resume",
    is_flag=False,
    flag_value=LAST,
    metavar="[CAMPAIGN]",
    help="Go on with a campaign that was interrupted; the last one if none is named.",
)
@click.option("--dry-run", is_flag=True, help="Print the runs and the time they will take.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON document.")
@click.option(
    "--report",
    "report_dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the report with its figures into this folder at the end.",
)
@click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where runs are kept [$FARLINE_STORE, or farline/store under $XDG_DATA_HOME].",
)
def command(
    host: str | None,
    client: str | None,
    port: int | None,
    plan_path: str | None,
    resume: str | None,
    dry_run: bool,
    as_json: bool,
    report_dir: Path | None,
    store_path: Path | None,
    **options: Any,
) -> int:
    """Profile the path to HOST: run every setting of a grid, in fair order, often enough.

    The grid comes from PLAN.toml, from options (lists such as 1,2,4 and ranges such as 64K..1M*2
    vary an option), or from both: options win. Each setting is repeated until its mean throughput
    is known well enough. Interrupt it whenever you like; --resume goes on.
    """
    output = Output(as_json, report_dir)
    _refuse_plan_as_host(host, plan_path)
    if resume is not None:
        _refuse_with_resume(plan_path, dry_run, options)
        named = target_text(host, client, port) if host or client else None
        return _resume(resume, named, store_path, output)
    target = target_text(host, client, port)
    plan = _plan(plan_path, options)
    campaign = _campaign(plan)
    if dry_run:
        return _print_dry_run(campaign, target, as_json)
    return _start(campaign, target, store_path, output)


def _refuse_plan_as_host(host: str | None, plan_path: str | None) -> None:
    if host is None or plan_path is not None or host.startswith("farline://"):
        return
    if host.endswith(".toml") or Path(host).is_file():
        raise click.UsageError(f"which host? {host} is a plan: write farline profile HOST {host}")


def _refuse_with_resume(plan_path: str | None, dry_run: bool, options: Mapping[str, Any]) -> None:
    said = any(value not in (None, (), False) for value in options.values())
    if plan_path is not None or dry_run or said:
        raise click.UsageError("--resume goes on with the plan that was kept: give no other")


def _plan(plan_path: str | None, options: dict[str, Any]) -> Plan:
    """The plan in the file, if any, with what the options say instead."""
    from farline.campaign.plan import Plan, load_plan, plan_from_document

    said = {key: options.pop(key) for key in _PLAN_FLAGS}
    plan = load_plan(Path(plan_path)) if plan_path else Plan()
    document = plan.document()
    given = {key: value for key, value in said.items() if value is not None}
    if "repetitions" in given:
        for key in ("min_repetitions", "max_repetitions"):
            document["campaign"].pop(key)
    document["campaign"].update(given)
    return plan_from_document(document).with_grid(grid_from_options(options))


def _campaign(plan: Plan) -> Campaign:
    from farline.campaign.settings import make_campaign
    from farline.tools.native import resolve_spec

    return make_campaign(plan, lambda spec: dict(resolve_spec(spec)))


def _start(campaign: Campaign, target: str, store_path: Path | None, output: Output) -> int:
    from farline.campaign.journal import campaign_lock, new_journal, write_journal
    from farline.campaign.machine import Machine
    from farline.store import Store
    from farline.tools.native import parse_target

    address = parse_target(target).address
    planned = Path(campaign.plan.store).expanduser() if campaign.plan.store else None
    store = Store(store_path or planned)
    journal = new_journal(campaign, address)
    with campaign_lock(store, campaign.id):
        write_journal(store, journal)
        return _go(Job(Machine(campaign), target, store), journal, output)


def _resume(name: str, target: str | None, store_path: Path | None, output: Output) -> int:
    from farline.campaign.journal import campaign_lock, last_unfinished, read_journal
    from farline.campaign.replay import done_in_store, replay
    from farline.store import Store

    store = Store(store_path, create=False)
    journal = last_unfinished(store) if name == LAST else read_journal(store, name)
    # What was done is read under the lock: nobody else may be adding to it.
    with campaign_lock(store, journal.campaign.id):
        machine = replay(journal.campaign, done_in_store(store, journal.campaign.id))
        return _go(Job(machine, target or journal.target, store), journal, output)


def _go(job: Job, journal: Journal, output: Output) -> int:
    """Runs a campaign to wherever it comes, and says how it came out."""
    from farline.campaign.behind import Behind
    from farline.campaign.journal import write_journal
    from farline.campaign.machine import Stop
    from farline.campaign.shell import Shell
    from farline.cli import campaign_text as text
    from farline.errors import AuthError, VersionError

    campaign = job.machine.campaign
    click.echo(text.campaign_line(campaign, journal.target), err=True)
    click.echo(text.rules_line(campaign), err=True)
    before = job.figures
    with interruptible() as asked, _view() as view:
        try:
            with Behind(job.store) as keeper:
                measure = _measurer(job, keeper, asked)
                stop = Shell(job.machine, measure, view.show, lambda: asked.count > 0).run()
        except (AuthError, VersionError) as error:
            stop = Stop("aborted", f"stopped: {error.message}", error.kind)
        if stop.reason == "finished":
            write_journal(job.store, journal, finished=True)
        job.store.compact()
    return finish(job, stop, output, measured_more=job.figures > before)


def _view() -> CampaignView:
    from farline.cli.campaign_view import LiveCampaign, PlainCampaign

    return LiveCampaign() if sys.stderr.isatty() else PlainCampaign()


def _measurer(job: Job, keeper: Keeper, asked: Interruption) -> MeasureOne:
    """Measures by the real engine; a second Ctrl-C reaches the run through `asked` too."""
    from farline.campaign.measure import measure
    from farline.errors import from_failure

    def one(
        spec: Mapping[str, Any], labels: Mapping[str, Any], should_stop: Callable[[], bool]
    ) -> Mapping[str, Any]:
        campaign = job.machine.campaign.id
        measured = measure(
            job.target, spec, keeper, should_stop=asked, campaign=campaign, labels=labels,
            keep=_concerns_a_run,
        )  # fmt: skip
        error = measured.record.get("error")
        if error and not _concerns_a_run(measured.record):
            raise from_failure(error)
        return measured.record

    return one


def _concerns_a_run(record: Mapping[str, Any]) -> bool:
    """Whether a record says something of its setting: a refused ticket would refuse every run."""
    from farline.campaign.measure import came_about

    kind = (record.get("error") or {}).get("kind")
    return came_about(record) or kind not in ("auth", "usage", "version")


def _print_dry_run(campaign: Campaign, target: str, as_json: bool) -> int:
    """The runs of a block in their order, how often, and the time they will take."""
    from farline.campaign.estimate import forecast
    from farline.campaign.machine import block_order
    from farline.cli import campaign_text as text
    from farline.tools.native import parse_target

    address = parse_target(target).address
    cells = block_order(campaign, 0, [setting.key for setting in campaign.settings])
    foreseen = forecast(campaign)
    if as_json:
        click.echo(json.dumps(_dry_document(campaign, address), indent=2))
        return 0
    click.echo(text.campaign_line(campaign, address))
    click.echo(f"{text.rules_line(campaign)}: {text.forecast_line(foreseen)}")
    click.echo("first block, in this order:")
    for number, cell in enumerate(cells, 1):
        setting = campaign.setting(cell.setting)
        kind = "reference: " if cell.reference else ""
        click.echo(f"{number:5}  {kind}{text.setting_text(setting.varied)}")
    return 0


def _dry_document(campaign: Campaign, address: str) -> dict[str, Any]:
    from dataclasses import asdict

    from farline.campaign.estimate import forecast
    from farline.campaign.machine import block_order

    cells = block_order(campaign, 0, [setting.key for setting in campaign.settings])
    return {
        "schema": 1,
        "campaign": campaign.id,
        "target": address,
        "seed": campaign.seed,
        "plan": campaign.plan.document(),
        "settings": [asdict(setting) for setting in campaign.settings],
        "first_block": [cell.labels for cell in cells],
        "forecast": asdict(forecast(campaign)),
    }
