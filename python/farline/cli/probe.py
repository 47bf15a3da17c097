"""`farline probe HOST`: one run, watched live, summed up and judged."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.api.path_here import path_watch
from farline.cli.common import (
    RunCommand,
    interruptible,
    open_keeper,
    store_options,
    target_options,
    target_text,
)
from farline.cli.shown import shown
from farline.spec.options import run_options, spec_from_options

if TYPE_CHECKING:
    from farline.campaign.measure import Measured
    from farline.campaign.probe import ProbeJob
    from farline.cli.views import View
    from farline.spec._types import RunRecord, RunSpec

SHOWN_S = 1.0
"""Seconds per line when `-i` is not given."""


@click.command(cls=RunCommand, short_help="Measure throughput to a host once.")
@target_options
@run_options(sweep=False)
@click.option("--json", "as_json", is_flag=True, help="Print the record as one JSON document.")
@click.option(
    "-J",
    "as_iperf3",
    is_flag=True,
    help="Print one JSON document in iperf3's format: same as --json=iperf3.",
)
@click.option(
    "--json-stream", "as_stream", is_flag=True, help="Print iperf3's JSON events as they happen."
)
@click.option("-V", "--verbose", is_flag=True, help="Print each step of the session.")
@store_options
def command(
    host: str | None,
    client: str | None,
    port: int | None,
    as_json: bool,
    as_iperf3: bool,
    as_stream: bool,
    verbose: bool,
    store_path: Path | None,
    no_store: bool,
    **options: Any,
) -> int:
    """Measure throughput to HOST once, and report what limited it.

    HOST is a name or address with an optional :PORT, or a ticket
    (farline://...). It must run `farline serve`, or the server of the --tool
    that measures instead; with iperf3://HOST[:PORT] it runs iperf3's server.
    One-letter options mean the same as in iperf3.
    `farline runs` lists the run afterwards.
    """
    # `farline probe --help` answers before these could be imported.
    from farline.api.tool_here import tool_chooser
    from farline.campaign.judging import asking_path, bounds_for
    from farline.campaign.probe import ProbeJob
    from farline.campaign.settings import sampled_spec
    from farline.drivers import NATIVE, tool_of
    from farline.tools.native import parse_target
    from farline.tools.payload_file import with_file_size

    if sum((as_json, as_iperf3, as_stream)) > 1:
        raise click.UsageError("use only one of --json, --json=iperf3 (-J) and --json-stream")
    target = target_text(host, client, port)
    document = with_file_size(spec_from_options(options))
    chooser = tool_chooser(_stated_port(target))
    if tool_of(document) != NATIVE and (as_iperf3 or as_stream):
        raise click.UsageError(
            "--json=iperf3 (-J) and --json-stream are for farline's own engine: use --json"
        )
    spec, width_s = sampled_spec(document), shown_s(document)
    store = open_keeper(store_path, no_store)
    view = _view(width_s, as_json, as_iperf3, as_stream, verbose)
    # The store is asked before the run: one that cannot be read must not cost a run its record.
    judge = asking_path(bounds_for(spec, store, parse_target(target).address))
    with interruptible() as asked:
        job = ProbeJob(
            target, spec, store, path=path_watch(), judge=judge, should_stop=asked,
            tool=chooser.tool(spec, target),
        )  # fmt: skip
        return exit_code(show(job, view, spec, target).record)


def _stated_port(target: str) -> int | None:
    """The port in a target, if there is one: with another tool it is that of its server."""
    from farline.tools.native import parse_target

    if target.startswith("farline://"):
        return None
    bare = target.rpartition("]")[2] if "]" in target else target
    return parse_target(target).port if bare.count(":") == 1 else None


def shown_s(document: Mapping[str, Any]) -> float:
    """Seconds per line that is shown."""
    return document.get("interval_s") or SHOWN_S


def _view(width_s: float, as_json: bool, as_iperf3: bool, as_stream: bool, verbose: bool) -> View:
    from farline.cli import views

    if as_stream:
        return views.StreamView(width_s)
    if as_json or as_iperf3:
        return views.JsonView(width_s, as_iperf3)
    if sys.stdout.isatty():
        from farline.cli.live import LiveView

        return LiveView(width_s, verbose)
    return views.PlainView(width_s, verbose)


def show(job: ProbeJob, view: View, spec: RunSpec, target: str) -> Measured:
    """Drives a run to its end and shows it.

    Raises:
        FarlineError: when it did not come about.
    """
    from farline.tools.native import parse_target

    try:
        view.start(spec, parse_target(target).address)
        for event in job:
            view.event(event)
        result = job.wait()
        if result.measured is None:
            return result.checked()
        view.finish(result.measured)
    finally:
        job.close()
        view.close()
    return result.measured


def exit_code(record: RunRecord) -> int:
    """0, or the code of what went wrong, which is said unless somebody wanted the end."""
    from farline.campaign.probe import run_error
    from farline.cli.option_words import in_flags

    failure = run_error(record)
    if failure is None:
        return 0
    if record.get("error") is not None:
        click.echo(f"farline: {shown(in_flags(failure).message)}", err=True)
    return failure.exit_code
