"""Pictures of the gallery: curves on the paper's axes, in a light and a dark copy."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from farline.plots.gallery import Curve, Picture
from farline.plots.style import FAINT, GRID, INK, MARKERS, PAGE_INCHES, palette, paper_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DARK = {"ink": "#E8ECF1", "faint": "#9BA6B2", "grid": "#303945", "paper": "#11151B"}
_LIGHT = {"ink": INK, "faint": FAINT, "grid": GRID, "paper": "#FFFFFF"}
_HEIGHT_INCHES = 2.9
_LINES: Mapping[str, Any] = {"here": "-", "paper": (0, (4, 2)), "model": (0, (1, 1.2))}
_WIDTH_OF_BARS = 0.8


def picture_svg(picture: Picture, dark: bool = False) -> bytes:
    """The picture as SVG; the same bytes for the same values."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    tones = _DARK if dark else _LIGHT
    with paper_style(), matplotlib.rc_context(_tones(tones)):  # type: ignore[arg-type]
        figure = Figure(figsize=(PAGE_INCHES, _HEIGHT_INCHES), layout="constrained")
        axes = figure.subplots()
        _draw(axes, picture, tones, dark)
        out = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None})  # type: ignore[no-untyped-call]
    return out.getvalue()


def data_link(svg: bytes) -> str:
    """An SVG as the address of an image, inside the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()


def _tones(tones: Mapping[str, str]) -> dict[str, Any]:
    return {
        "figure.facecolor": tones["paper"],
        "axes.facecolor": tones["paper"],
        "savefig.facecolor": tones["paper"],
        "text.color": tones["ink"],
        "axes.labelcolor": tones["ink"],
        "axes.edgecolor": tones["faint"],
        "xtick.color": tones["faint"],
        "ytick.color": tones["faint"],
        "xtick.labelcolor": tones["ink"],
        "ytick.labelcolor": tones["ink"],
        "grid.color": tones["grid"],
        "legend.labelcolor": tones["ink"],
    }


def _draw(axes: Axes, picture: Picture, tones: Mapping[str, str], dark: bool) -> None:
    places = _places(picture)
    if picture.bars:
        _draw_bars(axes, picture, places, dark)
    else:
        _draw_curves(axes, picture, places, tones, dark)
    _label(axes, picture, places)
    if picture.y_from is not None:
        axes.set_ylim(bottom=picture.y_from)
    if len(picture.curves) > 1 or picture.curves[0].name:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _places(picture: Picture) -> dict[float | str, float]:
    """Where each x stands: its own number, or its rank among words."""
    every = list(dict.fromkeys(x for curve in picture.curves for x in curve.x))
    if picture.x_scale == "words" or picture.bars:
        return {x: float(index) for index, x in enumerate(every)}
    return {x: float(x) for x in every}


def _draw_curves(
    axes: Axes,
    picture: Picture,
    places: Mapping[float | str, float],
    tones: Mapping[str, str],
    dark: bool,
) -> None:
    own = [curve for curve in picture.curves if curve.of == "here"]
    colours = palette(max(1, len(own)), False, dark)
    shown = 0
    for curve in picture.curves:
        colour = colours[shown] if curve.of == "here" else tones["faint"]
        marker = MARKERS[shown % len(MARKERS)] if curve.of == "here" else "o"
        if curve.of == "model" or len(curve.x) > 40:
            marker = ""
        shown += curve.of == "here"
        axes.errorbar(
            [places[x] for x in curve.x], curve.y, yerr=_whiskers(curve), color=colour,
            marker=marker, mfc=tones["paper"] if curve.of == "paper" else colour,
            ls=_LINES[curve.of], label=_label_of(curve), elinewidth=0.8,
            zorder=3 if curve.of == "here" else 2,
        )  # fmt: skip


def _draw_bars(
    axes: Axes, picture: Picture, places: Mapping[float | str, float], dark: bool
) -> None:
    colours = palette(len(picture.curves), False, dark)
    width = _WIDTH_OF_BARS / (1 if picture.stacked else len(picture.curves))
    floor = dict.fromkeys(places, 0.0)
    for index, (curve, colour) in enumerate(zip(picture.curves, colours, strict=True)):
        offset = 0.0 if picture.stacked else (index - (len(picture.curves) - 1) / 2) * width
        axes.bar(
            [places[x] + offset for x in curve.x], curve.y, width, color=colour,
            bottom=[floor[x] for x in curve.x] if picture.stacked else None,
            yerr=_whiskers(curve), label=_label_of(curve), error_kw={"elinewidth": 0.8},
        )  # fmt: skip
        for x, y in zip(curve.x, curve.y, strict=True):
            floor[x] += y


def _whiskers(curve: Curve) -> Sequence[Sequence[float]] | None:
    if not curve.low or not curve.high:
        return None
    low = [0.0 if end is None else max(0.0, y - end) for y, end in zip(curve.y, curve.low)]  # noqa: B905
    high = [0.0 if end is None else max(0.0, end - y) for y, end in zip(curve.y, curve.high)]  # noqa: B905
    return [low, high]


def _label_of(curve: Curve) -> str:
    return f"{curve.name} (paper)" if curve.of == "paper" else curve.name


def _label(axes: Axes, picture: Picture, places: Mapping[float | str, float]) -> None:
    axes.set_xlabel(picture.x_label)
    axes.set_ylabel(picture.y_label)
    if picture.x_scale == "words" or picture.bars:
        words = [x if isinstance(x, str) else f"{x:g}" for x in places]
        axes.set_xticks(list(places.values()), words)
        if sum(map(len, words)) > 70:
            axes.tick_params(axis="x", labelrotation=30)
    elif picture.x_scale != "linear":
        axes.set_xscale("log", base=2 if picture.x_scale == "log2" else 10)
        axes.set_xticks(list(places.values()), [f"{x:g}" for x in places.values()])
        axes.minorticks_off()
