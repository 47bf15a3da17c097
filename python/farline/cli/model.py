"""`farline model`: what a transport should reach on a stated path, before anything is sent.

`rbudp` is the model there is. Options are here, words in `model_text`, the document in
`model_json`; `farline.models.rbudp_answer` asks the models, `farline.analysis.rbudp_runs` the
store.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farline.analysis.rbudp_runs import measured_runs
from farline.cli.command import Command, Group
from farline.cli.common import store_option
from farline.cli.limits import RATE, SECONDS, SIZE, UnitType
from farline.cli.model_json import document
from farline.cli.model_text import case_name, print_answer
from farline.cli.words import Words
from farline.models.rbudp import HEADER_BYTES, MODEL_NAMES, Case
from farline.models.rbudp_answer import Request, answer_of
from farline.spec import units

if TYPE_CHECKING:
    from farline.models.rbudp_measured import Measured

SHARE = UnitType("share", units.parse_probability)
FORMATS = ("png", "svg")
_FLAGS = {
    "payload_bytes": "--payload",
    "rate_bps": "--rate",
    "rtt_s": "--rtt",
    "loss": "--loss",
    "packet_payload_bytes": "--packet",
    "wire_overhead_bytes": "--overhead",
    "settle_s": "--settle",
    "interval_s": "--interval",
    "initial_window_segments": "--initial-window",
}
"""What a quantity of a case is called on the command line."""

_HELP = """Predict the throughput of a transport on a stated path, without sending packets."""

_RBUDP_HELP = """Predict how long an RBUDP blast takes, and at what throughput.

Shows three models: equations 1 to 6 of RBUDP (He et al. 2002) as printed; the same protocol
corrected, with one report after each pass; and corrected with early reports, farline's
default. Sends no packets.
"""


@click.group(
    "model", cls=Group, help=_HELP, short_help="Predict the throughput of a transport on a path."
)
def command() -> None:
    """Chooses the model; all work is the model's."""


_Command = TypeVar("_Command", bound=Callable[..., Any])


def _case_options(command: _Command) -> _Command:
    """The quantities of a case."""
    for option in reversed(
        (
            click.option(
                "--payload",
                type=SIZE,
                required=True,
                help="Send this much payload; 600MB is decimal, 600M is 600 MiB.",
            ),
            click.option("--rate", type=RATE, required=True, help="Send payload at this rate."),
            click.option(
                "--rtt",
                type=SECONDS,
                required=True,
                help="Assume this round-trip time (twice T_prop).",
            ),
            click.option(
                "--loss",
                type=SHARE,
                default="0",
                help="Lose this share of packets in each pass, such as 7% (default 0).",
            ),
            click.option(
                "--packet",
                type=click.IntRange(64, 65_507),
                default=1472,
                metavar="SIZE",
                help="Send packets of this size, RBUDP's 16-byte header included (default"
                " 1472; the printed equations use 1500 bytes of payload).",
            ),
            click.option(
                "--overhead",
                type=click.IntRange(0, 65_535),
                default=0,
                metavar="SIZE",
                help="Count this many bytes of --rate for each packet besides its payload, in"
                " the corrected models; 82 for an Ethernet line rate (default 0).",
            ),
            click.option(
                "--settle",
                type=SECONDS,
                help="Wait this long for late packets before reporting gaps (default RTT/8,"
                " within 0.2 to 50 ms).",
            ),
            click.option(
                "--interval",
                type=SECONDS,
                help="Send early reports at this interval (default RTT/4, within 5 to 50 ms).",
            ),
            click.option(
                "--initial-window",
                type=click.IntRange(1, 1 << 20),
                default=10,
                metavar="N",
                help="Send N TCP segments of a report in the first round trip (default 10).",
            ),
            click.option(
                "--in-flight",
                type=click.IntRange(1, 64),
                default=1,
                metavar="N",
                help="Keep N blasts in flight (default 1).",
            ),
        )
    ):
        command = option(command)
    return command


