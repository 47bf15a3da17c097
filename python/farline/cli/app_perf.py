"""`farline app-perf HOST`: what a host takes in, and what of it an application can have.

Tools such as iperf count what is received and thrown away. An application moves it into its own
memory once more; He et al. 2002, section 3, measure that with `app_perf` and take it as the bound.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.api.path_here import path_watch
from farline.campaign.application_bound import new_name, order, pair_specs
from farline.campaign.probe import ProbeJob
from farline.cli import views
from farline.cli.app_perf_text import print_bounds
from farline.cli.common import (
    RunCommand,
    interruptible,
    open_keeper,
    store_options,
    target_options,
    target_text,
)
from farline.cli.live import LiveView
from farline.cli.probe import exit_code, show, shown_s
from farline.errors import InterruptedRun
from farline.profiles.application_bound import LABEL
from farline.spec.options import run_options, spec_from_options
from farline.tools import Stop, StopQuestion

if TYPE_CHECKING:
    from farline.campaign.measure import Keeper
    from farline.cli.views import View
    from farline.spec._types import RunRecord, RunSpec

_NAMES = {"read": "raw", "copy": "application"}
"""What a receive mode measures."""

Runs = list[tuple[int, "RunRecord"]]
"""Records with the number of the pair each belongs to."""


@click.command(
    "app-perf",
    cls=RunCommand,
    short_help="Measure how fast a host can receive and use data.",
)
@target_options
@run_options(sweep=False, tools=False)
@click.option(
    "--rounds", type=click.IntRange(1, 100), default=3, metavar="N",
    help="Run N pairs of one run of each kind (default 3).",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON document.")
@click.option("-V", "--verbose", is_flag=True, help="Print each step of the sessions.")
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
    """Measure how fast HOST can receive data that it discards, and data that it copies once.

    The first rate is the raw bound, the second the application bound (RBUDP, He et al.
    2002). Runs of both kinds alternate, 3 s each unless -t or -n is given. With
    --transport udp, state the rate with -b RATE; -b 0 sends as fast as the host can.
    For RBUDP, send at 95 % of the application bound.
    """
    target = target_text(host, client, port)
    specs, width_s = _specs(options)
    store = open_keeper(store_path, no_store)
    say: Callable[[str], None] = _say_nothing if as_json else click.echo
    wanted = Measurement(target, specs, store, new_name(), _views(width_s, as_json, verbose), say)
    with interruptible() as asked:
        runs = measured(wanted, rounds, asked)
    print_bounds(wanted.name, runs, as_json)
    return _outcome(runs, rounds)


def _say_nothing(_line: str) -> None:
    """Where one document at the end is all that is wanted."""


def _specs(options: Mapping[str, Any]) -> tuple[dict[str, RunSpec], float]:
    """The two specs by their receive mode, and the seconds per line that are shown.

    Raises:
        click.UsageError: when a receive mode is stated.
    """
    if options.get("receive_mode") is not None or options.get("skip_rx_copy"):
        raise click.UsageError(
            "--receive-mode: app-perf itself compares read with copy; leave this option out"
        )
    document = spec_from_options(options)
    return pair_specs(document), shown_s(document)


def _views(width_s: float, as_json: bool, verbose: bool) -> Callable[[], View]:
    """Makes the view of each run: as a probe's, but for its end."""
    if as_json:
        return views.QuietView
    if sys.stdout.isatty():
        return lambda: LiveView(width_s, verbose, brief=True)
    return lambda: views.PlainView(width_s, verbose, brief=True)


@dataclass(frozen=True)
class Measurement:
    """What is measured, by two specs, and where it is shown and kept."""

    target: str
    specs: Mapping[str, RunSpec]
    store: Keeper | None
    name: str
    view: Callable[[], View]
    say: Callable[[str], None]


def measured(wanted: Measurement, rounds: int, asked: StopQuestion) -> Runs:
    """The runs, up to the first that is not complete, or to the end that was asked for.

    Raises:
        FarlineError: when a run did not come about.
    """
    runs: Runs = []
    for number, mode in order(rounds):
        if asked() is not Stop.GO_ON:
            break
        spec = wanted.specs[mode]
        wanted.say(f"pair {number}, {_NAMES[mode]} bound:")
        labels = {LABEL: wanted.name, "pair": number}
        job = ProbeJob(
            wanted.target,
            spec,
            wanted.store,
            labels=labels,
            path=path_watch(),
            busy_tries=0,
            should_stop=asked,
        )
        record = show(job, wanted.view(), spec, wanted.target).record
        runs.append((number, record))
        if record["status"] != "complete":
            break
    return runs


def _outcome(runs: Runs, rounds: int) -> int:
    """0, or the code of what went wrong; fewer runs than wanted were interrupted."""
    code = exit_code(runs[-1][1]) if runs else InterruptedRun.exit_code
    return code if code or len(runs) == 2 * rounds else InterruptedRun.exit_code
