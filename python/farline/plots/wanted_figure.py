"""Draws a figure that a plan asks for: panels side by side, results one above the other.

The panels of one row share their y axis, so that curves in different panels can be compared, as
Yun et al. 2015, Figs. 6 and 7 are read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from farline.plots.axes import Axis, Scale
from farline.plots.curves import CurveSet, select_curves
from farline.plots.data import CampaignData, middle_run
from farline.plots.labels import (
    QUANTITIES,
    THROUGHPUT,
    Quantity,
    parameter_label,
    percent,
    quantity_unit,
    setting_text,
    settings_text,
)
from farline.plots.payload import payload_bytes
from farline.plots.response_figure import (
    curve_figures,
    draw_panel,
    draw_parameter_axis,
    with_unit,
)
from farline.plots.series import RunSeries, run_series
from farline.plots.style import COLUMN_INCHES, FAILED, INK, MARKERS, PAGE_INCHES, palette
from farline.plots.wanted import WantedFigure, line_places
from farline.profiles.response import ResponsePoint, Setting, setting_of, setting_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEXT_ROOM = {True: 26, False: 40}
"""Characters that fit side by side above or below a panel with neighbours, and one without."""

HEADROOM = 1.15

MODEL_STYLES = ("-", "--", "-.", ":")
"""Kinds of line of the models of a figure."""


def draw_wanted(data: CampaignData, wanted: WantedFigure) -> Figure | None:
    """The figure; None where these runs do not vary its parameter, or have no such setting."""
    if wanted.x is not None and wanted.x not in data.parameters:
        return None
    if _stands_elsewhere(data, wanted):
        return None
    if wanted.kind == "series":
        return _draw_series(data, wanted)
    rows = [_panel_sets(data, wanted, quantity) for quantity in _quantities(data, wanted)]
    if not rows or not any(curve_set.curves for row in rows for curve_set in row):
        return None
    figure, panels = _panels(len(rows), len(rows[0]))
    for row, curve_sets in zip(panels, rows, strict=True):
        _draw_row(row, curve_sets, wanted)
    for row in panels[1:]:
        for panel in row:
            if (legend := panel.get_legend()) is not None:
                legend.remove()
    for row in panels[:-1]:
        for panel in row:
            panel.set_xlabel("")
    return figure


def wanted_caption(data: CampaignData, wanted: WantedFigure) -> str:
    """What the plan says of it, what is held, and what the bars mean."""
    if wanted.kind == "series":
        means = "Payload per interval at the receiver in the middle run of each setting."
    else:
        means = f"Means with {percent(data.confidence)} confidence intervals (Student's t)."
        means += " Intervals without an end extend beyond the axes."
    held = _held(data, wanted)
    at = f"At {settings_text(held)}. " if held else ""
    said = f"{wanted.caption.rstrip('.')}. " if wanted.caption else ""
    return f"{said}{at}{means}"


def _stands_elsewhere(data: CampaignData, wanted: WantedFigure) -> bool:
    """Whether something that does not vary stands at another value than the figure wants."""
    grid = [row for row in data.rows if not row.get("reference")] or data.rows
    held = {name: v for name, v in wanted.where.items() if name not in data.parameters}
    return any(all(setting_of(row, n) != v for row in grid) for n, v in held.items())


def _quantities(data: CampaignData, wanted: WantedFigure) -> list[Quantity]:
    """What is drawn of each setting, as far as the runs have figures for it."""
    known = {q.column: q for q in QUANTITIES if q.column in data.points}
    return [known[column] for column in wanted.y if column in known]


def _held(data: CampaignData, wanted: WantedFigure) -> dict[str, Setting]:
    """Where what lies on no axis stands: as the plan says, else as in the best setting."""
    said = {name: value for name, value in wanted.where.items() if name in data.parameters}
    fitting = [p for p in data.throughput if _stands_at(p, said)]
    best = max(fitting, key=lambda point: point.mean or -1.0, default=None)
    free = [name for name in data.parameters if name not in (wanted.x, wanted.curves, *said)]
    return {**said, **({name: best.settings[name] for name in free} if best else {})}


def _stands_at(point: ResponsePoint, held: Mapping[str, Setting]) -> bool:
    return all(point.settings[name] == value for name, value in held.items())


def _panel_sets(data: CampaignData, wanted: WantedFigure, quantity: Quantity) -> list[CurveSet]:
    """One set of curves per panel that has any measured point."""
    curves = wanted.curves if wanted.curves in data.parameters else None
    held, points = _held(data, wanted), data.points[quantity.column]
    scale: Scale | None = None if wanted.x_scale == "auto" else wanted.x_scale
    shown = [p for p in points if _stands_at(p, held)]
    sets = []
    for values in wanted.panels if curves and wanted.panels else [None]:
        part = [p for p in shown if values is None or p.settings[str(curves)] in values]
        if part and wanted.x is not None:
            sets.append(
                select_curves(
                    part, quantity, wanted.x, curves, held, payload_bytes(data.rows), scale=scale
                )
            )
    return sets


def _panels(rows: int, columns: int) -> tuple[Figure, list[list[Axes]]]:
    from matplotlib.figure import Figure

    width = PAGE_INCHES if columns > 1 else COLUMN_INCHES * (1.3 if rows > 1 else 1.0)
    height = 0.9 + (2.1 if rows == 1 else 1.7) * rows
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, sharex="col", sharey="row", squeeze=False)
    return figure, [list(row) for row in grid]


def _draw_row(panels: Sequence[Axes], curve_sets: Sequence[CurveSet], wanted: WantedFigure) -> None:
    figures = [value for curve_set in curve_sets for value in curve_figures(curve_set)]
    factor, unit = quantity_unit(curve_sets[0].quantity, figures)
    for number, (panel, curve_set) in enumerate(zip(panels, curve_sets, strict=True)):
        if wanted.kind == "bars":
            curve_set = replace(curve_set, axis=_evenly(curve_set.axis))
            _draw_bars(panel, curve_set, factor)
        else:
            draw_panel(panel, curve_set, factor)
            figures += _draw_models(panel, curve_set, wanted, factor)
        widest = max(map(len, curve_set.axis.texts))
        room = TEXT_ROOM[len(panels) > 1] // max(2, widest)
        draw_parameter_axis(panel, curve_set.axis, wanted.x_label, room)
        _head(panel, curve_set.curve_parameter, number if len(panels) > 1 else None)
    panels[0].set_ylim(*_from_zero(max(figures, default=0.0) / factor))
    panels[0].set_ylabel(with_unit(curve_sets[0].quantity, unit))


def _draw_models(
    panel: Axes, curve_set: CurveSet, wanted: WantedFigure, factor: float
) -> list[float]:
    """The lines of models in a panel of throughput; every throughput that they reach."""
    if curve_set.quantity.unit != THROUGHPUT.unit:
        return []
    reached: list[float] = []
    for line, style in zip(wanted.models, MODEL_STYLES * len(wanted.models), strict=False):
        places, rates = line_places(line, curve_set.axis)
        heights = [rate / factor for rate in rates]
        panel.plot(places, heights, ls=style, color=INK, lw=1.0, label=line.name, zorder=2)
        reached += rates
    return reached


def _from_zero(highest: float) -> tuple[float, float]:
    """The y axis of a row: to a little above the highest run, wherever an interval ends.

    Of two runs the interval may reach ten times as far, which would leave no room for the means.
    """
    return 0.0, HEADROOM * highest if highest > 0 else 1.0


def _head(panel: Axes, curve_parameter: str | None, number: int | None) -> None:
    """The panel's letter, and above it the legend of its curves."""
    if number is not None:
        panel.set_title(f"({chr(ord('a') + number)})")
    handles, texts = panel.get_legend_handles_labels()
    if len(handles) < 2 and (number is None or curve_parameter is None):
        return
    columns = TEXT_ROOM[number is not None] // (max(map(len, texts)) + 3)
    panel.legend(
        handles,
        texts,
        title=parameter_label(curve_parameter) if curve_parameter else None,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.1 if number is not None else 1.0),
        ncols=min(len(texts), max(1, columns)),
        columnspacing=0.8,
        handlelength=1.2,
        fontsize=7,
    )


