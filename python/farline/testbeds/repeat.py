"""Entries that stand for several: `repeat = "k"` and `{i}` in the texts of hosts and links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

COPIES_MAX = 256
"""Copies of one entry: as many as a topology has links."""

_COUNTER = "{i}"


@dataclass(frozen=True)
class Parameters:
    """Whole numbers by name that a topology leaves open, with their values."""

    values: Mapping[str, int]

    def with_values(self, given: Mapping[str, object]) -> Parameters:
        """These parameters with other values.

        Raises:
            ValueError: when a value is not allowed.
        """
        return Parameters({**self.values, **read_parameters(given).values})


@dataclass(frozen=True)
class Entry:
    """One entry of a list after repetition; `origin` is the number of the entry as written."""

    raw: Mapping[str, Any]
    place: str
    origin: int


def read_parameters(raw: object) -> Parameters:
    """Parameters from the table of a topology or from `--set`, where numbers are texts.

    Raises:
        ValueError: when it is no table of whole numbers in range.
    """
    if not isinstance(raw, Mapping):
        raise ValueError(f"parameters: {raw!r} is not a table")
    return Parameters({str(name): _count(f"parameters.{name}", raw[name]) for name in raw})


def _count(place: str, raw: object) -> int:
    text = str(raw).strip()
    if isinstance(raw, bool) or not text.isascii() or not text.isdigit():
        raise ValueError(f"{place}: {raw!r} is not a whole number from 1 to {COPIES_MAX}")
    if not 1 <= int(text) <= COPIES_MAX:
        raise ValueError(f"{place}: {text} is out of range; allowed: 1 to {COPIES_MAX}")
    return int(text)


def repeated(place: str, raw: object, parameters: Parameters) -> list[Entry]:
    """The entries of a list, those with `repeat` as so many copies with `{i}` filled in from 1.

    Raises:
        ValueError: when it is no list of tables, or a `repeat` is no number and no parameter.
    """
    if not isinstance(raw, list):
        raise ValueError(f"{place}: {raw!r} is not a list")
    entries: list[Entry] = []
    for origin, item in enumerate(raw):
        if not isinstance(item, Mapping):
            raise ValueError(f"{place}.{origin}: {item!r} is not a table")
        entries += _copies(place, origin, item, parameters)
    return entries


def _copies(
    place: str, origin: int, item: Mapping[str, Any], parameters: Parameters
) -> list[Entry]:
    here = f"{place}.{item.get('name', origin)}"
    if "repeat" not in item:
        return [Entry(item, here, origin)]
    count = _repeat(f"{here}.repeat", item["repeat"], parameters)
    own = {key: value for key, value in item.items() if key != "repeat"}
    return [
        Entry(_filled(own, number), _filled(here, number), origin) for number in range(1, count + 1)
    ]


def _repeat(place: str, raw: object, parameters: Parameters) -> int:
    if isinstance(raw, str) and not raw.isdigit():
        if raw not in parameters.values:
            known = ", ".join(parameters.values) or "none"
            raise ValueError(f"{place}: {raw!r} is not a parameter; available: {known}")
        return parameters.values[raw]
    return _count(place, raw)


def _filled(value: Any, number: int) -> Any:
    """`value` with the counter filled in wherever a text has it."""
    if isinstance(value, str):
        return value.replace(_COUNTER, str(number))
    if isinstance(value, Mapping):
        return {key: _filled(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, number) for item in value]
    return value
