"""C_UC over [smallest RTT, RTT], for each site and for all (Rao et al. 2018, Figs. 10 to 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farline.plots.analysis_values import ProfileView, Running
from farline.plots.profile_figure import (
    COLUMNS,
    TOGETHER,
    is_ordered,
    legend_columns,
    legend_title,
    many_panels,
)
from farline.plots.rtt_axis import RttAxis, draw_rtt_axis, rtt_axis
from farline.plots.style import FAINT, GRID, MARKERS, new_figure, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABEL = "C_UC up to this RTT"
PRINTED = "$C_{UC}$ up to this RTT"
FLAT = 0.75
"""C_UC of a profile that is at capacity throughout."""


def draw_running(
    views: Sequence[ProfileView], log: bool = False, together: int = TOGETHER
) -> Figure:
    """The running curves of those profiles that have one; raises ValueError where none has."""
    shown = [(view, view.running) for view in views if view.running is not None]
    if not shown:
        raise ValueError("no profile has a running curve")
    axis = rtt_axis((time for _, curve in shown for time in curve.rtt_ms.tolist()), log)
    low, high = _limits([curve for _, curve in shown])
    if len(shown) > together:
        return _draw_each(shown, axis, (low, high))
    figure, (panel,) = new_figure(1, height_inches=2.5)
    colours = palette(len(shown), is_ordered([view for view, _ in shown]))
    for index, (view, curve) in enumerate(shown):
        _draw_curve(panel, curve, axis, colours[index], MARKERS[index % len(MARKERS)], view.name)
    _finish(panel, axis, (low, high))
    panel.set_ylabel(PRINTED)
    if len(shown) > 1:
        columns = legend_columns([view.name for view, _ in shown])
        figure.legend(
            title=legend_title(shown[0][0].group),
            loc="outside upper left",
            ncols=min(columns, len(shown)),
            alignment="left",
            columnspacing=1.0,
        )
    return figure


def _draw_curve(
    panel: Axes,
    curve: Running,
    axis: RttAxis,
    colour: str,
    marker: str,
    name: str,
    small: bool = False,
) -> None:
    places = axis.place(curve.rtt_ms)
    size = 2.8 if small or len(places) > 14 else 4.0
    width = 1.1 if small else 1.4
    panel.plot(
        places, curve.c_uc, color=colour, marker=marker, ms=size, lw=width, label=name, zorder=3
    )
    if curve.low is not None and curve.high is not None:
        panel.fill_between(places, curve.low, curve.high, color=colour, alpha=0.15, lw=0, zorder=2)


def _finish(panel: Axes, axis: RttAxis, limits: tuple[float, float], room: int = 7) -> None:
    panel.axhline(FLAT, color=FAINT, lw=0.8, ls=(0, (1, 1.5)), zorder=1)
    panel.annotate(
        "at capacity",
        (1.0, FLAT),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 1.5),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=7,
        color=FAINT,
    )
    draw_rtt_axis(panel, axis, room, label=room > 4)
    panel.set_ylim(*limits)


def _limits(curves: Sequence[Running]) -> tuple[float, float]:
    """From 0 to 1 as in the paper, further where a curve leaves that range."""
    import numpy as np

    values = np.concatenate([curve.c_uc for curve in curves])
    known = values[np.isfinite(values)].tolist() or [0.0]
    return min(0.0, min(known) - 0.05), max(1.0, max(known) + 0.05)


def _draw_each(
    shown: Sequence[tuple[ProfileView, Running]], axis: RttAxis, limits: tuple[float, float]
) -> Figure:
    panels, figure = many_panels(len(shown))
    for index, (panel, (view, curve)) in enumerate(zip(panels, shown, strict=True)):
        for _, other in shown:
            panel.plot(axis.place(other.rtt_ms), other.c_uc, color=GRID, lw=0.8, zorder=1)
        _draw_curve(panel, curve, axis, palette(1, False)[0], "o", view.name, small=True)
        panel.set_title(view.name)
        _finish(panel, axis, limits, 4)
        panel.tick_params(labelbottom=index + COLUMNS >= len(shown))
    figure.supxlabel(axis.label, fontsize=8)
    figure.supylabel(PRINTED, fontsize=8)
    return figure