def _evenly(axis: Axis) -> Axis:
    """The axis with its values at even distances: bars belong to settings, not to quantities."""
    places = tuple(float(index) for index in range(len(axis.values)))
    return replace(axis, scale="category", positions=places)


def _draw_bars(panel: Axes, curve_set: CurveSet, factor: float) -> None:
    """Bars of means beside each other, one colour for each curve."""
    width = 0.8 / max(1, len(curve_set.curves))
    names = [curve.value for curve in curve_set.curves]
    ordered = all(setting_order(name)[0] < 2 for name in names)
    for index, curve in enumerate(curve_set.curves):
        aside = (index - (len(names) - 1) / 2) * width
        for point in curve.points:
            place = _place(curve_set, point) + aside
            if point.mean is None:
                edge = panel.get_xaxis_transform()
                panel.plot(place, 0.03, "x", color=FAILED, ms=5, transform=edge)
        measured = [p for p in curve.points if p.mean is not None]
        name = curve_set.curve_parameter
        panel.bar(
            [_place(curve_set, p) + aside for p in measured],
            [(p.mean or 0.0) / factor for p in measured],
            width * 0.92,
            yerr=[
                [_distance(p, p.low) / factor for p in measured],
                [_distance(p, p.high) / factor for p in measured],
            ],
            color=palette(len(names), ordered)[index],
            error_kw={"elinewidth": 0.9},
            label=setting_text(name, curve.value) if name else "",
        )
    panel.set_xlim(-0.6, len(curve_set.axis.values) - 0.4)


