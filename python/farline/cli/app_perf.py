"""`farline app-perf HOST`: what a host takes in, and what of it an application can have.

Tools such as iperf count what is received and thrown away. An application moves it into its own
memory once more; He et al. 2002, section 3, measure that with `app_perf` and take it as the bound.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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
from farline.cli.probe import exit_code, sampled_spec
from farline.spec.options import run_options, spec_from_options
from farline.tools import Stop, StopQuestion

if TYPE_CHECKING:
    from farline.cli.views import View
    from farline.spec._types import RunRecord, RunSpec
    from farline.store import Store

DURATION_S = 3.0
"""Seconds of each run where nothing is stated."""

_NAMES = {"read": "raw", "copy": "application"}
"""What a receive mode measures."""

Runs = list[tuple[int, "RunRecord"]]
"""Records with the number of the pair each belongs to."""


@click.command(
    "app-perf",
    cls=RunCommand,
    short_help="Measure what a host takes in, with and without one copy more.",
)
@target_options
@run_options(sweep=False)
@click.option(
    "--rounds", type=click.IntRange(1, 100), default=3, show_default=True, metavar="N",
    help="Pairs of runs, one run of each kind in a pair.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the bounds as one JSON document.")
@click.option("-V", "--verbose", is_flag=True, help="Say each step of the sessions.")
@store_options
def command(
    host: str | None,
    client: str | None,
    port: int | None,
    rounds: int,
    as_json: bool,
    verbose: bool,
    store_path: Path | None,
    no_store: bool,
    **options: Any,
) -> int:
    """Measure what HOST takes in when it throws data away, and when it moves them once more.

    The first is the raw bound, the second the application bound. Runs of both kinds take
    turns, 3 s each unless -t or -n says otherwise, and all of them are kept. With
    --transport udp state the rate that the path is to carry: -b RATE, or -b 0 for as fast
    as the host can. The sending rate to state for rbudp is 95 % of the application bound.
    """
    from farline.cli.app_perf_text import print_bounds

    target = target_text(host, client, port)
    specs, shown_s = pair_specs(options)
    store = open_store(store_path, no_store)
    say: Callable[[str], None] = _say_nothing if as_json else click.echo
    job = Job(target, specs, store, new_name(), _views(shown_s, as_json, verbose), say)
    with interruptible() as asked:
        runs = measured(job, rounds, asked)
    print_bounds(job.name, runs, as_json)
    return _outcome(runs, rounds)


def _say_nothing(_line: str) -> None:
    """Where one document at the end is all that is wanted."""


def new_name() -> str:
    """The name of a measurement, by which its runs are found again."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    return f"app-perf-{stamp}-{secrets.token_hex(2)}"


def pair_specs(options: Mapping[str, Any]) -> tuple[dict[str, RunSpec], float]:
    """The two specs by their receive mode, and the seconds per line that are shown.

    Raises:
        click.UsageError: for what cannot be compared.
        SpecError: when the options contradict each other.
    """
    from farline.profiles.application_bound import APPLICATION, RAW

    if options.get("receive_mode") is not None or options.get("skip_rx_copy"):
        raise click.UsageError("--receive-mode: app-perf compares read with copy; leave it out")
    document = spec_from_options(options)
    _refuse_the_incomparable(document)
    if document.get("duration_s") is None and document.get("total_bytes") is None:
        document["duration_s"] = DURATION_S
    transport = document.setdefault("transport", "tcp")
    specs, shown_s = {}, 0.0
    for mode in (RAW, APPLICATION):
        section = {**document.get(transport, {}), "receive_mode": mode}
        specs[mode], shown_s = sampled_spec({**document, transport: section})
    return specs, shown_s


def _refuse_the_incomparable(document: Mapping[str, Any]) -> None:
    from farline.profiles.application_bound import TRANSPORTS

    transport = document.get("transport", "tcp")
    if transport not in TRANSPORTS:
        raise click.UsageError(
            f"--transport {transport}: it has no --receive-mode to compare;"
            f" allowed are {', '.join(TRANSPORTS)}"
        )
    if document.get("direction") == "bidirectional":
        raise click.UsageError("--bidir: a bound is of one direction; leave it out, or write -R")
    if transport == "udp" and document.get("rate_bps") is None:
        raise click.UsageError(
            "--transport udp needs -b RATE, what the path is to carry;"
            " -b 0 is as fast as the host can, for a path of your own"
        )


def _views(shown_s: float, as_json: bool, verbose: bool) -> Callable[[], View]:
    """Makes the view of each run: as a probe's, but for its end."""
    from farline.cli import views

    if as_json:
        return views.QuietView
    if sys.stdout.isatty():
        from farline.cli.live import LiveView

        return lambda: LiveView(shown_s, verbose, brief=True)
    return lambda: views.PlainView(shown_s, verbose, brief=True)


@dataclass(frozen=True)
class Job:
    """What is measured, by two specs, and where it is shown and kept."""

    target: str
    specs: Mapping[str, RunSpec]
    store: Store | None
    name: str
    view: Callable[[], View]
    say: Callable[[str], None]


def order(rounds: int) -> Iterator[tuple[int, str]]:
    """Pairs from 1 with their modes: what comes first takes turns, so that no drift favours one."""
    from farline.profiles.application_bound import APPLICATION, RAW

    for number in range(1, rounds + 1):
        modes = (RAW, APPLICATION) if number % 2 else (APPLICATION, RAW)
        yield from ((number, mode) for mode in modes)


def measured(job: Job, rounds: int, asked: StopQuestion) -> Runs:
    """The runs, up to the first that is not complete, or to the end that was asked for."""
    runs: Runs = []
    for number, mode in order(rounds):
        if asked() is not Stop.GO_ON:
            break
        record = _run(job, number, mode, asked)
        runs.append((number, record))
        if record["status"] != "complete":
            break
    return runs


def _run(job: Job, number: int, mode: str, asked: StopQuestion) -> RunRecord:
    from farline.campaign.measure import came_about, measure
    from farline.profiles.application_bound import LABEL
    from farline.tools.native import parse_target

    view, spec = job.view(), job.specs[mode]
    job.say(f"pair {number}, {_NAMES[mode]} bound:")
    try:
        view.start(spec, parse_target(job.target).address)
        result = measure(
            job.target, spec, job.store, view.event, asked,
            labels={LABEL: job.name, "pair": number}, keep=came_about, path=path_watch(),
        )  # fmt: skip
        view.finish(result)
    finally:
        view.close()
    return result.record


def _outcome(runs: Runs, rounds: int) -> int:
    """0, or the code of what went wrong; fewer runs than wanted were interrupted."""
    from farline.errors import InterruptedRun

    code = exit_code(runs[-1][1]) if runs else InterruptedRun.exit_code
    return code if code or len(runs) == 2 * rounds else InterruptedRun.exit_code
