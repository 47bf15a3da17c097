"""Figures of how a line is shared, over the applied background load (Yu et al. 2014, Fig. 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.fairness.contest import Contest, Estimate, Point
from farline.fairness.curve import ideal_rates
from farline.plots.contention_values import ContentionData
from farline.plots.labels import rate_unit
from farline.plots.style import (
    FAINT,
    INK,
    MARKERS,
    PAGE_INCHES,
    new_figure,
    palette,
    paper_style,
    save,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_IDEAL_PLACES = 200
_ROOM = 1.12
"""Top of axes of shares and of the line's rate: intervals that reach beyond are cut there."""
_LEAST_HARM = -0.12

Drawer = Callable[[ContentionData], "Figure"]


def draw_rates(data: ContentionData) -> Figure:
    """A panel per transfer: its throughput (solid) and the background's (dashed), and the ideal."""
    factor, unit = rate_unit([data.capacity_bps])
    styled = _styled(data)
    figure, panels = new_figure(len(styled), PAGE_INCHES, 1.3 + 1.45 * len(styled))
    for panel, (contest, colour, marker) in zip(panels, styled, strict=True):
        _draw(panel, contest, "subject_bps", factor, factor, colour, marker, "-", "transfer")
        dashes = (0, (4, 2))
        _draw(panel, contest, "background_bps", factor, factor, INK, "o", dashes, "background")
        _draw_ideal(panel, data, contest, factor)
        panel.set_title(data.names[contest.subject], color=colour)
        panel.set_ylim(0, _ROOM * data.capacity_bps / factor)
        panel.set_ylabel(unit)
    _finish(figure, panels, data, factor, unit)
    return figure


def draw_use(data: ContentionData) -> Figure:
    """What both use of the line together, and Jain's index over demands."""
    factor, unit = rate_unit([data.capacity_bps])
    figure, panels = new_figure(1, PAGE_INCHES, 2.9)
    panel = panels[0]
    for contest, colour, marker in _styled(data):
        name = data.names[contest.subject]
        for measure, line, text in (
            ("utilisation", "-", f"utilisation with {name}"),
            ("jain_demand", (0, (4, 2)), f"Jain's index with {name}"),
        ):
            _draw(panel, contest, measure, factor, 1.0, colour, marker, line, text)
    panel.axhline(1.0, color=FAINT, lw=0.7, zorder=1)
    panel.set_ylim(0, _ROOM)
    panel.set_ylabel("Share of the line, index")
    _finish(figure, panels, data, factor, unit)
    return figure


def draw_harm(data: ContentionData) -> Figure:
    """Harm of each transfer to the background, beside what a fair sharer would do."""
    factor, unit = rate_unit([data.capacity_bps])
    figure, panels = new_figure(1, PAGE_INCHES, 2.9)
    panel = panels[0]
    first = next(iter(data.contests.values()))
    for contest, colour, marker in _styled(data):
        _draw(panel, contest, "harm", factor, 1.0, colour, marker, "-", data.names[contest.subject])
    loads = [point.load_bps / factor for point in first.points]
    fair = [point.measures["harm_fair"].mean for point in first.points]
    panel.plot(loads, fair, color=FAINT, ls=(0, (1, 1.2)), label="a fair sharer", zorder=2)
    panel.set_ylim(_LEAST_HARM, _ROOM)
    panel.set_ylabel("Harm to the background's rate")
    _finish(figure, panels, data, factor, unit)
    return figure


FIGURES: Mapping[str, tuple[Drawer, str]] = {
    "share": (
        draw_rates,
        "Throughput of each transfer and its background against the applied background load. Dots"
        " are means over repetitions, whiskers their confidence intervals, cut at the axis. Dotted:"
        " max-min fair shares per flow.",
    ),
    "utilisation": (
        draw_use,
        "What both use of the line together, and Jain's index of rates over max-min fair shares: 1"
        " where everybody has what is theirs.",
    ),
    "harm": (
        draw_harm,
        "Harm to the throughput of the background: 0 is none, 1 is all of it. Dotted: the harm of a"
        " sharer that takes its max-min fair share.",
    ),
}
"""Figures by name, with their captions."""


def write_figures(data: ContentionData, folder: Path, formats: Iterable[str]) -> list[Path]:
    """Every figure in every format.

    Raises:
        OSError: when the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    kinds = list(formats)
    with paper_style():
        for name, (draw, _caption) in FIGURES.items():
            written += save(draw(data), folder / name, kinds)
    return written


def _styled(data: ContentionData) -> list[tuple[Contest, str, str]]:
    found = list(data.contests.values())
    colours = palette(len(found), False)
    return [
        (contest, colours[index], MARKERS[index % len(MARKERS)])
        for index, contest in enumerate(found)
    ]


def _draw(
    panel: Axes,
    contest: Contest,
    measure: str,
    load_factor: float,
    factor: float,
    colour: str,
    marker: str,
    line: str | tuple[int, Sequence[float]],
    label: str,
) -> None:
    """One measure over the load, with its intervals."""
    known: list[tuple[Point, Estimate]] = [
        (point, point.measures[measure]) for point in contest.points if measure in point.measures
    ]
    if not known:
        return
    panel.errorbar(
        [point.load_bps / load_factor for point, _ in known],
        [one.mean / factor for _, one in known],
        yerr=[
            [0.0 if one.low is None else (one.mean - one.low) / factor for _, one in known],
            [0.0 if one.high is None else (one.high - one.mean) / factor for _, one in known],
        ],
        color=colour, marker=marker, mfc=colour if line == "-" else "white", ls=line, label=label,
        elinewidth=0.8, zorder=3,
    )  # fmt: skip


def _draw_ideal(panel: Axes, data: ContentionData, contest: Contest, factor: float) -> None:
    """The ideal curves for the flows of both sides."""
    last = contest.points[-1].load_bps
    loads = [last * index / _IDEAL_PLACES for index in range(1, _IDEAL_PLACES + 1)]
    flows = data.flows[contest.subject], data.background_flows
    rates = [ideal_rates(x, data.capacity_bps, *flows) for x in loads]
    style: dict[str, Any] = {"color": FAINT, "ls": (0, (1, 1.2)), "zorder": 2, "lw": 1.0}
    x = [load / factor for load in loads]
    text = "fair shares per flow"
    panel.plot(x, [rate[0] / factor for rate in rates], label=text, **style)
    panel.plot(x, [rate[1] / factor for rate in rates], **style)


def _finish(
    figure: Figure, panels: Sequence[Axes], data: ContentionData, factor: float, unit: str
) -> None:
    """Axis of the load, and one legend for what all panels have."""
    last = max(point.load_bps for one in data.contests.values() for point in one.points)
    panels[-1].set_xlim(0, 1.03 * last / factor)
    panels[-1].set_xlabel(f"Applied background load ({unit}): {data.background}")
    handles, texts = panels[0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside upper left", ncols=3, columnspacing=1.0)
