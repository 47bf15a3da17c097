"""The table `[path]` of a plan: where the emulated path is, what is set or varied on its link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from farline.errors import SpecError
from farline.spec.near import unknown

PATH = "path"
"""Name of the table, and of the section in dotted names: `path.rtt_s`."""


@dataclass(frozen=True)
class PathPlace:
    """Where the emulated path is: a preset, file or running testbed, its two hosts, its link.

    `host_cpus` are CPUs that both ends' programs keep to, and the emulator to the others.
    """

    testbed: str | None = None
    client_host: str | None = None
    server_host: str | None = None
    link: str | None = None
    host_cpus: str | None = None

    def document(self) -> dict[str, str]:
        """What is stated, as the table has it."""
        return {key: value for key, value in vars(self).items() if value is not None}


_PLACE_KEYS = tuple(item.name for item in fields(PathPlace))

Tables = tuple[PathPlace, dict[str, Any], dict[str, tuple[Any, ...]]]
"""Place; single values and alternatives by dotted name."""


def read_path_table(table: Mapping[str, Any]) -> Tables:
    """Place, single values and alternatives from the table.

    Raises:
        SpecError: for a key that is not known, and for several values of what cannot change
            while a testbed is up.
    """
    place: dict[str, str] = {}
    fixed: dict[str, Any] = {}
    axes: dict[str, tuple[Any, ...]] = {}
    for key, raw in table.items():
        if key in _PLACE_KEYS:
            place[key] = _text(key, raw)
            continue
        values = _alternatives(key, raw)
        if len(values) == 1:
            fixed[f"{PATH}.{key}"] = values[0]
        else:
            check_variable(f"[{PATH}] {key}", key)
            axes[f"{PATH}.{key}"] = values
    return PathPlace(**place), fixed, axes


def check_in_use(place: str, key: str) -> None:
    """Refuses to set between runs what cannot change while a testbed is up.

    Raises:
        SpecError: with what can.
    """
    from farline.spec.links import VARIABLE_KEYS

    if key not in VARIABLE_KEYS:
        raise SpecError(
            f"{place}: cannot change between runs; these can: {', '.join(VARIABLE_KEYS)}"
        )


def check_variable(place: str, key: str) -> None:
    """Refuses to vary what cannot change while a testbed is up.

    Raises:
        SpecError: with what can.
    """
    from farline.spec.links import VARIABLE_KEYS

    if key not in VARIABLE_KEYS:
        raise SpecError(
            f"{place}: each value would need its own testbed: give one value; these can vary: "
            f"{', '.join(VARIABLE_KEYS)}"
        )


def _text(key: str, raw: object) -> str:
    if not isinstance(raw, str) or not raw:
        raise SpecError(f"[{PATH}] {key}: {raw!r} is not a string")
    return raw


def _alternatives(key: str, raw: object) -> tuple[Any, ...]:
    items = raw if isinstance(raw, list) else [raw]
    found = [value for item in items for value in _values(key, item)]
    if not found or len(set(found)) < len(found):
        raise SpecError(f"[{PATH}] {key}: {'a value is listed twice' if found else 'no value'}")
    return tuple(found)


def _values(key: str, item: object) -> tuple[Any, ...]:
    """One value, or those of a list or range in a text."""
    from farline.spec.links import LINK_OPTION_BY_KEY
    from farline.spec.values import read_sweep

    place = f"[{PATH}] {key}"
    if not isinstance(item, str) or key not in LINK_OPTION_BY_KEY:
        return (read_link_option(place, key, item),)
    try:
        return read_sweep(LINK_OPTION_BY_KEY[key], item)
    except ValueError as error:
        raise SpecError(f"{place}: {error}") from None


def read_link_option(place: str, key: str, raw: object) -> Any:
    """One value of a link's option.

    Raises:
        SpecError: when there is no such option, or not such a value; the line names `place`.
    """
    from farline.spec.links import LINK_OPTION_BY_KEY
    from farline.spec.values import read_value

    if key not in LINK_OPTION_BY_KEY:
        allowed = (*_PLACE_KEYS, *LINK_OPTION_BY_KEY)
        raise SpecError(f"{place}: unknown; {unknown(key, allowed)}")
    try:
        return read_value(LINK_OPTION_BY_KEY[key], raw)
    except ValueError as error:
        raise SpecError(f"{place}: {error}") from None
