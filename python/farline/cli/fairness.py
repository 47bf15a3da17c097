"""`farline fairness`: how much a transfer takes from others on a shared line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.common import (
    RunCommand,
    interruptible,
    result_options,
    target_options,
    target_text,
)
from farline.cli.limits import RATE, SECONDS
from farline.cli.link_flags import host_cpus_option, link_flags, take_link_values
from farline.errors import FarlineError
from farline.spec.options import run_options, spec_from_options

if TYPE_CHECKING:
    from farline.campaign.contention.journal import ContentionJournal
    from farline.campaign.contention.outcome import Outcome
    from farline.campaign.contention.plan import Contender, ContentionPlan
    from farline.store import Store

EXPECTATION_CODE = 3
"""Exit code when all was measured and an expectation of the plan does not hold."""
_REFERENCE = "one-cubic-flow"
_SUBJECT = "transfer"
_OWN = (
    "background", "loads", "lead_s", "repetitions", "reference", "capacity_bps",
    "background_rtt_s", "testbed", "link", "host_cpus", "count_invalid", "name",
)  # fmt: skip


def _own_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Flags of the measurement itself."""
    for option in reversed(
        (
            click.option(
                "--background",
                metavar="SIDE",
                help="Send this beside the transfer, such as tcp:reno,streams=4 or udt:native"
                " (default tcp:cubic).",
            ),
            click.option(
                "--load",
                "loads",
                metavar="LIST",
                help="Apply these rates of background: shares of the line or rates, such as"
                " 10%..100%+10% (the default) or 20M,50M.",
            ),
            click.option(
                "--repetitions",
                type=int,
                metavar="N",
                help="Measure everything N times (default 3).",
            ),
            click.option(
                "--lead",
                "lead_s",
                type=SECONDS,
                help="Let the background run alone for this time first (default 2s).",
            ),
            click.option(
                "--reference/--no-reference",
                default=None,
                help="Measure one CUBIC flow in place of the transfer too, and compare the harm"
                " (default: on).",
            ),
            click.option(
                "--capacity",
                "capacity_bps",
                type=RATE,
                help="State the rate of the line to HOST (default: the most that was measured).",
            ),
            click.option("--name", help="Name the measurement (default: as the plan file)."),
        )
    ):
        command = option(command)
    return command


