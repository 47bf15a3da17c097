"""Repetitions of each setting: every run, box, mean and its confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farline.plots.labels import Quantity, plural, quantity_unit
from farline.plots.style import FAILED, FAINT, INK, PAGE_INCHES, WORDS_LIGHT, new_figure
from farline.profiles.response import ResponsePoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOX_FROM = 5
"""Runs from which quartiles say something."""


def draw_distribution(
    named_points: Sequence[tuple[str, ResponsePoint]], quantity: Quantity
) -> Figure:
    """One row per setting in the order given, the first on top; its text is on the left."""
    height = 0.75 + 0.24 * len(named_points)
    figure, (panel,) = new_figure(1, PAGE_INCHES, height)
    figures = [value for _, point in named_points for value in point.values]
    factor, unit = quantity_unit(quantity, figures)
    for row, (_, point) in enumerate(named_points):
        _draw_row(panel, row, point, factor)
    panel.set_yticks(range(len(named_points)), [_row_text(*named) for named in named_points])
    panel.set_ylim(len(named_points) - 0.4, -0.6)
    panel.set_xlabel(f"{quantity.label} ({unit})" if unit else quantity.label)
    panel.grid(axis="y", visible=False)
    panel.grid(axis="x", visible=True)
    panel.spines["left"].set_visible(False)
    panel.tick_params(axis="y", length=0)
    return figure


def _draw_row(panel: Axes, row: int, point: ResponsePoint, factor: float) -> None:
    runs = [value / factor for value in point.values]
    if point.n >= BOX_FROM:
        panel.boxplot(
            [runs],
            positions=[row],
            orientation="horizontal",
            widths=0.55,
            showfliers=False,
            manage_ticks=False,
            boxprops={"color": FAINT, "lw": 0.7},
            whiskerprops={"color": FAINT, "lw": 0.7},
            capprops={"color": FAINT, "lw": 0.7},
            medianprops={"color": INK, "lw": 1.0},
        )
    aside = [row + _jitter(index, point.n) for index in range(point.n)]
    panel.plot(runs, aside, "o", color=WORDS_LIGHT[0], alpha=0.5, ms=3, mew=0, zorder=3)
    if point.mean is None:
        edge = panel.get_yaxis_transform()
        panel.text(0.01, row, "no run completed", color=FAILED, va="center", transform=edge)
    elif point.low is not None and point.high is not None:
        ends = [[(point.mean - point.low) / factor], [(point.high - point.mean) / factor]]
        panel.errorbar(
            point.mean / factor, row, xerr=ends, fmt="D", ms=3.2, color=WORDS_LIGHT[1], zorder=4
        )


def _jitter(index: int, count: int) -> float:
    """Places runs above and below the row by turns, the same every time."""
    if count < 2:
        return 0.0
    return 0.16 * (((index * 7) % count) / (count - 1) * 2 - 1)


def _row_text(text: str, point: ResponsePoint) -> str:
    lost = point.failed + point.partial
    return f"{text}  (n = {point.n}" + (f", {plural(lost, 'run')} not complete)" if lost else ")")