def _answer_options(command: _Command) -> _Command:
    """Which models, and what else is to be said of them."""
    for option in reversed(
        (
            click.option("--printed", is_flag=True, help="Show the equations as printed."),
            click.option(
                "--passes", is_flag=True, help="Show the model with a report after each pass."
            ),
            click.option("--early", is_flag=True, help="Show the model with early reports."),
            click.option(
                "--efficiency",
                type=SHARE,
                help="Print the payload that reaches this share of --rate.",
            ),
            click.option(
                "--curve",
                "over",
                type=Words(["payload", "rate"]),
                help="Print throughput over payload or over rate.",
            ),
            click.option(
                "--beside",
                metavar="RATE[@LOSS]",
                help="Add a second case to the curve over payload, such as 550Mbit@0%.",
            ),
            click.option(
                "--against",
                multiple=True,
                metavar="RUN|last",
                help="Compare the model with a recorded run; repeat for several.",
            ),
            click.option(
                "--campaign",
                metavar="NAME|last",
                help="Compare the model with the runs of a campaign.",
            ),
            click.option(
                "--plot",
                type=click.Path(path_type=Path, dir_okay=False),
                help="Draw the curve into a .png or .svg file.",
            ),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
        )
    ):
        command = option(command)
    return command


@command.command("rbudp", cls=Command, help=_RBUDP_HELP, short_help="Predict an RBUDP blast.")
@_case_options
@_answer_options
@store_option
def rbudp(
    against: tuple[str, ...],
    campaign: str | None,
    as_json: bool,
    store_path: Path | None,
    **options: Any,
) -> None:
    """Predicts, compares and draws."""
    request = _request(options)
    measured: tuple[Measured, ...] = ()
    if against or campaign:
        measured = measured_runs(store_path, against, campaign, request.case)
    elif store_path is not None:
        raise click.UsageError("--store: needs --against or --campaign")
    answer = answer_of(request, measured)
    if request.plot is not None:
        from farline.plots.rbudp_model_figure import save_rbudp_model

        save_rbudp_model(request, measured, request.plot, case_name)
    if as_json:
        click.echo(json.dumps(document(request, answer), indent=2))
    else:
        print_answer(request, answer)


def _request(options: dict[str, Any]) -> Request:
    """What was asked for.

    Raises:
        click.UsageError: when options contradict each other or make no case.
    """
    over, plot, efficiency = options["over"], options["plot"], options["efficiency"]
    if efficiency is not None and not 0 < efficiency < 1:
        raise click.UsageError(f"--efficiency: {efficiency:g} is not between 0 and 100 %")
    if plot is not None and plot.suffix.lstrip(".") not in FORMATS:
        raise click.UsageError(f"--plot {plot}: the file name must end in .png or .svg")
    try:
        case = Case(
            payload_bytes=int(options["payload"]),
            rate_bps=options["rate"],
            rtt_s=options["rtt"],
            loss=options["loss"],
            packet_payload_bytes=options["packet"] - HEADER_BYTES,
            wire_overhead_bytes=options["overhead"],
            settle_s=options["settle"],
            interval_s=options["interval"],
            initial_window_segments=options["initial_window"],
        )
        beside = _beside(options["beside"], case, over, plot)
    except ValueError as error:
        raise _refused(error) from None
    chosen = tuple(name for name in MODEL_NAMES if options[name])
    return Request(case, chosen or MODEL_NAMES, options["in_flight"], efficiency,
                   over, beside, plot)  # fmt: skip


def _beside(text: str | None, case: Case, over: str | None, plot: Path | None) -> Case | None:
    """The second case: the first one at another rate and loss."""
    if text is None:
        return None
    if over == "rate" or (over is None and plot is None):
        raise click.UsageError("--beside: needs --curve payload or --plot")
    rate, at, loss = text.partition("@")
    try:
        return replace(
            case,
            rate_bps=units.parse_rate(rate),
            loss=units.parse_probability(loss) if at else 0.0,
        )
    except ValueError as error:
        raise click.UsageError(f"--beside: {error}") from None


def _refused(error: ValueError) -> click.UsageError:
    """A refusal of the models, in the words of the command line."""
    name, colon, rest = str(error).partition(":")
    return click.UsageError(f"{_FLAGS.get(name, name)}{colon}{rest}")
