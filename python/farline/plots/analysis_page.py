"""The page of an analysis: findings in words first, then what they stand on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from farline.plots.analysis_payload import payload
from farline.plots.analysis_tables import (
    candidates_table,
    coefficients_table,
    knots_table,
    models_table,
    pairs_table,
    ranks_table,
    tallies_table,
    warnings,
)
from farline.plots.analysis_values import AnalysisData
from farline.plots.analysis_words import cause_cards, facts, findings, lead, next_steps, tiles
from farline.plots.labels import percent
from farline.plots.page_parts import render

_STYLES = ("uplot/uPlot.min.css", "page/report.css", "page/analysis.css")
_SCRIPTS = (
    "uplot/uPlot.iife.min.js",
    "page/core.js",
    "page/analysis_axis.js",
    "page/analysis_profiles.js",
    "page/analysis_running.js",
    "page/analysis_curves.js",
    "page/analysis_tables.js",
    "page/analysis_main.js",
)


def render_analysis(data: AnalysisData, figure_names: Sequence[str] = ()) -> str:
    """The whole page as text; `figure_names` are files in `figures/` beside it."""
    values = page_values(data, figure_names)
    return render("analysis.html.j2", values, _STYLES, _SCRIPTS, payload(data))


def page_values(data: AnalysisData, figure_names: Sequence[str]) -> dict[str, Any]:
    """Everything the template names."""
    explained = data.explanation
    fitted = any(view.choice is not None for view in data.profiles)
    return {
        "title": f"{data.title} · farline",
        "heading": data.title,
        "made": data.made,
        "facts": facts(data),
        "lead": lead(data),
        "findings": findings(data),
        "tiles": tiles(data),
        "causes": cause_cards(explained),
        "ranks": ranks_table(explained.sites) if explained and explained.sites else None,
        "next": next_steps(explained),
        "confidence": percent(data.confidence),
        "profiles": bool(data.profiles),
        "dashed": _any_beyond(data),
        "coefficients": coefficients_table(data) if _any_coefficients(data) else None,
        "warnings": warnings(data),
        "models": models_table(data) if fitted else None,
        "candidates": candidates_table(data) if fitted else None,
        "knots": knots_table(data) if data.profiles else None,
        "running": any(view.running is not None for view in data.profiles),
        "bars": bool(data.bars),
        "pairs": pairs_table(data) if data.pairs else None,
        "heat": bool(data.heat),
        "io": bool(data.io),
        "comparisons": bool(data.comparisons),
        "tallies": tallies_table(data.tallies) if data.tallies else None,
        "odd_lines": [(tally, tally.odd_lines) for tally in data.tallies if tally.malformed],
        "notes": data.notes,
        "method": _method(data),
        "reproduce": data.command,
        "version": data.version,
        "figure_names": figure_names,
    }


def _any_coefficients(data: AnalysisData) -> bool:
    return any(view.coefficients is not None for view in data.profiles)


def _any_beyond(data: AnalysisData) -> bool:
    """Whether a model is drawn where nothing was measured."""
    return any(view.fitted is not None and view.fitted.goes_beyond for view in data.profiles)


def _method(data: AnalysisData) -> list[str]:
    level = percent(data.confidence)
    return [
        "A profile is the mean of repeated measurements at each round-trip time (RTT), with "
        "straight lines between them. Its mean is taken over RTT, not over measurements: an RTT "
        "with many measurements has no larger weight. Failed transfers are counted but have no "
        "rate.",
        "With rates over capacity and RTTs scaled to [0, 1]: m is the mean and M the middle of "
        "the chord from the first to the last RTT. C_U = 1 − m is the unused share. C_CC = m − M "
        "is above 0 where the profile lies above the chord (concave, as with TCP and large "
        "windows) and below 0 where it lies below it (convex, as with a limiting window or disk). "
        "C_UC = m − M/2 + 1/4 combines both: 0.75 is a link that is full at every RTT.",
        "C_UC alone can mislead: a higher rate at the smallest RTT lowers it, it is guaranteed to "
        "lie within [0, 1] only where the profile never increases, and a value below 0.5 need not "
        "mean convex. Read it together with m, C_CC and both ends, and compare only over the same "
        "RTTs.",
        f"Intervals are {level} confidence intervals. A model is chosen by its error on held-out "
        "RTTs.",
    ]
