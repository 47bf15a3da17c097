"""What the analysis page's scripts draw from: one JSON document, rounded to what a screen shows."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from farline.plots.analysis_values import (
    MODALITY_TEXT,
    POINTS_UP_TO,
    AnalysisData,
    Comparison,
    HeatGrid,
    IoCurve,
    Line,
    PairRow,
    ProfileView,
    Running,
    UseBar,
)
from farline.plots.comparison_figure import normalisers
from farline.plots.cuc_bars_figure import PART_COLOURS, PART_TEXT, bar_parts
from farline.plots.heat_figure import heat_unit
from farline.plots.labels import parameter_label
from farline.plots.profile_figure import SHAPE_COLOURS, few_points, is_ordered, whiskers
from farline.plots.site_matrix_figure import pair_table, site_names
from farline.plots.style import STEPS_DARK, STEPS_LIGHT, WORDS_DARK, WORDS_LIGHT, ink_on

if TYPE_CHECKING:
    from farline.plots.analysis_values import Floats
    from farline.profiles.throughput_profile import ThroughputProfile

GROUP_TEXT = {"": "the whole infrastructure", "site": "by site"}
SHOWN_FIRST = 5
"""Profiles of a group that are drawn before anyone chooses."""


def payload(data: AnalysisData) -> str:
    """The document as text that is safe inside a script element."""
    text = json.dumps(document(data), separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def document(data: AnalysisData) -> dict[str, Any]:
    """Profiles, groups of them, pairs, bars, grids, curves and looks."""
    first = [site.name for site in data.infrastructure.sites] if data.infrastructure else []
    return {
        "profiles": [
            _profile(view, name)
            for view, name in zip(data.profiles, shown_names(data.profiles), strict=True)
        ],
        "groups": _groups(data.profiles),
        "shown_first": SHOWN_FIRST,
        "log": data.log_rtt,
        "confidence": data.confidence,
        "points_up_to": POINTS_UP_TO,
        "matrices": [
            _matrix(modality, list(table.values()), first)
            for modality, table in pair_table(data.pairs).items()
        ],
        "bars": [_bar(bar) for bar in data.bars],
        "parts": {
            kind: {"text": PART_TEXT[kind], "colour": colour, "on": ink_on(colour)}
            for kind, colour in PART_COLOURS.items()
        },
        "shapes": SHAPE_COLOURS,
        "heat": [_heat(grid) for grid in data.heat],
        "io": [_io(curve) for curve in data.io],
        "comparisons": [_comparison(found) for found in data.comparisons],
        "colours": {
            "light": {"words": WORDS_LIGHT, "steps": STEPS_LIGHT},
            "dark": {"words": WORDS_DARK, "steps": STEPS_DARK},
        },
    }


def shown_names(views: Sequence[ProfileView]) -> list[str]:
    """Names that tell profiles apart: with what was measured where the name alone comes twice."""
    times = Counter((view.group, view.name) for view in views)
    return [
        view.name
        if times[view.group, view.name] == 1
        else f"{view.name}, {MODALITY_TEXT.get(view.profile.modality, view.profile.modality)}"
        for view in views
    ]


def _profile(view: ProfileView, name: str) -> dict[str, Any]:
    profile = view.profile
    low, high = whiskers(view)
    return {
        "name": name,
        "group": view.group,
        "what": MODALITY_TEXT.get(profile.modality, profile.modality),
        "capacity": profile.capacity_bps,
        "rtt": _numbers(profile.rtt_ms, 9),
        "mean": _numbers(profile.mean_bps),
        "n": [int(count) for count in profile.n.tolist()],
        "low": _numbers(low),
        "high": _numbers(high),
        "whiskers": "interval" if view.mean_low_bps is not None else "deviation",
        "points": [[rtt, _list(rates)] for rtt, rates in few_points(view)],
        "failed": profile.failed,
        "fitted": None if view.fitted is None else _line(view.fitted),
        "bounds": [_line(line) for line in view.bounds],
        "regions": [[r.left_ms, r.right_ms, r.shape] for r in view.regions],
        "running": None if view.running is None else _running(view.running),
    }


def _groups(views: Sequence[ProfileView]) -> list[dict[str, Any]]:
    """What can be shown together: one modality's whole profiles, and with each group of it."""
    keys = dict.fromkeys((view.group, view.profile.modality) for view in views)
    found = []
    for group, modality in keys:
        wanted = [("", modality), (group, modality)]
        members = [i for i, v in enumerate(views) if (v.group, v.profile.modality) in wanted]
        own = [view for view in views if (view.group, view.profile.modality) == (group, modality)]
        what = MODALITY_TEXT.get(modality, modality)
        found.append(
            {
                "text": f"{GROUP_TEXT.get(group, f'by {parameter_label(group).lower()}')}, {what}",
                "members": members,
                "ordered": is_ordered(own) and len(own) == len(members),
            }
        )
    if len({modality for _, modality in keys}) > 1:
        whole = [index for index, view in enumerate(views) if not view.group]
        if len(whole) > 1:
            text = f"{GROUP_TEXT['']}, everything"
            found.insert(0, {"text": text, "members": whole, "ordered": False})
    return found


