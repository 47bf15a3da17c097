"""One look for every figure: sizes for a column, colours that the colour-blind tell apart.

Text is at least 8 pt at the size it is printed. Fonts are embedded as Type 42 where the format
embeds fonts, and drawn as outlines in SVG, so that a figure looks the same everywhere. Same values,
same bytes: nothing in a file depends on the clock.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import SystemFailure
from farline.plots.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN_INCHES = 3.5
"""Width of one column of a two-column paper."""

PAGE_INCHES = 7.16
"""Width of both columns."""

WORDS_LIGHT = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#B8860B",
    "#56B4E9",
    "#5B5B5B",
    "#7B3294",
)
WORDS_DARK = (
    "#5BB4F0",
    "#FF8C4B",
    "#3CCBA0",
    "#EBA0CB",
    "#E8BE4A",
    "#A6DCFF",
    "#B8B8B8",
    "#C79BE0",
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

STEPS_LIGHT = (
    "#440154",
    "#46327E",
    "#365C8D",
    "#277F8E",
    "#1FA187",
    "#4AC16D",
    "#9BCB25",
    "#C9B400",
)
STEPS_DARK = (
    "#B58CFF",
    "#8F9BFF",
    "#6BB0F5",
    "#4FC3D6",
    "#45D3AE",
    "#7FE07F",
    "#C3E650",
    "#FDE24F",
)

INK, FAINT, GRID = "#1A1A1A", "#6B6B6B", "#DDDDDD"
FAILED = "#B00020"

LIMIT_COLOURS = {
    "receive-window": "#0072B2",
    "receive-buffer": "#F0C808",
    "send-buffer": "#56B4E9",
    "cwnd": "#009E73",
    "sender-cpu": "#D55E00",
    "receiver-cpu": "#E69F00",
    "application": "#CC79A7",
    "path": "#7B3294",
    "rate": "#8C6D31",
    "harness": "#5B5B5B",
    "unknown": "#BDBDBD",
}

_SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 8,
    "legend.title_fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "errorbar.capsize": 2.0,
    "figure.dpi": 100,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "farline",
}


@contextmanager
def paper_style() -> Iterator[None]:
    """Everything drawn inside looks like farline; nothing outside is touched."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):  # type: ignore[arg-type]
        yield


def new_figure(
    rows: int = 1,
    width_inches: float = COLUMN_INCHES,
    height_inches: float = 2.4,
    heights: Sequence[float] | None = None,
    beside: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure with `rows` panels above each other that share their x axis.

    With `beside` they stand beside each other, with an x axis for each and one y axis.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
    if beside:
        return figure, list(figure.subplots(1, rows, sharey=True, squeeze=False)[0])
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False, height_ratios=heights)
    return figure, list(panels[:, 0])


def palette(count: int, ordered: bool, dark: bool = False) -> list[str]:
    """`count` colours: steps from dark to light for quantities, distinct ones for words."""
    if not ordered:
        colours = WORDS_DARK if dark else WORDS_LIGHT
        return [colours[index % len(colours)] for index in range(count)]
    steps = STEPS_DARK if dark else STEPS_LIGHT
    if count == 1:
        return [steps[2]]
    last = len(steps) - 1
    if count > len(steps):
        return [_between(steps, index * last / (count - 1)) for index in range(count)]
    return [steps[round(index * last / (count - 1))] for index in range(count)]


def _between(steps: Sequence[str], place: float) -> str:
    """The colour at `place` on the way through the steps, which are one apart."""
    from matplotlib.colors import to_hex, to_rgb

    low = min(int(place), len(steps) - 2)
    (r, g, b), ends = to_rgb(steps[low]), to_rgb(steps[low + 1])
    share = place - low
    return to_hex((r + share * (ends[0] - r), g + share * (ends[1] - g), b + share * (ends[2] - b)))


def save(figure: Figure, stem: Path, formats: Iterable[str]) -> list[Path]:
    """Write `figure` as `stem` plus each format's suffix, whole; returns the files written."""
    from matplotlib import rcParams
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    # The layout is solved once and stands: `savefig` would draw everything twice for each format,
    # once to solve it.
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    written = []
    for kind in formats:
        # Not with_suffix, to which `run-1.5` ends in a suffix already.
        path, drawn = stem.with_name(f"{stem.name}.{kind}"), io.BytesIO()
        if kind == "png":
            figure.dpi = rcParams["savefig.dpi"]
            FigureCanvasAgg(figure).print_png(drawn)  # type: ignore[no-untyped-call]
        elif kind == "svg":
            canvas = FigureCanvasSVG(figure)
            canvas.print_svg(drawn, metadata={"Date": None})  # type: ignore[no-untyped-call]
        else:
            figure.savefig(drawn, format=kind)
        write_whole(path, drawn.getvalue())
        written.append(path)
    return written


def ink_on(colour: Any) -> str:
    """Black or white, whichever reads better on `colour`, in any form that matplotlib takes.

    The border is where both have the same contrast by WCAG 2 (relative luminance 0.179).
    """
    from matplotlib.colors import to_rgb

    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in to_rgb(colour)
    )
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


def save_figure(draw: Callable[[], Figure], path: Path) -> None:
    """Draws in the style of all figures and writes `path`, in the format that its name says.

    Raises:
        SystemFailure: when the file cannot be written.
    """
    try:
        with paper_style():
            save(draw(), path.with_suffix(""), [path.suffix.lstrip(".")])
    except OSError as error:
        raise SystemFailure(f"{path}: cannot draw into it: {error.strerror or error}") from None
