"""The queues of an emulated path over one run: what waited, and when packets were lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farline.plots.labels import size_unit
from farline.plots.style import FAILED, new_figure, palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from farline.plots.link_series import LinkSeries

MAX_QUEUES = 6
"""Queues that are drawn: those in which most waited."""


def draw_queues(series: Sequence[LinkSeries]) -> Figure:
    """The most that waited in each interval, per queue; crosses where packets were lost."""
    shown = sorted(series, key=lambda one: -int(one.backlog_max_bytes.max(initial=0)))[:MAX_QUEUES]
    figure, panels = new_figure(1, height_inches=2.2, heights=[1.0])
    panel = panels[0]
    factor, unit = size_unit([float(one.backlog_max_bytes.max(initial=0)) for one in shown])
    for one, colour in zip(shown, palette(len(shown), False), strict=True):
        text = f"{one.name}, {one.direction}"
        panel.plot(one.times_s, one.backlog_max_bytes / factor, color=colour, lw=1.0, label=text)
        lost = one.drops > 0
        if lost.any():
            heights = one.backlog_max_bytes[lost] / factor
            panel.plot(one.times_s[lost], heights, "x", color=FAILED, ms=4)
    panel.set_ylabel(f"Waiting ({unit})")
    panel.set_xlabel("Time (s)")
    panel.set_ylim(bottom=0)
    panel.set_xlim(left=0)
    figure.legend(loc="outside upper left", ncols=3)
    return figure
