"""What is used of an infrastructure, bar by bar, as in Rao et al. 2018, Fig. 2.

A bar has up to three parts: C_UC of file transfers, what memory-to-memory transfers add, and what
is left up to 1. Where files did better than memory, that is a sign of something wrong in the
measurements: the bar ends at the files, and a mark says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.plots.analysis_values import UseBar
from farline.plots.labels import digits
from farline.plots.style import COLUMN_INCHES, FAILED, PAGE_INCHES, ink_on, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from farline.profiles.coefficients import Coefficients

PART_COLOURS = {"file": "#0072B2", "network": "#009E73", "unused": "#F0C808"}
PART_TEXT = {
    "file": "file to file",
    "network": "more from memory to memory",
    "unused": "unused capacity",
}


@dataclass(frozen=True, slots=True)
class BarParts:
    """Heights of a bar's parts; `network` starts where `file` ends. `odd` where memory is below."""

    file: float
    network: float
    unused: float
    odd: bool


def bar_parts(bar: UseBar) -> BarParts:
    """The parts of one bar by C_UC; parts never measured are 0 high."""
    file = _value(bar.file)
    whole = _value(bar.network) if bar.network is not None else file
    odd = bar.file is not None and bar.network is not None and whole < file
    low = max(0.0, file) if bar.file is not None else 0.0
    top = max(low, whole)
    return BarParts(low, top - low, max(0.0, 1.0 - top), odd)


def draw_cuc_bars(bars: Sequence[UseBar]) -> Figure:
    """The bars in the order given, with C_UC in each part; names stand along them where short."""
    lying = len(bars) > 8 or max((len(bar.name) for bar in bars), default=0) > 14
    if lying:
        figure, (panel,) = new_figure(1, _width(bars), 1.0 + 0.27 * len(bars))
    else:
        figure, (panel,) = new_figure(1, max(COLUMN_INCHES, 0.6 + 0.62 * len(bars)), 2.7)
    for index, bar in enumerate(bars):
        _draw_bar(panel, index, bar, lying)
    names = [_name(bar) for bar in bars]
    if lying:
        panel.set_yticks(range(len(bars)), names)
        panel.invert_yaxis()
        panel.set_xlabel("$C_{UC}$")
        panel.set_xlim(0, _end(bars))
        panel.grid(axis="y", visible=False)
        panel.grid(axis="x", visible=True)
    else:
        panel.set_xticks(range(len(bars)), names)
        panel.set_ylabel("$C_{UC}$")
        panel.set_ylim(0, _end(bars))
    panel.tick_params(axis="y" if lying else "x", length=0)
    _legend(figure, bars)
    return figure


def _draw_bar(panel: Axes, index: int, bar: UseBar, lying: bool) -> None:
    parts = bar_parts(bar)
    start = 0.0
    for kind in ("file", "network", "unused"):
        height = getattr(parts, kind)
        if height <= 0:
            continue
        colour = PART_COLOURS[kind]
        draw = panel.barh if lying else panel.bar
        size = {"left": start} if lying else {"bottom": start}
        draw([index], [height], 0.66, color=colour, edgecolor="white", linewidth=0.6, **size)  # type: ignore[arg-type]
        value = start + height if kind == "network" else height
        if kind != "unused" and height > (0.12 if lying else 0.06):
            middle = start + height / 2
            x, y = (middle, index) if lying else (index, middle)
            panel.text(x, y, digits(value), ha="center", va="center", color=ink_on(colour), size=7)
        start += height
    if parts.odd:
        x, y = (start + 0.02, index) if lying else (index, start + 0.02)
        ha, va = ("left", "center") if lying else ("center", "bottom")
        text = f"memory {digits(_value(bar.network))}!"
        panel.text(x, y, text, color=FAILED, size=7, ha=ha, va=va)


def _value(found: Coefficients | None) -> float:
    value = found.c_uc.value if found is not None else 0.0
    return value if math.isfinite(value) else 0.0


def _name(bar: UseBar) -> str:
    return f"{bar.name} ({bar.note})" if bar.note and len(bar.note) < 24 else bar.name


def _width(bars: Sequence[UseBar]) -> float:
    return min(PAGE_INCHES, COLUMN_INCHES + 0.06 * max(len(_name(bar)) for bar in bars))


def _end(bars: Sequence[UseBar]) -> float:
    parts = [bar_parts(bar) for bar in bars]
    most = max((p.file + p.network for p in parts), default=1.0)
    odd = 0.22 if any(p.odd for p in parts) else 0.0
    return max(1.0, most) + odd * (most > 0.8)


def _legend(figure: Figure, bars: Sequence[UseBar]) -> None:
    from matplotlib.patches import Patch

    parts = [bar_parts(bar) for bar in bars]
    shown = [kind for kind in PART_COLOURS if any(getattr(part, kind) > 0 for part in parts)]
    handles = [Patch(color=PART_COLOURS[kind], label=PART_TEXT[kind]) for kind in shown]
    figure.legend(handles=handles, loc="outside upper left", ncols=2, columnspacing=1.0)
