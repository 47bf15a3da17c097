"""What `farline model rbudp` says on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from farline.spec.units import rate_human, size_human, time_human

if TYPE_CHECKING:
    from rich.table import Table

    from farline.models.rbudp import Case, ModelName, Prediction
    from farline.models.rbudp_answer import Answer, Request
    from farline.models.rbudp_curves import Curve, Variable
    from farline.models.rbudp_gaps import Gap
    from farline.models.rbudp_measured import Measured

WIDTH_MAX = 100
"""Columns beyond which lines get hard to read."""

_NO_CHANCE = "-"
"""The printed equations know a single outcome."""
_Row = tuple[str, Callable[["Prediction"], str]]


def print_answer(request: Request, answer: Answer) -> None:
    """Prints the case, the table of the models, and what else was asked for."""
    click.echo(headline(request.case))
    _show(_table(request, answer.predictions))
    _print_gaps(answer.gaps)
    for line in efficiency_lines(request, answer):
        click.echo(line)
    for case, curves in answer.curves:
        click.echo(f"\n{case_name(case, curves[0].over)}:")
        _show(_curve_table(curves))
    for line in crossing_lines(answer):
        click.echo(line)
    if answer.measured:
        _show(_measured_table(answer.measured))
    if request.plot is not None:
        click.echo(request.plot)


def headline(case: Case) -> str:
    """The case in one line."""
    size = f"{case.payload_bytes / 1e6:,.6g} MB ({size_human(case.payload_bytes)})"
    path = f"{rate_human(case.rate_bps)} over {time_human(case.rtt_s * 1e6)}"
    return f"RBUDP: {size} at {path}, {_loss(case)}"


def _loss(case: Case) -> str:
    return f"{percent(case.loss)} loss" if case.loss > 0 else "no loss"


def case_name(case: Case, over: Variable) -> str:
    """What tells a curve's case from another: "610 Mbit/s, 7 % loss"."""
    first = rate_human(case.rate_bps) if over == "payload" else _decimal_size(case.payload_bytes)
    return f"{first}, {_loss(case)}"


def percent(share: float) -> str:
    """`7 %`, to four digits."""
    return f"{100 * share:.4g} %"


def _rows(request: Request) -> list[_Row]:
    rows: list[_Row] = [
        ("packets", lambda p: f"{p.case.packets:,}"),
        ("payload of a packet", lambda p: f"{p.case.packet_payload_bytes} B"),
        ("sending, T_send", lambda p: _time(p.send_s)),
        ("retransmission", lambda p: _time(p.resend_s)),
        ("reports, T_ack", lambda p: _time(p.report_s)),
        ("round trips, waits", lambda p: _time(p.waiting_s)),
        ("time", lambda p: _time(p.time_s)),
        ("  nine of ten", _time_span),
        ("passes, N + 1", lambda p: f"{p.passes.mean:.2f}"),
        ("  nine of ten", _pass_span),
        ("retransmitted", lambda p: size_human(p.resent_bytes)),
        ("throughput", lambda p: rate_human(p.throughput_bps)),
        ("efficiency", lambda p: percent(p.efficiency)),
    ]
    if request.in_flight > 1:
        text = f"{request.in_flight} in flight"
        rows.append((text, lambda p: rate_human(p.sustained_bps(request.in_flight))))
    return rows


def _time_span(prediction: Prediction) -> str:
    if prediction.model == "printed":
        return _NO_CHANCE
    return f"{_time(prediction.time_low_s)} to {_time(prediction.time_high_s)}"


def _pass_span(prediction: Prediction) -> str:
    if prediction.model == "printed":
        return _NO_CHANCE
    return f"{prediction.passes.low} to {prediction.passes.high}"


def _time(time_s: float) -> str:
    return time_human(time_s * 1e6) if time_s > 0 else "0"


def _table(request: Request, predictions: Sequence[Prediction]) -> Table:
    table = _empty(["", *(model_text(prediction.model) for prediction in predictions)])
    for name, cell in _rows(request):
        table.add_row(name, *(cell(prediction) for prediction in predictions))
    return table


def _curve_table(curves: Sequence[Curve]) -> Table:
    over = curves[0].over
    table = _empty([over, *(model_text(curve.model) for curve in curves)])
    place_text = _decimal_size if over == "payload" else rate_human
    for index, place in enumerate(curves[0].places):
        rates = [rate_human(float(curve.throughput_bps[index])) for curve in curves]
        table.add_row(place_text(float(place)), *rates)
    return table


def _measured_table(measured: Sequence[Measured]) -> Table:
    table = _empty(["run", "payload", "loss", "passes", "model's", "measured", "model", "off by"])
    for one in measured:
        passes = one.prediction.passes
        table.add_row(
            one.run_id[-8:],
            _decimal_size(one.case.payload_bytes),
            percent(one.first_pass_loss),
            "-" if one.passes is None else str(one.passes),
            "-" if one.passes is None else f"{passes.low}-{passes.high}",
            rate_human(one.throughput_bps),
            rate_human(one.predicted_bps),
            f"{100 * one.excess:+.1f} %",
        )
    return table


def _decimal_size(size_bytes: float) -> str:
    """Decimal, as He et al. 2002 counts payloads: `600 MB`."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.4g} {unit}"
    return f"{size_bytes:.0f} B"


def model_text(name: ModelName) -> str:
    """What a model is called: "after each pass"."""
    from farline.plots.rbudp_model_figure import MODEL_TEXT

    return MODEL_TEXT[name]


def _empty(heads: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column(heads[0], no_wrap=True)
    for head in heads[1:]:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _show(table: Table) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.width = min(console.width, WIDTH_MAX)
    console.print(table)


def _print_gaps(found: Sequence[Gap]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not found:
        return
    click.echo("Where the printed equations mislead:")
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for gap in found:
        text = Text(f"{gap.name}: ", style="bold")
        table.add_row(_signed_time(gap.adds_s), text.append(gap.text, style="not bold"))
    console = Console(highlight=False)
    console.width = min(console.width, WIDTH_MAX)
    console.print(table)


def _signed_time(adds_s: float | None) -> str:
    if adds_s is None:
        return ""
    return f"{'-' if adds_s < 0 else '+'}{time_human(abs(adds_s) * 1e6)}"


def efficiency_lines(request: Request, answer: Answer) -> list[str]:
    """Which payload reaches the wanted efficiency, a line for each model."""
    if request.efficiency is None or answer.equation_4_bytes is None:
        return []
    lines = [
        f"\nPayload for {percent(request.efficiency)} of the sending rate:",
        f"  {'equation 4, no loss':<20} {_decimal_size(answer.equation_4_bytes)}",
    ]
    for name, size in answer.payloads.items():
        reached = "no payload reaches this rate" if size is None else _decimal_size(size)
        lines.append(f"  {model_text(name):<20} {reached}")
    return lines


def crossing_lines(answer: Answer) -> list[str]:
    """Payloads at which the two cases give the same, a line for each model."""
    if not answer.crossings:
        return []
    lines = ["\nThe two cases give the same throughput at a payload of:"]
    for name, places in answer.crossings.items():
        text = ", ".join(_decimal_size(place) for place in places) or "none in this range"
        lines.append(f"  {model_text(name):<20} {text}")
    return lines
