"""RBUDP's models over payload or rate, and what was measured (He et al. 2002, Fig. 4 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from farline.errors import SystemFailure
from farline.models.rbudp import Case, ModelName
from farline.models.rbudp_answer import Request, case_curves, cases_of, table_places
from farline.models.rbudp_curves import Curve, Variable
from farline.models.rbudp_measured import Measured
from farline.plots.labels import rate_unit
from farline.plots.style import FAINT, INK, PAGE_INCHES, new_figure, palette, paper_style, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODEL_TEXT: dict[ModelName, str] = {
    "printed": "as printed",
    "passes": "after each pass",
    "early": "early reports",
}
_PLOT_PLACES = 120
_LINES: dict[ModelName, tuple[int, tuple[float, ...]]] = {
    "printed": (0, (1, 1.2)),
    "passes": (0, (4, 1.5)),
    "early": (0, ()),
}


@dataclass(frozen=True, slots=True)
class NamedCurves:
    """The curves of one case and what to call it: "610 Mbit/s, 7 % loss"."""

    name: str
    curves: Sequence[Curve]


def draw_rbudp_model(cases: Sequence[NamedCurves], points: Sequence[Measured]) -> Figure:
    """One colour per case, one kind of line per model, a marker per measured blast.

    The shade along a corrected curve holds nine blasts of ten. All curves are over the same
    variable: payload in bytes, on a log scale, or rate in bit/s.
    """
    over = cases[0].curves[0].over
    rates = [float(curve.high_bps.max()) for case in cases for curve in case.curves]
    factor, unit = rate_unit([*rates, *(point.throughput_bps for point in points)])
    figure, panels = new_figure(1, PAGE_INCHES, 3.4)
    for case, colour in zip(cases, palette(len(cases), False), strict=True):
        _draw_case(panels[0], case, colour, factor)
    _draw_points(panels[0], points, over, factor)
    _label(panels[0], over, unit)
    places = [place for case in cases for curve in case.curves for place in curve.places]
    panels[0].set_xlim(0 if over == "rate" else min(places) / 1e6, max(places) / 1e6)
    handles, texts = panels[0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside upper left", ncols=3, columnspacing=1.0)
    return figure


def _draw_case(panel: Axes, case: NamedCurves, colour: str, factor: float) -> None:
    for curve in case.curves:
        x = curve.places / _place_factor(curve.over)
        text = f"{case.name}, {MODEL_TEXT[curve.model]}"
        panel.plot(x, curve.throughput_bps / factor, color=colour, ls=_LINES[curve.model],
                   label=text, zorder=3)  # fmt: skip
        if curve.model != "printed":
            low, high = curve.low_bps / factor, curve.high_bps / factor
            panel.fill_between(x, low, high, color=colour, alpha=0.10, lw=0)


def _draw_points(panel: Axes, points: Sequence[Measured], over: str, factor: float) -> None:
    if not points:
        return
    places = [
        (p.case.payload_bytes if over == "payload" else p.case.rate_bps) / _place_factor(over)
        for p in points
    ]
    heights = [point.throughput_bps / factor for point in points]
    panel.plot(places, heights, "o", color=INK, mfc="white", ms=4.5, label="measured", zorder=4)


def _label(panel: Axes, over: str, unit: str) -> None:
    panel.set_ylim(bottom=0)
    panel.set_ylabel(f"Throughput ({unit})")
    if over == "payload":
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter(lambda value, _place: f"{value:g}")
        panel.set_xlabel("Payload (MB), log scale")
        panel.grid(True, axis="x", which="major", color=FAINT, alpha=0.2)
    else:
        panel.set_xlabel("Sending rate (Mbit/s)")


def _place_factor(over: str) -> float:
    """Both are shown in millions: MB as in He et al. 2002, decimal, and Mbit/s."""
    return 1e6


def save_rbudp_model(
    request: Request,
    measured: tuple[Measured, ...],
    path: Path,
    name_of: Callable[[Case, Variable], str],
) -> None:
    """Writes the picture: over payload unless a curve over rate was asked for.

    `name_of` says what a case is called in it.

    Raises:
        SystemFailure: when the file cannot be written.
    """
    over = request.over or "payload"
    places = _plot_places(request.case, over, measured)
    named = [
        NamedCurves(name_of(case, over), case_curves(case, request, over, places))
        for case in cases_of(request)
    ]
    try:
        with paper_style():
            save(draw_rbudp_model(named, measured), path.with_suffix(""), [path.suffix[1:]])
    except OSError as error:
        raise SystemFailure(f"--plot {path}: {error.strerror or error}") from None


def _plot_places(case: Case, over: Variable, measured: Iterable[Measured]) -> list[float]:
    """Close places over the range of the table, and wherever something was measured."""
    own = [one.case.payload_bytes if over == "payload" else one.case.rate_bps for one in measured]
    shown = [*table_places(case, over), *own]
    if over == "payload":
        found = np.geomspace(min(shown), max(shown), _PLOT_PLACES)
    else:
        found = np.linspace(max(1.0, max(shown) / _PLOT_PLACES), max(shown), _PLOT_PLACES)
    return [float(place) for place in found]
