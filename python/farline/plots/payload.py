"""What the page's scripts draw from: one JSON document, kept small.

Parameter values go in as places on their axis with their texts, so that the page scales and
labels them exactly as the figures do. Series are rounded to what a screen can show.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from farline.plots.axes import Axis, parameter_axis
from farline.plots.curves import default_views
from farline.plots.data import CampaignData
from farline.plots.labels import LIMIT_TEXT, settings_text
from farline.plots.response_figure import ALL_POINTS_UP_TO
from farline.plots.series import PANELS, DirectionSeries, RunSeries, run_series
from farline.plots.style import (
    LIMIT_COLOURS,
    STEPS_DARK,
    STEPS_LIGHT,
    WORDS_DARK,
    WORDS_LIGHT,
    ink_on,
)
from farline.profiles.response import ResponsePoint, Row, is_figure, is_invalid, setting_of
from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.plots.series import Numbers

SERIES_VALUES = 1_500_000
"""Values of all series together that a page may carry: about ten megabytes."""

POINTS_PER_RUN = 600
_PACKETS = {"udt.packet_bytes": 16, "udp.packet_bytes": 0, "tcp.mss_bytes": 0}
"""Options that say how large a packet is, and what of it is no payload (UDT's header)."""

_DRAWN = ("rtt_us", "cwnd_bytes", "flight_packets", "send_period_ns", "packets")
"""Sample columns that say which panels a run has besides its throughput."""

STREAMS_SHOWN = 16
"""Streams of a run that are drawn one by one; the rest is in the total."""


def payload(data: CampaignData) -> str:
    """The document as text that is safe inside a script element."""
    text = json.dumps(document(data), separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def document(data: CampaignData) -> dict[str, Any]:
    """Parameters, points, runs, series and looks."""
    axes = parameter_axes(data)
    places = {point.key: index for index, point in enumerate(data.throughput)}
    best = places[data.best.key] if data.best else None
    return {
        "parameters": [_axis(axis) for axis in axes],
        "quantities": [
            {"column": q.column, "label": q.label, "unit": q.unit} for q in data.quantities
        ],
        "points": [_point(data, axes, index) for index in range(len(data.throughput))],
        "settings": [settings_text(point.settings) for point in data.throughput],
        "reference": _reference(data),
        "best": best,
        "view": _view(data, axes),
        "runs": _runs(data, places),
        "series": _all_series(data),
        "panels": [{"key": p.key, "label": p.label, "unit": p.unit} for p in PANELS],
        "points_shown": any(1 < p.n <= ALL_POINTS_UP_TO for p in data.throughput),
        "points_up_to": ALL_POINTS_UP_TO,
        "colours": {
            "light": {"words": WORDS_LIGHT, "steps": STEPS_LIGHT},
            "dark": {"words": WORDS_DARK, "steps": STEPS_DARK},
        },
        "limits": {name: _limit(name) for name in LIMIT_TEXT},
    }


def parameter_axes(data: CampaignData) -> list[Axis]:
    """One axis per varied parameter; with none, an axis with the only setting that there is."""
    if not data.parameters:
        return [Axis("", "Setting", "category", (None,), (0.0,), ("the only setting",))]
    return [
        parameter_axis(name, (p.settings[name] for p in data.throughput), payload_bytes(data.rows))
        for name in data.parameters
    ]


def payload_bytes(rows: Sequence[Row]) -> float | None:
    """Payload of one packet, where all runs were asked to have the same."""
    for name, header_bytes in _PACKETS.items():
        values = {setting_of(row, name) for row in rows if not row.get("reference")}
        if len(values) == 1 and is_figure(value := values.pop()):
            return float(value) - header_bytes  # type: ignore[arg-type]
    return None


def _axis(axis: Axis) -> dict[str, Any]:
    return {
        "name": axis.name,
        "label": axis.label,
        "scale": axis.scale,
        "ordered": axis.ordered,
        "positions": axis.positions,
        "limits": axis.limits,
        "texts": axis.texts,
    }


def _point(data: CampaignData, axes: Sequence[Axis], index: int) -> dict[str, Any]:
    point = data.throughput[index]
    return {
        "s": [axis.values.index(point.settings.get(axis.name)) for axis in axes],
        "n": point.n,
        "failed": point.failed,
        "partial": point.partial,
        "limits": dict(point.limits),
        "q": {
            q.column: figures
            for q in data.quantities
            if (figures := _figures(data.points[q.column][index])) is not None
        },
    }


def _figures(point: ResponsePoint) -> dict[str, Any] | None:
    """Mean, interval, single values, and the five figures of a box; None without any value."""
    from farline.plots.distribution_figure import BOX_FROM

    if point.mean is None:
        return None
    figures: dict[str, Any] = {
        "m": _short(point.mean),
        "l": None if point.low is None else _short(point.low),
        "h": None if point.high is None else _short(point.high),
        "v": [_short(value) for value in point.values],
    }
    if point.n >= BOX_FROM:
        figures["b"] = [_short(value) for value in box_figures(point.values)]
    return figures


def box_figures(values: Sequence[float]) -> tuple[float, float, float, float, float]:
    """Lower whisker, quartiles, upper whisker; whiskers end at the last value within 1.5 boxes."""
    import numpy as np

    low, middle, high = (float(x) for x in np.percentile(values, [25, 50, 75]))
    reach = 1.5 * (high - low)
    inside = [value for value in values if low - reach <= value <= high + reach]
    return min(inside), low, middle, high, max(inside)


def _reference(data: CampaignData) -> dict[str, Any] | None:
    if not data.reference:
        return None
    figures = {column: _figures(point) for column, point in data.reference.items()}
    return {"q": {column: figure for column, figure in figures.items() if figure is not None}}


def _view(data: CampaignData, axes: Sequence[Axis]) -> dict[str, Any]:
    views = default_views(data.throughput, data.parameters, data.best)
    if not views:
        return {"x": axes[0].name, "curve": None, "fixed": {}}
    x, curve, held = max(
        views, key=lambda view: len({point.settings[view[0]] for point in data.throughput})
    )
    values = {axis.name: axis.values for axis in axes}
    return {"x": x, "curve": curve, "fixed": {n: values[n].index(v) for n, v in held.items()}}


def _runs(data: CampaignData, places: Mapping[Any, int]) -> list[dict[str, Any]]:
    """One entry per run; runs of a reference off the grid belong to no point of it."""
    counts: dict[int, int] = {}
    runs = []
    for row in data.rows:
        point = places.get(tuple(setting_of(row, name) for name in data.parameters))
        if point is None or (row.get("reference") and not _of_grid(data, row)):
            continue
        counts[point] = counts.get(point, 0) + 1
        runs.append(_run(row, point, counts[point]))
    return runs


def _of_grid(data: CampaignData, row: Row) -> bool:
    return any(row["run_id"] in point.run_ids for point in data.throughput)


def _run(row: Row, point: int, number: int) -> dict[str, Any]:
    status, total = str(row["status"]), row.get("total_bps")
    known = is_figure(total)
    result = rate_human(float(total or 0.0)) if known else "no figure"
    if is_invalid(row):
        result += ", path not valid"
    return {
        "id": row["run_id"],
        "point": point,
        "status": status,
        "name": f"run {number}",
        "total": total if known else 0,
        "result": result if status == "complete" else f"{status}, {result}" if known else status,
        "note": _run_note(row, status),
        "missing": f"This run has no samples: {row.get('error') or 'none were kept'}.",
        "omitted": {
            way: row[f"{way}_omitted_s"]
            for way in ("forward", "reverse")
            if is_figure(row.get(f"{way}_omitted_s"))
        },
    }


def _run_note(row: Row, status: str) -> str:
    said = row.get("verdict_line") if status == "complete" else row.get("error")
    if status == "complete":
        return f"{str(said)[:1].upper()}{str(said)[1:]}" if said else ""
    how = "This run failed" if status == "failed" else "This run was interrupted"
    return f"{how}: {said or 'no reason was given'}."


def _all_series(data: CampaignData) -> dict[str, Any]:
    """Series of every run that has samples, within the page's budget."""
    per_run = SERIES_VALUES // max(1, len(data.samples))
    found = {}
    for run_id, samples in data.samples.items():
        streams = min(STREAMS_SHOWN, len(set(samples["stream"].tolist())))
        drawn = 1 + sum(bool((samples[name] >= 0).any()) for name in _DRAWN if name in samples)
        points = max(20, min(POINTS_PER_RUN, per_run // (2 + drawn * streams)))
        series = run_series(samples, points)
        if series is not None:
            found[run_id] = _series(series)
    return found


def _series(series: RunSeries) -> dict[str, Any]:
    return {
        "e": [round(float(edge), 4) for edge in series.edges_s],
        "d": [_direction(direction) for direction in series.directions],
    }


def _direction(direction: DirectionSeries) -> dict[str, Any]:
    shown = sorted(direction.streams_bps)[:STREAMS_SHOWN]
    return {
        "way": direction.way,
        "seen": direction.seen_by,
        "count": len(direction.streams_bps),
        "total": _numbers(direction.total_bps),
        "streams": [_numbers(direction.streams_bps[s]) for s in shown] if len(shown) > 1 else [],
        **{
            panel.key: [_numbers(table[s]) for s in shown if s in table]
            for panel in PANELS
            for table in [getattr(direction, panel.name)]
        },
    }


def _numbers(values: Numbers) -> list[float | None]:
    return [None if value != value else _short(value) for value in values.tolist()]


def _short(value: float) -> float:
    """Five digits, as a whole number where it is one: shorter JSON."""
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded.is_integer() else rounded


def _limit(name: str) -> dict[str, Any]:
    colour = LIMIT_COLOURS.get(name)
    return {"text": LIMIT_TEXT[name], "colour": colour, "on": ink_on(colour) if colour else None}
