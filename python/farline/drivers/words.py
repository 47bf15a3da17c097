"""farline's words for a driven tool: what it takes is checked, everything else refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from farline.drivers.catalogue import NATIVE, drivers, find_driver, tool_of
from farline.errors import SpecError

if TYPE_CHECKING:
    from farline.drivers.driver import Driver

TOOL_WORDS = ("tool", "tool_server", "tool_timeout_s", "tool_args")
"""Options that every driver has."""

_NEUTRAL = (
    "schema", *TOOL_WORDS, "transport", "direction", "interval_s", "seed", "title", "extra_data",
    "connect_timeout_ms", "copy.sources", "copy.destination", "copy.recursive",
    "copy.stall_timeout_s", "copy.verify",
    "copy.origin",
)  # fmt: skip
"""Options that say nothing of how a tool moves the data."""


def flat(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Options by dotted path; what is None was not stated."""
    for name, value in document.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", one) for inner, one in value.items())
        else:
            yield name, value


def resolve_driven(document: Mapping[str, Any]) -> dict[str, Any]:
    """A spec document with a driver's defaults, where its `tool` is not farline itself.

    `document` has what was stated and nothing else, for what was not stated a tool may lack.

    Raises:
        SpecError: for an option that the tool does not take; the line names both.
    """
    name = tool_of(document)
    stated = {path: value for path, value in flat(document) if value is not None}
    if name == NATIVE:
        _refuse_alone(stated)
        return dict(document)
    known = find_driver(name)
    resolved = {"transport": known.abilities.transports[0], **document}
    _check_shape(known, resolved)
    for path, value in stated.items():
        _check_word(known, path, value)
    _check_verify(known, stated)
    known.check_words(stated)
    return _with(resolved, {**known.defaults(resolved), **_sealed(known, stated)}, stated)


def _refuse_alone(stated: Mapping[str, Any]) -> None:
    for path in stated:
        if path.startswith("tool_"):
            raise SpecError(f"{path}: applies only with a tool: give tool, one of {_names()}")


def _names() -> str:
    return ", ".join(drivers())


def _check_shape(known: Driver, document: Mapping[str, Any]) -> None:
    """Transport, direction, and whether there are files."""
    able = known.abilities
    for path, allowed in (("transport", able.transports), ("direction", able.directions)):
        value = document.get(path) or allowed[0]
        if value not in allowed:
            raise SpecError(f"{path}: {known.name} has no {value}; it has {', '.join(allowed)}")
    has_files = bool(document.get("copy"))
    if has_files and able.kind == "tester":
        raise SpecError(f"copy: {known.name} moves no files; movers: {_of_kind('mover')}")
    if not has_files and able.kind == "mover" and not able.memory:
        raise SpecError(
            f"tool: {known.name} moves files only: use farline copy --tool {known.name}, or give "
            f"a plan [data]; without files: {_of_kind('tester')}"
        )


def _of_kind(kind: str) -> str:
    return ", ".join(name for name, one in drivers().items() if one.abilities.kind == kind)


def _check_word(known: Driver, path: str, value: object) -> None:
    if path in _NEUTRAL or path in known.abilities.takes:
        return
    if (path, value) in (("copy.dry_run", False), ("copy.cipher", "none")):
        return
    others = [name for name, one in drivers().items() if path in one.abilities.takes]
    rest = f"; tools that take it: {', '.join(others)}" if others else ""
    raise SpecError(f"{path}: {known.name} does not take it{rest}")


def _check_verify(known: Driver, stated: Mapping[str, Any]) -> None:
    if stated.get("copy.verify") == "read-back":
        raise SpecError(
            f"copy.verify: files that {known.name} wrote cannot be read back from the device; use "
            "tree, by which farline compares hashes of both ends, or none"
        )


def _sealed(known: Driver, stated: Mapping[str, Any]) -> dict[str, Any]:
    """A mover without ciphers sends in clear text, and the record says so."""
    if known.abilities.kind == "tester" or "copy.cipher" in known.abilities.takes:
        return {}
    return {"copy.cipher": "none"} if any(path.startswith("copy.") for path in stated) else {}


def _with(
    document: Mapping[str, Any], defaults: Mapping[str, Any], stated: Mapping[str, Any]
) -> dict[str, Any]:
    whole = {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in document.items()
    }
    for path, value in defaults.items():
        if path not in stated:
            section, dot, name = path.rpartition(".")
            (whole.setdefault(section, {}) if dot else whole)[name] = value
    return whole


def told_options(known: Driver, spec: Mapping[str, Any]) -> list[str]:
    """Options of a resolved spec that held for the tool, by dotted path.

    Defaults of farline's own engine are in a resolved spec, too, and say nothing of the tool.
    """
    also = (*_NEUTRAL, "copy.cipher")
    return [path for path, _ in flat(spec) if path in also or path in known.abilities.takes]
