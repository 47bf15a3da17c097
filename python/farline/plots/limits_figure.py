"""What limited the runs: one bar per setting, one segment per verdict, failures beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from farline.plots.labels import LIMIT_TEXT
from farline.plots.style import FAILED, LIMIT_COLOURS, PAGE_INCHES, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_limits(bars: Sequence[tuple[str, Mapping[str, int]]], label: str) -> Figure:
    """Each bar is a text and its counts by limit; "not complete" counts failed and partial runs."""
    from matplotlib.ticker import MaxNLocator

    names = [name for name in LIMIT_TEXT if any(counts.get(name) for _, counts in bars)]
    figure, (panel,) = new_figure(1, PAGE_INCHES / 2 + 1, 1.2 + 0.26 * len(bars))
    starts = [0] * len(bars)
    for name in names:
        _draw_segments(panel, name, [counts.get(name, 0) for _, counts in bars], starts)
    panel.set_yticks(range(len(bars)), [text for text, _ in bars])
    panel.invert_yaxis()
    panel.set_xlabel("Runs")
    panel.set_ylabel(label)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.grid(axis="y", visible=False)
    panel.tick_params(axis="y", length=0)
    panel.spines["left"].set_visible(False)
    handles, texts = panel.get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside upper left", ncols=3, columnspacing=1.0)
    return figure


def _draw_segments(panel: Axes, name: str, counts: Sequence[int], starts: list[int]) -> None:
    failed = name == "not complete"
    bars = [index for index, count in enumerate(counts) if count]
    panel.barh(
        bars,
        [counts[index] for index in bars],
        left=[starts[index] for index in bars],
        height=0.62,
        label=LIMIT_TEXT[name],
        color="white" if failed else LIMIT_COLOURS[name],
        edgecolor=FAILED if failed else "white",
        hatch="////" if failed else None,
        linewidth=0.6,
    )
    for index, count in enumerate(counts):
        starts[index] += count
