"""`farline profile`: a campaign over a grid of settings, watched, resumable."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
from farline.cli.path_here import check_settings, inside_testbed, link_setter, path_watch
from farline.cli.profile_plan import path_options, plan_options, read_plan
from farline.spec.options import run_options

if TYPE_CHECKING:
    from farline.campaign.data_set import DataSet
    from farline.campaign.journal import Journal
    from farline.campaign.measure import Keeper
    from farline.campaign.plan import Plan
    from farline.campaign.settings import Campaign
    from farline.campaign.shell import MeasureOne
    from farline.cli.campaign_view import CampaignView
    from farline.cli.path_here import LinkSetter
    from farline.errors import FarlineError

LAST = "last"


@click.command(cls=RunCommand, short_help="Run a campaign over a grid of parameters.")
@target_options
@click.argument("plan_path", metavar="[PLAN.toml]", required=False)
@run_options(sweep=True)
@plan_options
@path_options
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

    Without HOST, an emulated path: --rtt 0,11.8ms,366ms brings up two hosts on this machine and
    runs over each round-trip time; options of the link have --link in front, a plan a table [path].

    The grid comes from PLAN.toml, from options (lists such as 1,2,4 and ranges such as 64K..1M*2
    vary an option), or from both: options win. Each setting is repeated until its mean throughput
    is known well enough. Interrupt it whenever you like; --resume goes on.
    """
    output = Output(as_json, report_dir)
    host, plan_path = _positions(host, client, plan_path)
    named = target_text(host, client, port) if host or client else None
    if resume is not None:
        _refuse_with_resume(plan_path, dry_run, options)
        return _resume(resume, named, store_path, output)
    plan = read_plan(plan_path, options)
    topology = _topology_here(plan) if named else _over_testbed(plan, plan_path)
    campaign = _campaign(plan)
    if topology is not None:
        check_settings(campaign, topology)
    target = named or _testbed_target(plan)
    if dry_run:
        return _print_dry_run(campaign, _address(target), as_json)
    return _start(campaign, named, None if named else topology, store_path, output)


def _positions(
    host: str | None, client: str | None, plan_path: str | None
) -> tuple[str | None, str | None]:
    """Host and plan: a file where the host would stand is the plan of an emulated path."""
    if host is None or plan_path is not None or host.startswith("farline://"):
        return host, plan_path
    if host.endswith(".toml") or Path(host).is_file():
        return None, host
    return host, None


def _topology_here(plan: Plan) -> Mapping[str, Any] | None:
    """The testbed around this process, where a plan with a host says something of its path."""
    from farline.cli.emulated import refuse_bed_options

    if not plan.over_path:
        return None
    if not inside_testbed():
        raise click.UsageError(
            "an emulated path has hosts of its own: leave HOST out,"
            " or run this on one of them (farline testbed exec)"
        )
    bed = link_setter(plan.place.link).bed
    topology: Mapping[str, Any] = bed.topology()
    refuse_bed_options(plan, bed.name, topology)
    return topology


def _over_testbed(plan: Plan, plan_path: str | None) -> Mapping[str, Any]:
    """The testbed that stands for the target where there is no host, checked."""
    from farline.cli.emulated import planned_topology

    if inside_testbed():
        raise click.UsageError("which host? Inside a testbed, name one, or give a ticket")
    if not plan.over_path:
        said = f"{plan_path} has no table [path]: write farline profile HOST {plan_path}, or add"
        raise click.UsageError(
            f"which host? {said if plan_path else 'Name one, or vary an emulated path with'} --rtt"
        )
    return planned_topology(plan)


def _testbed_target(plan: Plan) -> str:
    from farline.cli.emulated import target_text

    return target_text(plan)


def _address(target: str) -> str:
    from farline.tools.native import parse_target

    return target if target.startswith("testbed ") else parse_target(target).address


def _refuse_with_resume(plan_path: str | None, dry_run: bool, options: Mapping[str, Any]) -> None:
    said = any(value not in (None, (), False) for value in options.values())
    if plan_path is not None or dry_run or said:
        raise click.UsageError("--resume goes on with the plan that was kept: give no other")


def _campaign(plan: Plan) -> Campaign:
    from farline.campaign.settings import make_campaign
    from farline.tools.native import resolve_spec

    return make_campaign(plan, lambda spec: dict(resolve_spec(spec)))


