"""The control-response figure: means over a parameter, one curve per value of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farline.plots.axes import Axis, shown_ticks
from farline.plots.curves import Curve, CurveSet
from farline.plots.labels import Quantity, parameter_label, quantity_unit, setting_text
from farline.plots.style import (
    FAILED,
    FAINT,
    MARKERS,
    new_figure,
    palette,
)
from farline.profiles.response import ResponsePoint, setting_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALL_POINTS_UP_TO = 10
"""Repetitions up to which every single run is drawn beside the mean."""

REFERENCE = "reference"
_LOG = {"log2": ", log scale", "log10": ", log scale"}


def draw_response(upper: CurveSet, lower: CurveSet | None = None) -> Figure:
    """`upper` over its parameter, with `lower` (CPU time, say) below it on the same x axis."""
    sets = [upper] if lower is None else [upper, lower]
    figure, panels = new_figure(
        len(sets),
        height_inches=2.5 if lower is None else 3.7,
        heights=[1.0] if lower is None else [1.5, 1.0],
    )
    for panel, curve_set in zip(panels, sets, strict=True):
        factor, unit = quantity_unit(curve_set.quantity, curve_figures(curve_set))
        draw_panel(panel, curve_set, factor)
        panel.set_ylim(bottom=0)
        panel.set_ylabel(with_unit(curve_set.quantity, unit))
    draw_parameter_axis(panels[-1], upper.axis)
    _legend(figure, panels[0], upper.curve_parameter)
    return figure


def _legend(figure: Figure, panel: Axes, curve_parameter: str | None) -> None:
    named = list(zip(*panel.get_legend_handles_labels(), strict=True))
    if len(named) < 2:
        return
    named.sort(key=lambda pair: pair[1] == REFERENCE)
    texts = [text for _, text in named]
    figure.legend(
        [handle for handle, _ in named],
        texts,
        title=parameter_label(curve_parameter) if curve_parameter else None,
        loc="outside upper left",
        ncols=min(len(texts), 5 if sum(map(len, texts)) < 22 else 3),
        alignment="left",
        columnspacing=1.0,
    )


def draw_panel(panel: Axes, curve_set: CurveSet, factor: float) -> None:
    """The curves of a set, in units of `factor`, with a label for each."""
    ordered = _ordered([curve.value for curve in curve_set.curves])
    colours = palette(len(curve_set.curves), ordered)
    for index, curve in enumerate(curve_set.curves):
        shift = _dodge(curve_set.axis, index, len(curve_set.curves))
        _draw_curve(panel, curve_set, curve, colours[index], MARKERS[index % 8], shift, factor)
    _draw_reference(panel, curve_set, factor)
    panel.set_xlim(*curve_set.axis.limits)


def _draw_curve(
    panel: Axes,
    curve_set: CurveSet,
    curve: Curve,
    colour: str,
    marker: str,
    shift: float,
    factor: float,
) -> None:
    measured = [p for p in curve.points if p.mean is not None]
    places = [_place(curve_set, p) + shift for p in measured]
    means = [(p.mean or 0.0) / factor for p in measured]
    bars = [
        [_below(p) / factor for p in measured],
        [_above(p) / factor for p in measured],
    ]
    name = curve_set.curve_parameter
    text = setting_text(name, curve.value) if name else curve_set.quantity.label
    panel.errorbar(
        places,
        means,
        yerr=bars,
        color=colour,
        marker=marker,
        # Between words there is nothing to join.
        linestyle="-" if curve_set.axis.ordered else "none",
        label=text,
        elinewidth=0.9,
        zorder=3,
    )
    for place, point in zip(places, measured, strict=True):
        if 1 < point.n <= ALL_POINTS_UP_TO:
            runs = [value / factor for value in point.values]
            panel.plot([place] * point.n, runs, ".", color=colour, alpha=0.4, ms=3.5, mew=0)
    lost = [_place(curve_set, p) + shift for p in curve.points if p.mean is None]
    if lost:
        edge = panel.get_xaxis_transform()
        panel.plot(lost, [0.03] * len(lost), "x", color=FAILED, transform=edge, ms=5)


def _draw_reference(panel: Axes, curve_set: CurveSet, factor: float) -> None:
    point = curve_set.reference
    if point is None or point.mean is None:
        return
    dashes = (0, (4, 2))
    panel.axhline(point.mean / factor, color=FAINT, ls=dashes, lw=1.0, zorder=2, label=REFERENCE)
    if point.low is not None and point.high is not None:
        panel.axhspan(point.low / factor, point.high / factor, color=FAINT, alpha=0.12, lw=0)


def draw_parameter_axis(panel: Axes, axis: Axis, label: str | None = None, room: int = 8) -> None:
    """Ticks and label of a parameter along x; there is room for `room` ticks."""
    shown = shown_ticks(axis, room)
    positions = [axis.positions[i] for i in shown]
    texts = [axis.texts[i] for i in shown]
    crowded = sum(len(text) for text in texts) > 42
    panel.set_xticks(
        positions, texts, rotation=30 if crowded else 0, ha="right" if crowded else "center"
    )
    panel.set_xlabel(label or axis.label + _LOG.get(axis.scale, ""))
    panel.minorticks_off()


def with_unit(quantity: Quantity, unit: str) -> str:
    """The label of an axis of results: "Throughput (Gbit/s)"."""
    return f"{quantity.label} ({unit})" if unit else quantity.label


def curve_figures(curve_set: CurveSet) -> list[float]:
    """Every single figure behind the curves, in its raw unit."""
    points = [p for curve in curve_set.curves for p in curve.points]
    return [value for p in points for value in p.values]


def _place(curve_set: CurveSet, point: ResponsePoint) -> float:
    return curve_set.axis.position(point.settings[curve_set.axis.name])


def _dodge(axis: Axis, index: int, count: int) -> float:
    """A small step aside, so that the error bars of curves do not hide each other."""
    low, high = axis.limits
    return (index - (count - 1) / 2) * (0.006 if axis.ordered else 0.03) * (high - low)


def _below(point: ResponsePoint) -> float:
    return 0.0 if point.mean is None or point.low is None else point.mean - point.low


def _above(point: ResponsePoint) -> float:
    return 0.0 if point.mean is None or point.high is None else point.high - point.mean


def _ordered(values: Sequence[object]) -> bool:
    return len(values) > 1 and all(setting_order(value)[0] < 2 for value in values)  # type: ignore[arg-type]
