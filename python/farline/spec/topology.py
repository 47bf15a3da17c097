"""Documents of a topology's types from what people write: texts with units into values.

Driven by the table that `cargo xtask gen` writes from `crates/spec`, so that a field of a link
can be written here as soon as it exists there. Reads one table at a time: what a document
needs beyond that (defaults, repetition, `rtt_s`) is the testbed's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farline.spec._topology import TOPOLOGY_FIELDS
from farline.spec.near import unknown
from farline.spec.table import Option
from farline.spec.values import option_at, read_list, read_value

HOST_CPUS = "host_cpus"
"""CPUs of every host: the emulator keeps to the others."""

_FIELDS: dict[str, dict[str, Option]] = {
    owner: {row["path"]: Option(**row) for row in rows} for owner, rows in TOPOLOGY_FIELDS.items()
}


def fields_of(owner: str) -> Mapping[str, Option]:
    """Fields of a type such as `PipeSpec`, by name."""
    return _FIELDS[owner]


def read_document(owner: str, raw: object, place: str) -> dict[str, Any]:
    """A document of the type `owner` from a table whose values may be texts with units.

    Whether all fields that the type needs are there is the validator's to say.

    Raises:
        ValueError: when a field is unknown or its value not allowed: one line with its place.
    """
    if not isinstance(raw, Mapping):
        raise ValueError(f"{place}: {raw!r} is not a table")
    known = _FIELDS[owner]
    document = {}
    for name, value in raw.items():
        here = f"{place}.{name}" if place else str(name)
        if name not in known:
            raise ValueError(f"{here}: unknown field; {unknown(str(name), known)}")
        document[name] = read_field(known[name], value, here)
    return document


def read_field(field: Option, raw: object, place: str) -> Any:
    """The value of one field.

    Raises:
        ValueError: when it is not allowed: one line with its place.
    """
    if field.kind == "table":
        return read_document(str(field.item), raw, place)
    if field.kind == "map":
        return _read_map(raw, place)
    if field.kind == "array":
        return _read_array(field, raw, place)
    try:
        return read_value(field, raw)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _read_map(raw: object, place: str) -> dict[str, str]:
    """Texts under any key; whole numbers are texts too, as `sysctl -w` takes them."""
    if not isinstance(raw, Mapping):
        raise ValueError(f"{place}: {raw!r} is not a table")
    for name, value in raw.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError(f"{place}.{name}: {value!r} is neither a string nor a whole number")
    return {str(name): str(value) for name, value in raw.items()}


def _read_array(field: Option, raw: object, place: str) -> list[Any]:
    if not isinstance(raw, list | tuple):
        raise ValueError(f"{place}: {raw!r} is not a list")
    if field.item in _FIELDS:
        return [
            read_document(str(field.item), item, f"{place}.{_name_of(item, index)}")
            for index, item in enumerate(raw)
        ]
    allowed = str if field.item == "string" else int
    for item in raw:
        if isinstance(item, bool) or not isinstance(item, allowed):
            word = "text" if allowed is str else "whole number"
            raise ValueError(f"{place}: {item!r} is not a {word}")
    return list(raw)


def _name_of(item: object, index: int) -> str:
    """What a refusal calls an entry of a list: its name, or its number from 0."""
    name = item.get("name") if isinstance(item, Mapping) else None
    return name if isinstance(name, str) else str(index)


def read_cpus(raw: object) -> list[object]:
    """A list as `--client-cpus` takes it.

    Raises:
        ValueError: when it is none, or empty.
    """
    try:
        if not isinstance(raw, str) or not (cpus := read_list(option_at("client_cpus"), raw)):
            raise ValueError(f"{raw!r} is not a list of CPUs such as 0,2-3")
    except ValueError as error:
        raise ValueError(f"{HOST_CPUS}: {error}") from None
    return cpus
