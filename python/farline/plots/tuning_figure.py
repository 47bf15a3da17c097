"""The picture of a search: samples over streams, the fitted curve, what is believed, the choice."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import SystemFailure
from farline.plots.labels import rate_unit
from farline.plots.page_parts import Tile, render
from farline.plots.style import FAINT, INK, PAGE_INCHES, new_figure, palette, paper_style, save
from farline.plots.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Point:
    """A throughput at a number of streams; with an interval where it is believed, not sampled."""

    streams: float
    rate_bps: float
    low_bps: float | None = None
    high_bps: float | None = None


@dataclass(frozen=True, slots=True)
class TuningPicture:
    """What is drawn. `curve` are close points of the fitted curve; empty without one."""

    samples: Sequence[Point]
    believed: Sequence[Point]
    curve: Sequence[Point]
    chosen: int
    default: int


@dataclass(frozen=True, slots=True)
class TuningPage:
    """What is written around the picture."""

    heading: str
    facts: str
    lead: str
    tiles: Sequence[Tile]
    lines: Sequence[str]
    table: Sequence[tuple[str, ...]]
    """Rows of the samples: setting, throughput, time, moved, limited by."""


def draw_tuning(picture: TuningPicture) -> Figure:
    """Throughput over streams, a step of the axis for each doubling.

    A band holds what is believed of each setting (4 of 5 transfers); two vertical lines stand at
    the choice and at the default.
    """
    points = [*picture.samples, *picture.believed, *picture.curve]
    highest = [point.high_bps or point.rate_bps for point in points] or [1.0]
    factor, unit = rate_unit(highest)
    figure, (panel,) = new_figure(1, PAGE_INCHES, 3.2)
    blue, orange, green, *_ = palette(8, False)
    panel.axvline(picture.default, color=FAINT, lw=1.0, ls=(0, (1, 1.5)), label="default")
    panel.axvline(picture.chosen, color=green, lw=1.2, ls=(0, (4, 1.5)), label="choice")
    if picture.believed:
        x = [point.streams for point in picture.believed]
        low = [(p.low_bps or p.rate_bps) / factor for p in picture.believed]
        high = [(p.high_bps or p.rate_bps) / factor for p in picture.believed]
        panel.fill_between(x, low, high, color=blue, alpha=0.12, lw=0, label="believed, 80 %")
        panel.plot(x, [p.rate_bps / factor for p in picture.believed], color=blue, lw=1.0)
    if picture.curve:
        x = [point.streams for point in picture.curve]
        panel.plot(x, [p.rate_bps / factor for p in picture.curve], color=orange, label="fitted")
    panel.plot(
        [p.streams for p in picture.samples], [p.rate_bps / factor for p in picture.samples],
        "o", color=INK, mfc="white", ms=5, label="sampled", zorder=4,
    )  # fmt: skip
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_formatter(lambda value, _place: f"{value:g}")
    panel.set_xlabel("Streams")
    panel.set_ylabel(f"Throughput ({unit})")
    panel.set_ylim(bottom=0)
    handles, texts = panel.get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside upper left", ncols=5, columnspacing=1.0)
    return figure


def save_tuning(picture: TuningPicture, page: TuningPage, path: Path) -> None:
    """Writes the picture (.png, .svg) or a page around it (.html) that needs nothing else.

    Raises:
        SystemFailure: when the file cannot be written.
    """
    try:
        if path.suffix == ".html":
            write_whole(path, render_tuning(picture, page))
            return
        with paper_style():
            save(draw_tuning(picture), path.with_suffix(""), [path.suffix.lstrip(".")])
    except OSError as error:
        raise SystemFailure(f"{path}: cannot write into it: {error.strerror or error}") from None


def render_tuning(picture: TuningPicture, page: TuningPage) -> str:
    """The page as text."""
    image = inline(lambda: draw_tuning(picture), "tuning")
    return render("tuning.html.j2", {"page": page, "image": image}, ("page/report.css",), (), "{}")


def inline(draw: Callable[[], Figure], name: str) -> str:
    """A picture as an address that holds it."""
    with tempfile.TemporaryDirectory(prefix="farline-") as folder, paper_style():
        (written,) = save(draw(), Path(folder) / name, ["svg"])
        data = base64.b64encode(written.read_bytes()).decode()
    return f"data:image/svg+xml;base64,{data}"
