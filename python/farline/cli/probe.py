"""`farline probe HOST`: one run, watched live, summed up and judged."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.common import (
    RunCommand,
    interruptible,
    open_store,
    store_options,
    target_options,
    target_text,
)
from farline.cli.path_here import path_watch
from farline.spec.options import run_options, spec_from_options
from farline.tools.payload_file import with_file_size

if TYPE_CHECKING:
    from farline.campaign.measure import Measured
    from farline.cli.views import View
    from farline.spec._types import RunRecord, RunSpec
    from farline.tools import StopQuestion

SHOWN_S = 1.0
"""Seconds per line when `-i` is not given."""
BUSY_TRIES = 3
"""Times that a server is asked again that had no place for a connection."""
LONGEST_BUSY_S = 5.0
"""Longest wait for that; a server whose sessions take longer is left to the user."""


@click.command(cls=RunCommand, short_help="Run once towards a host.")
@target_options
@run_options(sweep=False)
@click.option("--json", "as_json", is_flag=True, help="Print the record as one JSON document.")
@click.option(
    "-J",
    "as_iperf3",
    is_flag=True,
    help="Print one JSON document in iperf3's shape; --json=iperf3 is the same.",
)
@click.option(
    "--json-stream", "as_stream", is_flag=True, help="Print iperf3's JSON events as they come."
)
@click.option("-V", "--verbose", is_flag=True, help="Say each step of the session.")
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
    """Run once towards HOST and say what limited the run.

    HOST is a name or address with an optional :PORT, or a ticket
    (farline://...). iperf3's letters mean what they mean in iperf3. The run is
    kept; `farline runs` lists it.
    """
    if sum((as_json, as_iperf3, as_stream)) > 1:
        raise click.UsageError("one of --json, --json=iperf3 (-J) and --json-stream at a time")
    target = target_text(host, client, port)
    document = with_file_size(spec_from_options(options))
    spec, shown_s = sampled_spec(document)
    store = open_store(store_path, no_store)
    view = _view(shown_s, as_json, as_iperf3, as_stream, verbose)
    return exit_code(_watch(target, spec, store, view).record)


def sampled_spec(document: dict[str, Any]) -> tuple[RunSpec, float]:
    """The whole spec, and the seconds per line that are shown."""
    from farline.campaign.settings import sampling_interval_s
    from farline.tools.native import resolve_spec

    stated_s = document.get("interval_s")
    spec = resolve_spec(document)
    if stated_s is None:
        spec["interval_s"] = sampling_interval_s(spec.get("duration_s"))
    return spec, stated_s or SHOWN_S


def _view(shown_s: float, as_json: bool, as_iperf3: bool, as_stream: bool, verbose: bool) -> View:
    from farline.cli import views

    if as_stream:
        return views.StreamView(shown_s)
    if as_json or as_iperf3:
        return views.JsonView(shown_s, as_iperf3)
    if sys.stdout.isatty():
        from farline.cli.live import LiveView

        return LiveView(shown_s, verbose)
    return views.PlainView(shown_s, verbose)


def _watch(target: str, spec: RunSpec, store: Any, view: View) -> Measured:
    from farline.campaign.judging import asking_path, bounds_for
    from farline.campaign.measure import came_about, measure
    from farline.tools.native import parse_target

    address = parse_target(target).address
    judge = asking_path(bounds_for(spec, store, address))
    with interruptible() as asked:
        try:
            view.start(spec, address)
            for tried in range(BUSY_TRIES + 1):
                measured = measure(
                    target, spec, store, view.event, asked,
                    keep=came_about, path=path_watch(), judge=judge,
                )  # fmt: skip
                wait_s = busy_wait_s(measured.record, tried)
                if wait_s is None or not _paused(wait_s, asked):
                    break
            view.finish(measured)
        finally:
            view.close()
    return measured


def busy_wait_s(record: Mapping[str, Any], tried: int) -> float | None:
    """Seconds after which a server that was busy for a moment is asked again; None for no more."""
    error = record.get("error") or {}
    if error.get("kind") != "busy" or tried >= BUSY_TRIES:
        return None
    wait_s = max(float(2**tried), error.get("retry_after_s") or 0.0)
    return wait_s if wait_s <= LONGEST_BUSY_S else None


def _paused(wait_s: float, asked: StopQuestion) -> bool:
    """Waits; whether to go on then."""
    from farline.tools import Stop

    until = time.monotonic() + wait_s
    while asked() is Stop.GO_ON:
        left = until - time.monotonic()
        if left <= 0:
            return True
        time.sleep(min(left, 0.1))
    return False


def exit_code(record: RunRecord) -> int:
    """0, or the code of what went wrong; a run stopped without a reason was interrupted."""
    from farline.errors import InterruptedRun, from_failure

    error = record.get("error")
    if record["status"] == "complete":
        return 0
    if error is None:
        return InterruptedRun.exit_code
    failure = from_failure(error)
    click.echo(f"farline: {failure.message}", err=True)
    return failure.exit_code