def _line(line: Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "words": line.words,
        "rtt": _numbers(line.rtt_ms),
        "rate": _numbers(line.rate_bps),
        "left": line.left_ms,
        "right": line.right_ms,
    }


def _running(curve: Running) -> dict[str, Any]:
    return {
        "rtt": _numbers(curve.rtt_ms, 9),
        "v": _numbers(curve.c_uc),
        "l": None if curve.low is None else _numbers(curve.low),
        "h": None if curve.high is None else _numbers(curve.high),
    }


def _matrix(modality: str, pairs: Sequence[PairRow], first: Sequence[str]) -> dict[str, Any]:
    names = site_names(pairs, first)
    places = {name: index for index, name in enumerate(names)}
    return {
        "what": MODALITY_TEXT.get(modality, modality),
        "names": names,
        "cells": [
            {
                "f": places[pair.from_site],
                "t": places[pair.to_site],
                "rtt": pair.rtt_ms,
                "n": pair.n,
                "mean": _number(pair.mean_bps),
                "sd": _number(pair.sd_bps),
                "capacity": pair.capacity_bps,
                "share": _number(pair.share),
                "failed": pair.failed,
            }
            for pair in pairs
        ],
    }


def _bar(bar: UseBar) -> dict[str, Any]:
    parts = bar_parts(bar)
    heights = {"file": parts.file, "network": parts.network, "unused": parts.unused}
    both = {"file": bar.file, "network": bar.network}
    return {
        "name": bar.name,
        "note": bar.note,
        "odd": parts.odd,
        "parts": {kind: _number(height) for kind, height in heights.items()},
        **{
            kind: None
            if found is None
            else {
                "c_uc": _number(found.c_uc.value),
                "mean": _number(found.mean.value),
                "c_cc": _number(found.c_cc.value),
                "left": found.left_ms,
                "right": found.right_ms,
            }
            for kind, found in both.items()
        },
    }


def _heat(grid: HeatGrid) -> dict[str, Any]:
    factor, unit = heat_unit(grid)
    return {
        "title": grid.title,
        "row_label": grid.row_label,
        "column_label": grid.column_label,
        "rows": grid.rows,
        "columns": grid.columns,
        "unit": unit,
        "values": [_list(row) for row in (grid.values / factor).tolist()],
        "failed": sorted(grid.failed),
        "n": None if grid.n is None else grid.n.tolist(),
    }


def _io(curve: IoCurve) -> dict[str, Any]:
    return {
        "name": f"{curve.name}, {MODALITY_TEXT.get(curve.modality, curve.modality)}",
        "x_label": curve.x_label,
        "x": _numbers(curve.x, 9),
        "mean": _numbers(curve.mean_bps),
        "sd": _numbers(curve.sd_bps),
        "n": [int(count) for count in curve.n.tolist()],
    }


def _comparison(found: Comparison) -> dict[str, Any]:
    both = (found.first, found.second)
    scales, unit = normalisers(both)
    return {
        "name": found.name,
        "kind": found.kind,
        "words": found.words,
        "unit": unit,
        "both": [_scaled(profile, scale) for profile, scale in zip(both, scales, strict=True)],
        "rtt": _numbers(found.rtt_ms, 9),
        "values": _numbers(found.values),
        "deviation": None if found.deviation is None else _numbers(found.deviation),
        "c_uc": None if found.score is None else _number(found.score.c_uc.value),
        "mean": None if found.score is None else _number(found.score.mean.value),
        "c_cc": None if found.score is None else _number(found.score.c_cc.value),
    }


def _scaled(profile: ThroughputProfile, scale: float) -> dict[str, Any]:
    return {
        "name": profile.label or "profile",
        "rtt": _numbers(profile.rtt_ms, 9),
        "mean": _numbers(profile.mean_bps / scale),
        "sd": _numbers(profile.sd_bps / scale),
    }


def _numbers(values: Floats, digits: int = 5) -> list[float | None]:
    return _list(values.tolist(), digits)


def _list(values: Iterable[float], digits: int = 5) -> list[float | None]:
    return [_number(value, digits) for value in values]


def _number(value: float | None, digits: int = 5) -> float | None:
    """So many digits, as a whole number where it is one: shorter JSON. None is "no figure"."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded
