"""The tables `[[figure.model]]` of a plan: what a model says, beside what was measured.

```toml
[[figure.model]]
name = "equation 3"             # in the legend
model = "printed"               # He et al. 2002 as printed; passes, early: corrected (docs/design)
payload_bytes = 600_000_000     # or rate_bps: the one of the two that is not on the x axis
rtt_s = "110ms"
loss = 0.07                     # share of the packets of each pass; none if absent
```
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from farline.errors import SpecError
from farline.models.rbudp import MODEL_NAMES, Case
from farline.plots.wanted import OVER, PAYLOAD, RATE, ModelLine, model_line
from farline.spec.near import unknown
from farline.spec.units import parse_duration, parse_probability, parse_rate, parse_size

_X = {RATE: "rate_bps", PAYLOAD: "rbudp.payload_bytes"}
"""Options of a run that lie on the x axis, by what a line runs over."""

_QUANTITIES: Mapping[str, Callable[[str], float]] = {
    RATE: parse_rate,
    PAYLOAD: parse_size,
    "rtt_s": parse_duration,
    "loss": parse_probability,
}
_KEYS = ("name", "model", *_QUANTITIES)


def read_models(place: str, tables: object, x_options: Collection[str]) -> list[dict[str, Any]]:
    """The lines of a figure over `x_options`, values read with their units.

    Raises:
        SpecError: when something in it is unknown or not allowed; the line says where.
    """
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise SpecError(f"{place}.model: must be a list of tables [[figure.model]]")
    return [_line(f"{place} model", table, x_options).document() for table in tables]


def _line(place: str, table: Mapping[str, Any], x_options: Collection[str]) -> ModelLine:
    for key in table:
        if key not in _KEYS:
            raise SpecError(f"{place} {key}: unknown; {unknown(key, _KEYS)}")
    for key in ("name", "rtt_s"):
        if key not in table:
            raise SpecError(f"{place} {key}: missing")
    if not isinstance(table["name"], str) or not table["name"]:
        raise SpecError(f"{place} name: {table['name']!r} is not a string")
    if table.get("model", MODEL_NAMES[0]) not in MODEL_NAMES:
        allowed = ", ".join(MODEL_NAMES)
        raise SpecError(f"{place} model: {table['model']!r} is not allowed; allowed: {allowed}")
    values = {key: _read(place, key, raw) for key, raw in table.items()}
    _check_over(place, values, x_options)
    line = model_line(values)
    _check_case(place, line)
    return line


def _read(place: str, key: str, raw: object) -> Any:
    if key not in _QUANTITIES:
        return raw
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise SpecError(f"{place} {key}: {raw!r} is not a quantity")
    try:
        return _QUANTITIES[key](raw) if isinstance(raw, str) else raw
    except ValueError as error:
        raise SpecError(f"{place} {key}: {error}") from None


def _check_over(place: str, values: Mapping[str, Any], x_options: Collection[str]) -> None:
    """One of rate and payload is stated, and the other one lies on the x axis."""
    free = [key for key in OVER if key not in values]
    if len(free) != 1:
        raise SpecError(f"{place}: give one of {' and '.join(OVER)}; the other lies on the x axis")
    if _X[free[0]] not in x_options:
        raise SpecError(f"{place} {free[0]}: missing, and {_X[free[0]]} is not on the x axis")


def _check_case(place: str, line: ModelLine) -> None:
    """Refuses a path that the model cannot be asked about."""
    try:
        Case(line.payload_bytes or 1, line.rate_bps or 1, line.rtt_s, line.loss)
    except ValueError as error:
        raise SpecError(f"{place} {error}") from None