def _place(curve_set: CurveSet, point: ResponsePoint) -> float:
    return curve_set.axis.position(point.settings[curve_set.axis.name])


def _distance(point: ResponsePoint, end: float | None) -> float:
    """From the mean to an end of its interval; NaN, which draws nothing, where there is none."""
    return math.nan if point.mean is None or end is None else abs(end - point.mean)


def _draw_series(data: CampaignData, wanted: WantedFigure) -> Figure | None:
    """Throughput of one run of each setting over time, a panel for each group of settings."""
    panels = [part for part in _series_of(data, wanted) if part]
    if not panels:
        return None
    figure, (row,) = _panels(1, len(panels))
    peaks = [float(d.total_bps.max()) for p in panels for _, s in p for d in s.directions]
    factor, unit = quantity_unit(THROUGHPUT, peaks)
    for number, (panel, part) in enumerate(zip(row, panels, strict=True)):
        colours = palette(len(part), ordered=False)
        for (text, series), colour, marker in zip(part, colours, MARKERS * len(part), strict=False):
            (way, *_) = series.directions
            panel.plot(
                series.middles_s,
                way.total_bps / factor,
                color=colour,
                marker=marker,
                markevery=max(1, len(series.middles_s) // 12),
                lw=1.0,
                ms=3,
                label=text,
            )
        panel.set_xlabel("Time since the start of the run (s)")
        _head(panel, wanted.curves, number if len(panels) > 1 else None)
    row[0].set_ylim(*_from_zero(max(peaks) / factor))
    row[0].set_ylabel(with_unit(THROUGHPUT, unit))
    return figure


def _series_of(data: CampaignData, wanted: WantedFigure) -> list[list[tuple[str, RunSeries]]]:
    """Name and series of the middle run of each setting, panel by panel."""
    curves = wanted.curves
    if curves not in data.parameters or curves is None:
        return []
    held = _held(data, wanted)
    shown = {p.settings[curves]: p for p in data.throughput if _stands_at(p, held)}
    groups = wanted.panels or (tuple(shown),)
    return [
        [
            (setting_text(curves, value), series)
            for value in group
            if (point := shown.get(value)) is not None
            and (run_id := middle_run(point)) in data.samples
            and (series := run_series(data.samples[str(run_id)])) is not None
        ]
        for group in groups
    ]
