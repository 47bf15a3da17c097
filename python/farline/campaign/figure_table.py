"""The tables `[[figure]]` of a plan: pictures in the axes of a paper, besides the usual ones.

```toml
[[figure]]
name = "fig-6"                          # of its file
x = "block_bytes"                       # option, group of [together], or "point"
curves = "buffer_bytes"                 # one curve per value
panels = [["128K", "256K"], ["8M"]]     # values of `curves` side by side; one panel if absent
where = { udt.congestion_control = "native" }      # what else is held; else as the best run has it
x_scale = "linear"                      # auto, linear, log2, log10; log2-KiB writes exponents
x_label = "Block size (n)"
y = ["total_bps"]                       # results, one above the other
kind = "curves"                         # or bars; series: runs over time, a curve per value
caption = "Yun et al. 2015, Fig. 6"
[[figure.model]]                        # lines of a model: see model_table.py
```
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from farline.campaign.model_table import read_models
from farline.campaign.path_table import PATH, read_link_option
from farline.campaign.plan_values import flatten, read_option
from farline.campaign.points import POINT, Together
from farline.errors import SpecError
from farline.plots.wanted import KINDS, SCALES, WantedFigure, wanted_figure
from farline.spec.near import unknown

FIGURE = "figure"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_USUAL_NAMES, _USUAL_STARTS = (
    ("limits", "repetitions", "heat"),
    ("response-", "cpu-", "queues-"),
)
"""Names of the figures that a report has anyway."""
_TEXTS = ("name", "kind", "x", "curves", "x_scale", "x_label", "caption")
_KEYS = (*_TEXTS, "panels", "where", "y", "model")
_WORDS = {"kind": KINDS, "x_scale": SCALES}
_NOT_IN = {
    "curves": (),
    "bars": ("panels", "x_scale", "model"),
    "series": ("x", "x_scale", "x_label", "y", "model"),
}
"""Keys that mean nothing in a figure of a kind."""


def read_figures(tables: object, together: Mapping[str, Together]) -> tuple[WantedFigure, ...]:
    """The figures of a plan, values of options read with their units.

    Raises:
        SpecError: when something in it is unknown or not allowed; the line says where.
    """
    if not isinstance(tables, list) or not all(isinstance(item, Mapping) for item in tables):
        raise SpecError(f"{FIGURE}: must be a list of tables [[{FIGURE}]]")
    figures = tuple(_figure(table, together) for table in tables)
    names = [figure.name for figure in figures]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"[[{FIGURE}]] name: {name!r} is listed twice")
    return figures


def check_figures(figures: Sequence[WantedFigure], factors: Mapping[str, Sequence[Any]]) -> None:
    """Refuses a figure over something that the plan does not vary.

    Raises:
        SpecError: with what does vary.
    """
    for figure in figures:
        place = f"[[{FIGURE}]] {figure.name}"
        for key in ("x", "curves"):
            name = getattr(figure, key)
            if name is not None and name not in factors:
                varied = ", ".join(factors) or "nothing"
                raise SpecError(f"{place} {key}: {name} does not vary; what varies is {varied}")
        shown = figure.curves or figure.x
        for value in (value for panel in figure.panels for value in panel):
            if shown is not None and value not in factors[shown]:
                raise SpecError(f"{place} panels: {shown} never has the value {value!r}")
        for name, value in figure.where.items():
            if value not in factors.get(name, ()):
                raise SpecError(
                    f"{place} where: {name} never has the value {value!r} in a varied run"
                )


def figures_without(
    figures: Sequence[WantedFigure], gone: Collection[str]
) -> tuple[WantedFigure, ...]:
    """The figures that name none of the groups and points that a command line did away with."""
    return tuple(
        figure for figure in figures if not {figure.x, figure.curves, *figure.where} & set(gone)
    )


def _figure(table: Mapping[str, Any], together: Mapping[str, Together]) -> WantedFigure:
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SpecError(f"[[{FIGURE}]] name: {name!r} is not 1 to 64 letters, digits, '_' or '-'")
    place = f"[[{FIGURE}]] {name}"
    if name in _USUAL_NAMES or name.startswith(_USUAL_STARTS):
        raise SpecError(f"{place}: the report already has a figure of that name; choose another")
    _check_keys(place, table)
    _check_axes(place, table)
    values = dict(table)
    needed = "curves" if table.get("kind") == "series" else "x"
    if needed not in table:
        raise SpecError(f"{place} {needed}: missing: name something that the plan varies")
    shown = table.get("curves") or table.get("x")
    if "panels" in table:
        values["panels"] = _panels(place, str(shown), table["panels"], together)
    if "where" in table:
        values["where"] = _where(place, table["where"], together)
    if "y" in table:
        values["y"] = _columns(place, table["y"])
    if "model" in table:
        over = together[shown_x].options if (shown_x := str(table["x"])) in together else (shown_x,)
        values["model"] = read_models(place, table["model"], over)
    return wanted_figure(values)


def _check_keys(place: str, table: Mapping[str, Any]) -> None:
    for key, value in table.items():
        if key not in _KEYS:
            raise SpecError(f"{place} {key}: unknown; {unknown(key, _KEYS)}")
        if key in _TEXTS and not isinstance(value, str):
            raise SpecError(f"{place} {key}: {value!r} is not a string")
        if key in _WORDS and value not in _WORDS[key]:
            allowed = ", ".join(_WORDS[key])
            raise SpecError(f"{place} {key}: {value!r} is not allowed; allowed: {allowed}")

    for key in _NOT_IN[table.get("kind", "curves")]:
        if key in table:
            raise SpecError(f"{place} {key}: has no meaning in a figure of kind {table['kind']}")


def _check_axes(place: str, table: Mapping[str, Any]) -> None:
    """Refuses what one figure would have to show in two ways."""
    if "x" in table and table["x"] == table.get("curves"):
        raise SpecError(f"{place} curves: {table['x']} is already on the x axis")
    where = table.get("where")
    for name, _ in flatten(where) if isinstance(where, Mapping) else ():
        for key in ("x", "curves"):
            if name == table.get(key):
                raise SpecError(f"{place} where: {name} is {key}, so it is not constant")


def _panels(
    place: str, shown: str, raw: object, together: Mapping[str, Together]
) -> list[list[Any]]:
    if not isinstance(raw, list) or not raw or not all(isinstance(p, list) and p for p in raw):
        raise SpecError(f"{place} panels: must be a list of lists of values of {shown}")
    at = f"{place} panels"
    return [[_value(at, shown, value, together) for value in panel] for panel in raw]


def _where(place: str, raw: object, together: Mapping[str, Together]) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        raise SpecError(f"{place} where: must be a table of options and their values")
    at = f"{place} where"
    return {name: _value(at, name, value, together) for name, value in flatten(raw)}


def _value(place: str, name: str, raw: object, together: Mapping[str, Together]) -> Any:
    if name == POINT:
        return raw
    if name in together:
        return together[name].read(place, raw)
    section, _, key = name.rpartition(".")
    if section == PATH:
        return read_link_option(place, key, raw)
    return read_option(FIGURE, name, raw)


def _columns(place: str, raw: Any) -> list[str]:
    from farline.plots.labels import QUANTITIES

    known = [quantity.column for quantity in QUANTITIES]
    columns: list[str] = raw if isinstance(raw, list) else [raw]
    for column in columns:
        if column not in known:
            raise SpecError(f"{place} y: {column!r} is unknown; {unknown(column, known)}")
    if not columns:
        raise SpecError(f"{place} y: the list is empty: name at least one result")
    return columns
