"""`farline profile`: a campaign over a grid of settings, watched, resumable."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.api.path_here import inside_testbed, path_watch
from farline.api.tool_here import tool_chooser
from farline.campaign import emulated_path
from farline.campaign.emulated_path import check_settings
from farline.campaign.estimate import forecast
from farline.campaign.job import CampaignJob, begun_job, resumed_job, target_address
from farline.campaign.journal import last_unfinished, new_journal, read_journal, write_journal
from farline.campaign.machine import block_order
from farline.campaign.setting_text import setting_text
from farline.campaign.settings import make_campaign
from farline.cli import campaign_text as text
from farline.cli.campaign_end import Output, finish
from farline.cli.campaign_view import LiveCampaign, PlainCampaign
from farline.cli.common import (
    RunCommand,
    interruptible,
    result_options,
    target_options,
    target_text,
)
from farline.cli.profile_plan import has_grid, path_options, plan_options, read_plan
from farline.spec.options import run_options
from farline.spec.user_folders import expanded
from farline.store import Store
from farline.tools.native import resolve_spec

if TYPE_CHECKING:
    from farline.campaign.job import LinkControl
    from farline.campaign.plan import Plan
    from farline.campaign.settings import Campaign
    from farline.cli.campaign_view import CampaignView

LAST = "last"

_REPETITIONS = ("repetitions", "min_repetitions", "max_repetitions", "relative_half_width")
_NO_GRID = (
    "no grid is given: there is one setting only; vary an option with a list or a range, such as"
    " -P 1,2,4 or --transport tcp,udt, name a PLAN.toml, repeat the one setting with"
    " --repetitions 10, or measure once with farline probe"
)


@click.command(cls=RunCommand, short_help="Measure throughput over a grid of settings.")
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
    help="Resume an interrupted campaign (default: the last one).",
)
@click.option("--dry-run", is_flag=True, help="Print the planned runs and how long they will take.")
@result_options
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
    """Measure throughput to HOST for every setting of a grid, until each mean is precise.

    The grid comes from options, PLAN.toml, or both, where options take precedence. A list
    such as 1,2,4 or a range such as 64K..1M*2 varies an option. Each setting is repeated
    until the mean throughput is known to --half-width. --resume continues a campaign that
    was interrupted.

    Without HOST, farline emulates the path: --rtt 0,11.8ms,366ms brings up two hosts on this
    machine and measures at each round-trip time.
    """
    output = Output(as_json, report_dir)
    host, plan_path = _positions(host, client, plan_path)
    named = target_text(host, client, port) if host or client else None
    if resume is not None:
        _refuse_with_resume(plan_path, dry_run, options)
        return _resume(resume, named, store_path, output)
    is_repeated = any(options[name] is not None for name in _REPETITIONS)
    plan = read_plan(plan_path, options)
    topology = _topology_here(plan) if named else _over_testbed(plan, plan_path)
    if not (plan_path or is_repeated or has_grid(plan)):
        raise click.UsageError(_NO_GRID)
    campaign = _campaign(plan)
    if topology is not None:
        check_settings(campaign, topology)
    target = named or emulated_path.target_text(plan)
    if dry_run:
        return _print_dry_run(campaign, target_address(target), as_json)
    return _start(campaign, named, None if named else topology, store_path, output)


def _positions(
    host: str | None, client: str | None, plan_path: str | None
) -> tuple[str | None, str | None]:
    """Host and plan: a file where the host would stand is the plan of an emulated path."""
    if host is None or host.startswith("farline://"):
        return host, plan_path
    is_plan = host.endswith(".toml") or Path(host).is_file()
    if is_plan and plan_path is not None and not Path(plan_path).exists():
        raise click.UsageError(
            f"the host comes before the plan: farline profile {plan_path} {host}"
        )
    if is_plan and plan_path is None:
        return None, host
    return host, plan_path


def _topology_here(plan: Plan) -> Mapping[str, Any] | None:
    """The testbed around this process, where a plan with a host says something of its path."""
    if not plan.over_path:
        return None
    if not inside_testbed():
        raise click.UsageError(
            "an emulated path has its own hosts: leave out HOST, or run this on one of them "
            "(farline testbed exec)"
        )
    from farline.campaign.emulated_path import refuse_bed_options
    from farline.testbeds.link_setter import link_setter

    bed = link_setter(plan.place.link).bed
    topology: Mapping[str, Any] = bed.topology()
    refuse_bed_options(plan, bed.name, topology)
    return topology


def _over_testbed(plan: Plan, plan_path: str | None) -> Mapping[str, Any]:
    """The testbed that stands for the target where there is no host, checked."""
    if inside_testbed():
        raise click.UsageError("no host is named: inside a testbed, give one or a ticket")
    if not plan.over_path:
        said = f"{plan_path} has no table [path]: write farline profile HOST {plan_path}, or add"
        raise click.UsageError(
            "no host is named: "
            f"{said if plan_path else 'give one, or vary an emulated path with'} --rtt"
        )
    from farline.cli.emulated import planned_topology

    return planned_topology(plan)


def _refuse_with_resume(plan_path: str | None, dry_run: bool, options: Mapping[str, Any]) -> None:
    said = any(value not in (None, (), False) for value in options.values())
    if plan_path is not None or dry_run or said:
        raise click.UsageError("--resume continues with the stored plan: give no other plan")


def _campaign(plan: Plan) -> Campaign:
    return make_campaign(plan, lambda spec: dict(resolve_spec(spec)))


def _start(
    campaign: Campaign,
    target: str | None,
    topology: Mapping[str, Any] | None,
    store_path: Path | None,
    output: Output,
) -> int:
    """A new campaign: to the target, or without one over the testbed of its plan."""
    planned = expanded(campaign.plan.store) if campaign.plan.store else None
    store = Store(store_path or planned)
    address = target_address(target or emulated_path.target_text(campaign.plan))
    journal = new_journal(campaign, address, topology)
    if target is None:
        from farline.cli import emulated

        write_journal(store, journal)
        return emulated.run_over_testbed(journal, store, output)
    with begun_job(journal, target, store) as job:
        return _go(job, output)


def _resume(name: str, target: str | None, store_path: Path | None, output: Output) -> int:
    store = Store(store_path, create=False)
    journal = last_unfinished(store) if name == LAST else read_journal(store, name)
    if target is None and journal.target.startswith("testbed "):
        from farline.cli import emulated

        return emulated.run_over_testbed(journal, store, output)
    with resumed_job(journal, target, store) as job:
        return _go(job, output)


def _go(job: CampaignJob, output: Output) -> int:
    """Runs a campaign to wherever it comes, and says how it came out."""
    campaign = job.machine.campaign
    assert job.journal is not None
    click.echo(text.campaign_line(campaign, job.journal.target), err=True)
    click.echo(text.rules_line(campaign), err=True)
    before = job.figures
    path = path_watch(campaign.plan.place.link)
    with interruptible() as asked, _view() as view:
        stop = job.run(view.show, asked, path, _link_of(campaign), tool_chooser())
    return finish(job, stop, output, measured_more=job.figures > before)


def _view() -> CampaignView:
    return LiveCampaign() if sys.stderr.isatty() else PlainCampaign()


def _link_of(campaign: Campaign) -> LinkControl | None:
    """What sets the link between runs, if the plan says anything of it."""
    if not campaign.link_keys:
        return None
    from farline.testbeds.link_setter import link_setter

    return link_setter(campaign.plan.place.link, campaign.link_keys)


def _print_dry_run(campaign: Campaign, address: str, as_json: bool) -> int:
    """The runs of a block in their order, how often, and the time they will take."""
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
        click.echo(f"{number:5}  {kind}{setting_text(setting.varied)}")
    return 0


def _dry_document(campaign: Campaign, address: str) -> dict[str, Any]:
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