def _path_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Flags of the emulated line."""
    command = link_flags(prefix="link-", sweep=False)(command)
    for option in reversed(
        (
            click.option(
                "--testbed",
                metavar="PRESET|FILE|NAME",
                help="Emulate the line by this testbed (default dumbbell).",
            ),
            click.option(
                "--link", metavar="NAME", help="Share this link (default: the testbed's main link)."
            ),
            click.option(
                "--background-rtt",
                "background_rtt_s",
                type=SECONDS,
                help="Give the background this round-trip time (default: that of the transfer).",
            ),
            host_cpus_option,
            click.option(
                "--count-invalid",
                is_flag=True,
                default=None,
                help="Use trials even if the emulated path was not accurate.",
            ),
        )
    ):
        command = option(command)
    return command


@click.command(cls=RunCommand, short_help="Measure what a transfer takes from others on a line.")
@target_options
@click.argument("plan_path", metavar="[PLAN.toml]", required=False)
@_own_options
@run_options(sweep=False)
@_path_options
@click.option(
    "--resume",
    is_flag=False,
    flag_value="last",
    metavar="[NAME]",
    help="Resume an interrupted measurement, or show a finished one (default: the last one).",
)
@click.option(
    "--dry-run", is_flag=True, help="Print the planned trials and how long they will take."
)
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
    """Measure how a transfer shares a line with others, and how much it harms them.

    The transfer runs alone, background traffic runs alone at each load, then both run
    together. Without HOST, farline emulates the line (--link-rate 100Mbit --rtt 10ms) and
    its router counts what passes; with HOST, both go there and the receivers count. Run
    options apply to the transfer. PLAN.toml can compare several transfers.
    """
    from farline.api.contention import begun_journal, check_line
    from farline.cli.profile import _positions
    from farline.store import Store

    host, plan_path = _positions(host, client, plan_path)
    # What is said of options is said in a plan's words where there is one.
    click.get_current_context().params["plan_path"] = plan_path
    target = target_text(host, client, port) if host or client else None
    if resume is not None:
        if plan_path is not None or dry_run or _stated_any(options):
            raise click.UsageError("--resume continues with the stored plan: give no other plan")
        return _resume(resume, target, Store(store_path, create=False), as_json, report_dir)
    plan = _read_plan(plan_path, target, options)
    check_line(plan, target)
    if dry_run:
        return _print_dry_run(plan, target, as_json)
    store = Store(store_path)
    journal = begun_journal(plan, target, store)
    return _measured(journal, target, store, as_json, report_dir)


def _stated_any(options: Mapping[str, Any]) -> bool:
    return any(value not in (None, (), False) for value in options.values())


def _read_plan(
    plan_path: str | None, target: str | None, options: dict[str, Any]
) -> ContentionPlan:
    """The plan in the file, or the one that the options are."""
    from dataclasses import replace

    from farline.campaign.contention.plan import load_plan

    link = take_link_values(options)
    own = {name: options.pop(name) for name in _OWN}
    if plan_path is None:
        return _plan_of_options(own, link, target, spec_from_options(options))
    if any(value is not None for name, value in own.items() if name not in _CHANGES) or link:
        raise click.UsageError(
            "a plan has its own sides and line; beside it these are allowed: --load, --lead,"
            " --repetitions, --capacity, --name, --count-invalid, -t, -O"
        )
    plan = load_plan(Path(plan_path))
    changes = {name: own[name] for name in _CHANGES if own[name] is not None}
    return replace(plan, **_read_changes(changes), **_times(spec_from_options(options), bare=True))


_CHANGES = ("loads", "lead_s", "repetitions", "capacity_bps", "count_invalid", "name")
"""What may be said beside a plan."""


def _read_changes(stated: Mapping[str, Any]) -> dict[str, Any]:
    from farline.campaign.contention.plan import expanded

    changes = dict(stated)
    if "loads" in changes:
        changes["loads"] = tuple(expanded(changes["loads"]))
    return changes


def _times(spec: dict[str, Any], bare: bool) -> dict[str, Any]:
    """Duration and omitted start, taken out of the options of a run; `bare` allows no others."""
    found = {name: spec.pop(name) for name in ("duration_s", "omit_s") if spec.get(name)}
    if bare and spec:
        raise click.UsageError(
            f"{', '.join(sorted(spec))}: a plan has its own sides; write this into the plan"
        )
    return found


def _plan_of_options(
    own: dict[str, Any], link: dict[str, Any], target: str | None, spec: dict[str, Any]
) -> ContentionPlan:
    from farline.api.contention import tool_names
    from farline.campaign.contention.plan import (
        NATIVE,
        Contender,
        ContentionPlan,
        Network,
        parse_contender,
    )
    from farline.campaign.plan_values import flatten
    from farline.spec.near import unknown

    times = _times(spec, bare=False)
    tool = spec.pop("tool", None) or NATIVE
    if tool not in tool_names():
        raise click.UsageError(f"--tool {tool!r} is not known; {unknown(tool, tool_names())}")
    subject = Contender(_SUBJECT, tool, dict(flatten(spec)))
    background = parse_contender("background", own["background"] or "tcp:cubic", tool_names())
    subjects, reference = _with_reference(subject, own["reference"])
    named = {key: own[key] for key in ("testbed", "link", "host_cpus", "background_rtt_s")}
    place = {key: value for key, value in named.items() if value is not None}
    network = Network(**place, options=link) if place or link else None
    changes = {name: own[name] for name in _CHANGES if own[name] is not None}
    if times.get("duration_s") and "omit_s" not in times:
        times["omit_s"] = min(2.0, times["duration_s"] / 3)
    return ContentionPlan(
        background=background,
        subjects=subjects,
        reference=reference,
        network=network if target is None or network is not None else None,
        **_read_changes(changes),
        **times,
    )


def _with_reference(
    subject: Contender, wanted: bool | None
) -> tuple[tuple[Contender, ...], str | None]:
    """The transfer, and one CUBIC flow beside it unless it is one or none is wanted."""
    from farline.campaign.contention.plan import Contender

    options = {"transport": "tcp", "tcp.congestion_control": "cubic"}
    stated = {"transport": "tcp", **subject.options}
    if wanted is False or (wanted is None and stated == options and subject.tool == "native"):
        return (subject,), None
    return (subject, Contender(_REFERENCE, "native", options)), _REFERENCE


def _resume(
    name: str, target: str | None, store: Store, as_json: bool, report_dir: Path | None
) -> int:
    from farline.campaign.contention.journal import read_journal

    return _measured(read_journal(store, name), target, store, as_json, report_dir)


def _measured(
    journal: ContentionJournal,
    target: str | None,
    store: Store,
    as_json: bool,
    report_dir: Path | None,
) -> int:
    """Measures what is left, prints what it came to; the exit code."""
    from farline.api.contention import complete_outcome, measure_contention
    from farline.cli import fairness_text as text

    outcome = complete_outcome(store, journal)
    if outcome is None:
        click.echo(text.begin_line(journal), err=True)
        try:
            with interruptible() as asked:
                outcome = measure_contention(
                    journal, target, store, lambda one: _show(journal, one), asked
                )
        except FarlineError as error:
            raise error.reworded(f"{error.message}; {_hint(journal, target, store)}") from None
    return _finish(outcome, as_json, report_dir)


def _hint(journal: ContentionJournal, target: str | None, store: Store) -> str:
    """The command that goes on: what was measured is kept."""
    from farline.store.default_folder import usual_path

    words = ["farline", "fairness", *([journal.target] if target is not None else [])]
    words += ["--resume", journal.name]
    words += ["--store", str(store.path)] if store.path != usual_path() else []
    return f"resume with: {shlex.join(words)}"


def _show(journal: ContentionJournal, progress: Any) -> None:
    from farline.cli import fairness_text as text

    line = text.progress_line(journal, progress)
    if line:
        click.echo(line, err=True)


def _finish(outcome: Outcome, as_json: bool, report_dir: Path | None) -> int:
    from farline.api.contention import write_contention_report
    from farline.cli import fairness_text as text

    page = None
    if report_dir is not None and outcome.contests:
        page = write_contention_report(outcome, report_dir)
    if as_json:
        click.echo(json.dumps(text.document(outcome, page), indent=2))
    else:
        for line in text.result_lines(outcome):
            click.echo(line)
        if page is not None:
            click.echo(f"report: {page}")
    for one in outcome.failed:
        click.echo(f"farline: {text.failed_line(outcome, one)}", err=True)
    return EXPECTATION_CODE if outcome.failed else 0


def _print_dry_run(plan: ContentionPlan, target: str | None, as_json: bool) -> int:
    from farline.api.contention import capacity_of_plan
    from farline.campaign.contention.order import places
    from farline.cli import fairness_text as text

    capacity = capacity_of_plan(plan, target)
    wanted = list(places(plan, plan.load_rates(capacity), plan.seed or 0))
    if as_json:
        click.echo(json.dumps(text.dry_document(plan, wanted), indent=2))
        return 0
    for line in text.dry_lines(plan, wanted):
        click.echo(line)
    return 0
