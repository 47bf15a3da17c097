"""Text of a campaign: what will run, how it goes, the control-response table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from farline.campaign.estimate import Estimate, Forecast
from farline.campaign.machine import Cell, Machine, Outcome
from farline.campaign.results import Drift, SettingResult
from farline.campaign.setting_text import setting_text, short_name, value_text
from farline.campaign.settings import Campaign
from farline.cli.option_words import spoken
from farline.spec.units import counted, rate_human

if TYPE_CHECKING:
    from rich.table import Table

Columns = dict[str, Callable[[SettingResult], str]]
_TEXTS = ("limited by", "stopped")
_LEAVE_FIRST = ("CPU s/GB", "stopped", "resent", "lost", "vs ref", "runs")
"""Columns that make room on a narrow terminal, in this order."""
_RATIO_NOTE = "vs ref: ratio to the reference runs of the same block, geometric mean"
STATES = {
    "open": "…",
    "narrow": "narrow",
    "cap": "cap",
    "fixed": "done",
    "abandoned": "given up",
}


def span_text(seconds: float | None) -> str:
    """A time span for people: `14 s`, `3 min 20 s`, `2 h 5 min`, `15 min`."""
    if seconds is None:
        return "an unknown time"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, seconds = divmod(whole, 60)
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def left_text(left: Estimate) -> str:
    """What is left: `about 30 runs, 2 min 10 s`."""
    return f"about {left.runs} run{'s' * (left.runs != 1)}, {span_text(left.seconds)}"


def campaign_line(campaign: Campaign, address: str) -> str:
    """What is about to run."""
    count = len(campaign.settings)
    axes = ", ".join(short_name(path) for path in campaign.plan.factors) or "nothing"
    return (
        f"campaign {campaign.id} to {address}: {count} setting{'s' * (count != 1)},"
        f" varying {axes}, seed {campaign.seed}"
    )


def rules_line(campaign: Campaign) -> str:
    """When a setting is done."""
    rules = campaign.plan.rules
    if rules.fixed:
        times = rules.min_repetitions
        return "each setting once" if times == 1 else f"each setting {times} times"
    return (
        f"each setting until its mean is known to ±{100 * rules.relative_half_width:g} %"
        f" ({100 * rules.confidence:g} % confidence),"
        f" {rules.min_repetitions} to {rules.max_repetitions} times"
    )


def forecast_line(forecast: Forecast) -> str:
    """How many runs, and how long they will take."""
    least, most = forecast.least, forecast.most
    if least == most:
        return f"{counted(least.runs, 'run')}, {span_text(least.seconds)}"
    spans = f"{span_text(least.seconds)} to {span_text(most.seconds)}"
    return f"{least.runs} to {most.runs} runs, {spans if least.seconds is not None else spans[:15]}"


def outcome_text(machine: Machine, cell: Cell, outcome: Outcome) -> str:
    """One finished run in one line."""
    setting = machine.campaign.setting(cell.setting)
    name = f"reference ({setting_text(setting.varied)})" if cell.reference else ""
    head = f"{name or setting_text(setting.varied)}: "
    if outcome.measured and outcome.valid is False:
        counted = "counted anyway" if machine.campaign.plan.count_invalid else "not counted"
        head += f"path not valid, {counted} ({outcome.not_valid or 'see farline show'}): "
    if not outcome.measured:
        return f"{head}{outcome.status}: {spoken(outcome.error or 'no reason given')}"
    limit = f", limited by {outcome.verdict_limit}" if outcome.verdict_limit else ""
    return f"{head}{rate_human(outcome.total_bps or 0.0)}{limit}"


def results_table(
    rows: Sequence[SettingResult],
    confidence: float,
    width: int | None = None,
    reference: str | None = None,
) -> Table:
    """The control-response table; `reference` is the key of the reference setting.

    Columns that do not fit into `width` are left out, the least important first; throughput, its
    interval and what limited it stay.
    """
    from rich.console import Console

    console, columns = Console(width=10_000), _result_columns(rows, confidence, reference)
    names = list(columns)
    droppable = [name for name in _LEAVE_FIRST if name in names]
    while True:
        table = _table(rows, columns, names)
        too_wide = width is not None and console.measure(table).maximum > width
        if not (too_wide and droppable):
            if reference is not None and "vs ref" in names:
                table.caption, table.caption_justify = _RATIO_NOTE, "left"
            return table
        names.remove(droppable.pop(0))


def _table(rows: Sequence[SettingResult], columns: Columns, names: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for path in _paths(rows):
        table.add_column(short_name(path), justify="right", no_wrap=True)
    for name in names:
        justify: Literal["left", "right"] = "left" if name in _TEXTS else "right"
        table.add_column(name, justify=justify, no_wrap=True)
    for row in rows:
        values = [_value_cell(row, path) for path in _paths(rows)]
        table.add_row(*values, *(columns[name](row) for name in names))
    return table


def _paths(rows: Sequence[SettingResult]) -> list[str]:
    return list(dict.fromkeys(path for row in rows for path in row.varied))


def _value_cell(row: SettingResult, path: str) -> str:
    return value_text(path, row.varied[path]) if path in row.varied else ""


def _result_columns(
    rows: Sequence[SettingResult], confidence: float, reference: str | None
) -> Columns:
    """Heads of the result columns, and how a row fills them."""
    resent = any(row.retransmits is not None for row in rows)
    losses: Columns = {"resent": lambda row: _figure(row.retransmits, ".4g")}
    if not resent and any(row.lost_packets is not None for row in rows):
        losses = {"lost": lambda row: _figure(row.lost_packets, ".4g")}
    return {
        "throughput": lambda row: "-" if row.mean_bps is None else rate_human(row.mean_bps),
        f"{100 * confidence:g} % CI": _width_text,
        "runs": _runs_text,
        "vs ref": lambda row: (
            "ref" if row.setting == reference else _figure(row.ratio_to_reference, ".2f")
        ),
        **losses,
        "CPU s/GB": lambda row: _figure(row.cpu_s_per_gb, ".3f"),
        "limited by": lambda row: row.verdict_limit or "-",
        "stopped": lambda row: STATES[row.state] if row.runs else _without_runs(row),
    }


def _without_runs(row: SettingResult) -> str:
    return "no valid run" if row.state in ("fixed", "cap", "narrow") else STATES[row.state]


def _runs_text(row: SettingResult) -> str:
    beside = {"failed": row.failed, "not valid": row.invalid}
    said = ", ".join(f"{count} {word}" for word, count in beside.items() if count)
    return f"{row.runs} ({said})" if said else f"{row.runs}"


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _width_text(row: SettingResult) -> str:
    """The interval in percent of the mean; both ends where they are not as far from it."""
    if row.low_bps is None or row.high_bps is None or not row.mean_bps:
        return "-"
    below, above = (100 * (end / row.mean_bps - 1) for end in (row.low_bps, row.high_bps))
    if above + below < 0.5:
        return f"±{(above - below) / 2:.1f} %"
    return f"{below:.0f} to {above:+.0f} %"


def drift_line(drift: Drift | None) -> str:
    """Whether the path changed under the campaign; empty where it did not."""
    if drift is None or not drift.significant:
        return ""
    return (
        f"the reference drifted by {100 * drift.relative_change:+.0f} % over the campaign"
        f" (p = {drift.p_value:.2g}): compare settings by their ratio to it (vs ref)"
    )