def _start(
    campaign: Campaign,
    target: str | None,
    topology: Mapping[str, Any] | None,
    store_path: Path | None,
    output: Output,
) -> int:
    """A new campaign: to the target, or without one over the testbed of its plan."""
    from farline.campaign.journal import campaign_lock, new_journal, write_journal
    from farline.campaign.machine import Machine
    from farline.cli import emulated
    from farline.store import Store

    planned = Path(campaign.plan.store).expanduser() if campaign.plan.store else None
    store = Store(store_path or planned)
    address = _address(target or _testbed_target(campaign.plan))
    journal = new_journal(campaign, address, topology)
    if target is None:
        write_journal(store, journal)
        return emulated.run_over_testbed(journal, store, output)
    with campaign_lock(store, campaign.id):
        write_journal(store, journal)
        return _go(Job(Machine(campaign), target, store), journal, output)


def _resume(name: str, target: str | None, store_path: Path | None, output: Output) -> int:
    from farline.campaign.journal import campaign_lock, last_unfinished, read_journal
    from farline.campaign.replay import done_in_store, replay
    from farline.cli import emulated
    from farline.store import Store

    store = Store(store_path, create=False)
    journal = last_unfinished(store) if name == LAST else read_journal(store, name)
    if target is None and journal.target.startswith("testbed "):
        return emulated.run_over_testbed(journal, store, output)
    # What was done is read under the lock: nobody else may be adding to it.
    with campaign_lock(store, journal.campaign.id):
        machine = replay(journal.campaign, done_in_store(store, journal.campaign.id))
        return _go(Job(machine, target or journal.target, store), journal, output)


def _go(job: Job, journal: Journal, output: Output) -> int:
    """Runs a campaign to wherever it comes, and says how it came out."""
    from farline.campaign.behind import Behind
    from farline.campaign.data_set import data_set
    from farline.campaign.journal import write_journal
    from farline.campaign.machine import Stop
    from farline.campaign.shell import Shell
    from farline.cli import campaign_text as text
    from farline.errors import AuthError, VersionError

    campaign = job.machine.campaign
    click.echo(text.campaign_line(campaign, journal.target), err=True)
    click.echo(text.rules_line(campaign), err=True)
    before = job.figures
    files = data_set(campaign.plan.data, campaign.id)
    with interruptible() as asked, _link_of(campaign) as setter, files as data, _view() as view:
        try:
            with Behind(job.store) as keeper:
                measure = _measurer(job, keeper, asked, setter, data)
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


def _measurer(
    job: Job,
    keeper: Keeper,
    asked: Interruption,
    setter: LinkSetter | None,
    data: DataSet | None,
) -> MeasureOne:
    """Measures by the real engine; a second Ctrl-C reaches the run through `asked` too."""
    from farline.campaign.measure import measure
    from farline.errors import LimitError, SpecError, SystemFailure, from_failure

    campaign = job.machine.campaign
    watch = path_watch(campaign.plan.place.link)

    def one(
        spec: Mapping[str, Any], labels: Mapping[str, Any], should_stop: Callable[[], bool]
    ) -> Mapping[str, Any]:
        if setter is not None:
            try:
                setter.apply(campaign.setting(labels["setting"]).path)
            except (LimitError, SpecError, SystemFailure) as refusal:
                return _unmade(job, keeper, spec, labels, refusal)
        if data is not None:
            data.clear()
            spec = data.spec(spec)
        measured = measure(
            job.target, spec, keeper, should_stop=asked, campaign=campaign.id, labels=labels,
            keep=_concerns_a_run, path=watch,
        )  # fmt: skip
        error = measured.record.get("error")
        if error and not _concerns_a_run(measured.record):
            raise from_failure(error)
        return measured.record

    return one


def _unmade(
    job: Job,
    keeper: Keeper,
    spec: Mapping[str, Any],
    labels: Mapping[str, Any],
    error: FarlineError,
) -> Mapping[str, Any]:
    """A setting whose link cannot be had: a failed run, kept, so that a resume knows of it."""
    from farline.campaign.unmade import unmade_record

    record = unmade_record(_address(job.target), spec, error)
    keeper.append(record, {}, campaign=job.machine.campaign.id, labels=labels)
    return record


@contextmanager
def _link_of(campaign: Campaign) -> Iterator[LinkSetter | None]:
    """What sets the link between runs, if the plan says anything of it; put back at the end."""
    if not campaign.link_keys:
        yield None
        return
    setter = link_setter(campaign.plan.place.link, campaign.link_keys)
    try:
        yield setter
    finally:
        setter.restore()


def _concerns_a_run(record: Mapping[str, Any]) -> bool:
    """Whether a record says something of its setting: a refused ticket would refuse every run."""
    from farline.campaign.measure import came_about

    kind = (record.get("error") or {}).get("kind")
    return came_about(record) or kind not in ("auth", "usage", "version")


def _print_dry_run(campaign: Campaign, address: str, as_json: bool) -> int:
    """The runs of a block in their order, how often, and the time they will take."""
    from farline.campaign.estimate import forecast
    from farline.campaign.machine import block_order
    from farline.cli import campaign_text as text

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
