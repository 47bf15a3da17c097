"""Settings that are no product of axes: options that vary as one, and points listed one by one.

```toml
[together.buffer_bytes]       # one name; Yun et al. 2015 varies all four buffers of UDT as one
options = ["udt.send_buffer_bytes", "udt.receive_buffer_bytes"]
values = "128K..64M*2"

[[point]]                     # one setting of a list, such as a line of Yun et al. 2015, Table I
name = 8                      # its place in the list if absent
block_bytes = 179119
[point.udt]
packet_bytes = 8972
```

Every point is combined with everything in `[grid]` and `[together]`. What a point does not say
stands in `[fixed]`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farline.campaign.path_table import PATH
from farline.campaign.plan_values import (
    SECTIONS,
    flatten,
    known_option,
    nest,
    read_alternatives,
    read_option,
)
from farline.errors import SpecError
from farline.spec.near import unknown

if TYPE_CHECKING:
    from farline.spec.table import Option

TOGETHER, POINT = "together", "point"
MOST_NAME = 40
_GROUP_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_GROUP_KEYS = ("options", "values")


@dataclass(frozen=True)
class Together:
    """Options, by dotted path, that have one value in every run; and the values they take."""

    options: tuple[str, ...]
    values: tuple[Any, ...]

    def without(self, given: Collection[str]) -> Together | None:
        """What is left when some options are said otherwise; None when nothing is."""
        left = tuple(path for path in self.options if path not in given)
        return Together(left, self.values) if left else None

    def read(self, place: str, raw: object) -> Any:
        """One value of the group, with its unit; SpecError names `place`."""
        from farline.spec.values import option_at, read_value

        try:
            return read_value(option_at(self.options[0]), raw)
        except ValueError as error:
            raise SpecError(f"{place}: {error}") from None

    def document(self) -> dict[str, Any]:
        """The table that reads to this."""
        return {"options": list(self.options), "values": list(self.values)}


@dataclass(frozen=True)
class Point:
    """One setting of a list: its name, and values of options by dotted path."""

    name: int | str
    values: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """The table that reads to this."""
        return {"name": self.name, **nest(self.values)}


def read_together(table: object) -> dict[str, Together]:
    """Groups of options by their names, from the table `[together]`.

    Raises:
        SpecError: when something in it is unknown or not allowed; the line says where.
    """
    if not isinstance(table, Mapping):
        raise SpecError(f"{TOGETHER}: must be tables [{TOGETHER}.NAME]")
    groups = {str(name): _group(str(name), raw) for name, raw in table.items()}
    _refuse_twice(
        (f"[{TOGETHER}.{name}] options", path)
        for name, group in groups.items()
        for path in group.options
    )
    return groups


def _group(name: str, raw: object) -> Together:
    from farline.store.columns import run_columns

    place = f"[{TOGETHER}.{name}]"
    if not isinstance(raw, Mapping):
        raise SpecError(f"{TOGETHER} {name}: must be a table {place}")
    if not _GROUP_NAME.fullmatch(name) or name in (POINT, *SECTIONS) or _is_option(name):
        raise SpecError(
            f"{place}: the name must be 1 to 40 of a-z, 0-9 and '_', and not the name of an option"
        )
    if name in run_columns():
        raise SpecError(f"{place}: {name} is a column of the results; choose another name")
    for key in raw:
        if key not in _GROUP_KEYS:
            raise SpecError(f"{place} {key}: unknown; {unknown(key, _GROUP_KEYS)}")
    paths = raw.get("options")
    if not isinstance(paths, list) or not paths or not all(isinstance(p, str) for p in paths):
        raise SpecError(f"{place} options: must be a list of options by name")
    options = [known_option(f"{TOGETHER}.{name}", path, varied=True) for path in paths]
    return Together(tuple(paths), _values_of_all(place, options, raw.get("values")))


def _values_of_all(place: str, options: Sequence[Option], raw: object) -> tuple[Any, ...]:
    """The alternatives, read by the first option; every other one must take them too."""
    from farline.spec.values import read_value

    if raw is None:
        raise SpecError(f"{place} values: missing: list the values that the options take")
    try:
        values = read_alternatives(options[0], raw)
        for option in options[1:]:
            if option.kind != options[0].kind:
                raise ValueError(f"{option.path} is not a quantity such as {options[0].path}")
            for value in values:
                read_value(option, value)
    except ValueError as error:
        raise SpecError(f"{place} values: {error}") from None
    return values


def read_points(tables: object) -> tuple[Point, ...]:
    """The list of points.

    Raises:
        SpecError: when something in it is unknown or not allowed; the line says where.
    """
    if not isinstance(tables, list) or not all(isinstance(item, Mapping) for item in tables):
        raise SpecError(f"{POINT}: must be a list of tables [[{POINT}]]")
    points = tuple(_point(number, table) for number, table in enumerate(tables, 1))
    for index, point in enumerate(points):
        for other in points[:index]:
            if point.name == other.name:
                raise SpecError(f"[[{POINT}]] name: {point.name!r} is listed twice")
            if point.values == other.values:
                raise SpecError(f"[[{POINT}]] {point.name}: the same as {other.name}")
    return points


def _point(number: int, table: Mapping[str, Any]) -> Point:
    name = table.get("name", number)
    if (
        isinstance(name, bool)
        or not isinstance(name, int | str)
        or not 0 < len(str(name)) <= MOST_NAME
    ):
        raise SpecError(
            f"[[{POINT}]] name: {name!r} is not a whole number or 1 to {MOST_NAME} characters"
        )
    part = f"{POINT} {name}"
    values = {}
    for path, raw in flatten({key: value for key, value in table.items() if key != "name"}):
        if not path.startswith(f"{PATH}."):
            known_option(part, path, varied=True)
        values[path] = read_option(part, path, raw)
    return Point(name, values)


def points_without(points: Sequence[Point], given: Collection[str]) -> tuple[Point, ...]:
    """The points without the options that are said otherwise.

    Of points that are the same then the first stays; none stays where nothing is left of any.
    """
    left: list[Point] = []
    for point in points:
        values = {path: value for path, value in point.values.items() if path not in given}
        if all(values != other.values for other in left):
            left.append(Point(point.name, values))
    return tuple(left) if any(point.values for point in left) else ()


def check_apart(
    axes: Collection[str], groups: Mapping[str, Together], points: Sequence[Point]
) -> None:
    """Refuses an option that is varied in more than one way.

    Raises:
        SpecError: with the option and one of the places.
    """
    stated = dict.fromkeys(path for point in points for path in point.values)
    _refuse_twice(
        [
            *(("[grid]", path) for path in axes),
            *(
                (f"[{TOGETHER}.{n}] options", p)
                for n, group in groups.items()
                for p in group.options
            ),
            *((f"[[{POINT}]]", path) for path in stated),
        ]
    )


def _refuse_twice(places: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> None:
    seen: dict[str, str] = {}
    for place, path in places:
        if path in seen:
            raise SpecError(f"{place} {path}: is already varied in {seen[path]}")
        seen[path] = place


def _is_option(name: str) -> bool:
    from farline.spec.table import OPTIONS

    return any(option.path == name for option in OPTIONS)
