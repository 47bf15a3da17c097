"""The picture of a storage profile: rates over processes with the fitted caps; rates over requests.

Takes the document of a profile and values of the fitted curve; computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import SystemFailure
from farline.plots.labels import rate_unit
from farline.plots.page_parts import Tile, render
from farline.plots.style import INK, PAGE_INCHES, new_figure, palette, paper_style, save
from farline.plots.tuning_figure import inline
from farline.plots.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Series = Sequence[tuple[float, float]]
"""Pairs of x and bit/s."""


@dataclass(frozen=True, slots=True)
class StoragePicture:
    """What is drawn, by action. `curves` are close points of the fitted caps."""

    over_processes: Mapping[str, Series]
    curves: Mapping[str, Series]
    over_requests: Mapping[str, Series]


@dataclass(frozen=True, slots=True)
class StoragePage:
    """What is written around the picture."""

    heading: str
    facts: str
    lead: str
    tiles: Sequence[Tile]
    lines: Sequence[str]
    heads: Sequence[str]
    table: Sequence[Sequence[str]]


def draw_storage(picture: StoragePicture) -> Figure:
    """Two panels: over processes with the fitted curve, over the size of requests."""
    every = [picture.over_processes, picture.curves, picture.over_requests]
    rates = [rate for found in every for one in found.values() for _, rate in one] or [1.0]
    factor, unit = rate_unit(rates)
    figure, (left, right) = new_figure(2, PAGE_INCHES, 3.0, beside=True)
    colours = dict(zip(("read", "write"), palette(8, False), strict=False))
    for action, colour in colours.items():
        points = picture.over_processes.get(action, ())
        _points(left, points, factor, colour, f"{action}, measured")
        curve = picture.curves.get(action, ())
        if curve:
            x, y = zip(*((n, rate / factor) for n, rate in curve), strict=True)
            left.plot(x, y, color=colour, label=f"{action}, fitted")
        _points(right, picture.over_requests.get(action, ()), factor, colour, "")
    for panel, label in ((left, "Processes"), (right, "Request (KiB)")):
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter(lambda value, _place: f"{value:g}")
        panel.set_xlabel(label)
    left.set_ylim(bottom=0, top=1.05 * max(rates) / factor)
    left.set_ylabel(f"Rate ({unit})")
    handles, texts = left.get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside upper left", ncols=4, columnspacing=1.0)
    return figure


def _points(panel: Axes, points: Series, factor: float, colour: object, label: str) -> None:
    if not points:
        return
    x, y = zip(*((at, rate / factor) for at, rate in points), strict=True)
    panel.plot(x, y, "o", color=INK, mfc=colour, ms=5, label=label or None, zorder=4)


def save_storage(picture: StoragePicture, page: StoragePage, path: Path) -> None:
    """Writes the picture (.png, .svg) or a page around it (.html) that needs nothing else.

    Raises:
        SystemFailure: when the file cannot be written.
    """
    try:
        if path.suffix == ".html":
            image = inline(lambda: draw_storage(picture), "storage")
            values = {"page": page, "image": image}
            text = render("storage.html.j2", values, ("page/report.css",), (), "{}")
            write_whole(path, text)
            return
        with paper_style():
            save(draw_storage(picture), path.with_suffix(""), [path.suffix.lstrip(".")])
    except OSError as error:
        raise SystemFailure(f"{path}: cannot write into it: {error.strerror or error}") from None
