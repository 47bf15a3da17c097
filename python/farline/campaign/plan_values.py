"""Values in the tables of a plan: options by dotted path, read with their units and ranges.

Every part of a plan (`[fixed]`, `[grid]`, `[together.NAME]`, `[[point]]`, the reference) reads its
options here, so that each is refused in the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from farline.campaign.path_table import PATH, check_in_use, read_link_option
from farline.errors import SpecError
from farline.spec.near import unknown
from farline.spec.table import COPY, TRANSPORT_SECTIONS

if TYPE_CHECKING:
    from farline.spec.table import Option

SECTIONS = (*TRANSPORT_SECTIONS, COPY, PATH)
REFERENCE = "campaign.reference"


def read_section(part: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values, or alternatives (`grid`), of options by dotted path."""
    for path, raw in flatten(table):
        yield path, read_option(part, path, raw)


def read_option(part: str, path: str, raw: object) -> Any:
    """One value of the option at `path`; in `grid` its alternatives.

    Raises:
        SpecError: when there is no such option, or not such a value; the line names the place.
    """
    from farline.spec.values import read_value

    place = place_of(part, path)
    if PATH in (path.rpartition(".")[0], path):
        if part != REFERENCE:
            raise SpecError(f"[{part}] {path}: belongs in its own table, [{PATH}]")
        name = path.rpartition(".")[2]
        value = read_link_option(place, name, raw)
        check_in_use(place, name)
        return value
    option = known_option(part, path, varied=part == "grid")
    try:
        return read_alternatives(option, raw) if part == "grid" else read_value(option, raw)
    except ValueError as error:
        raise SpecError(f"{place}: {error}") from None


def known_option(part: str, path: str, varied: bool) -> Option:
    """The option of a run at `path`, one that may be varied where that is wanted.

    Raises:
        SpecError: with what is allowed.
    """
    from farline.spec.table import OPTIONS

    section, place = path.rpartition(".")[0], place_of(part, path)
    option = next((option for option in OPTIONS if option.path == path), None)
    if section == PATH or path == PATH:
        raise SpecError(f"{place}: belongs in [{PATH}]")
    if section and section not in SECTIONS:
        raise SpecError(f"{place}: no section {section}; {unknown(section, SECTIONS)}")
    if option is None:
        siblings = [o.name for o in OPTIONS if o.path.rpartition(".")[0] == section]
        raise SpecError(f"{place}: unknown; {unknown(path.rpartition('.')[2], siblings)}")
    if path == "seed":
        raise SpecError(f"{place}: belongs in [campaign]; the seed of each run is derived from it")
    if varied and not option.sweep:
        raise SpecError(f"{place}: cannot be varied; put it in [fixed]")
    return option


def place_of(part: str, path: str) -> str:
    """Where an option stands in a plan: `[grid.tcp] mss_bytes`."""
    section, dot, name = path.rpartition(".")
    return f"[{part}{dot}{section}] {name}"


def read_alternatives(option: Option, raw: object) -> tuple[Any, ...]:
    """Alternatives from a text, one value, or a list of these.

    Raises:
        ValueError: when one cannot be read, there is none, or one stands there twice.
    """
    from farline.spec.values import read_sweep, read_value

    if isinstance(raw, str):
        return read_sweep(option, raw)
    lists = option.kind == "array"
    several = isinstance(raw, list) and (not lists or all(isinstance(i, list | str) for i in raw))
    if not several:
        return (read_value(option, raw),)
    found: list[Any] = []
    for item in raw if isinstance(raw, list) else ():
        found += read_sweep(option, item) if isinstance(item, str) else [read_value(option, item)]
    if not found:
        raise ValueError("the list is empty: name at least one value")
    for index, value in enumerate(found):
        if value in found[:index]:
            raise ValueError(f"{value!r} is listed twice")
    return tuple(found)


def flatten(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """`{"tcp": {"mss_bytes": 1400}}` as `("tcp.mss_bytes", 1400)`."""
    for key, value in document.items():
        if key in SECTIONS and isinstance(value, Mapping):
            yield from ((f"{key}.{name}", inner) for name, inner in value.items())
        else:
            yield key, value


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `flatten`."""
    document: dict[str, Any] = {}
    for path, value in values.items():
        section, dot, name = path.rpartition(".")
        if dot:
            document.setdefault(section, {})[name] = value
        else:
            document[path] = value
    return document
