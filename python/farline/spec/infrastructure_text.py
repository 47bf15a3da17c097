"""An infrastructure from TOML, as docs/guide/infrastructure.md has it; refusals say the place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from farline.errors import SpecError, UsageError
from farline.spec import units
from farline.spec.infrastructure import Connection, FileSystem, Infrastructure, Site
from farline.spec.near import unknown
from farline.spec.toml_reading import read_toml

_TOP = ("name", "capacity_bps", "sites", "connections")
_SITE = ("hosts", "host_bps", "file_systems", "latitude", "longitude")
_FILE_SYSTEM = ("read_bps", "write_bps")
_CONNECTION = ("rtt_ms", "capacity_bps")
LONGEST_RTT_MS = 100_000.0
"""More is a slip of the keyboard: a minute and a half."""
_SEPARATOR = " - "


def load_infrastructure(path: Path) -> Infrastructure:
    """The infrastructure that a file describes.

    Raises:
        UsageError: when the file cannot be read.
        SpecError: when it says what is not allowed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not valid UTF-8 text") from None
    return read_infrastructure(text, str(path))


def read_infrastructure(text: str, where: str) -> Infrastructure:
    """An infrastructure from TOML; `where` is what refusals call the text, such as its file.

    Raises:
        SpecError: when the text is no TOML or describes no infrastructure: one line with the place.
    """
    try:
        document = read_toml(text)
    except ValueError as error:
        raise SpecError(f"{where}: not TOML: {error}") from None
    _refuse_unknown(document, _TOP, where)
    name = _text(document.get("name", "infrastructure"), f"{where}: name")
    sites = _table(document.get("sites", {}), f"{where}: sites")
    connections = _table(document.get("connections", {}), f"{where}: connections")
    try:
        return Infrastructure(
            name=name,
            sites=tuple(_site(key, raw, f"{where}: sites.{key}") for key, raw in sites.items()),
            connections=tuple(
                _connection(key, raw, f"{where}: connections.{key!r}")
                for key, raw in connections.items()
            ),
            capacity_bps=_rate(document.get("capacity_bps"), f"{where}: capacity_bps"),
        )
    except SpecError as error:
        raise SpecError(error.message if where in error.message else f"{where}: {error}") from None


def _site(name: str, raw: object, place: str) -> Site:
    table = _table(raw, place)
    _refuse_unknown(table, _SITE, place)
    hosts = table.get("hosts", [])
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise SpecError(f"{place}.hosts: {hosts!r} is not a list of strings")
    systems = _table(table.get("file_systems", {}), f"{place}.file_systems")
    return Site(
        name=name,
        hosts=tuple(hosts),
        host_bps=_rate(table.get("host_bps"), f"{place}.host_bps"),
        file_systems=tuple(
            _file_system(key, each, f"{place}.file_systems.{key}") for key, each in systems.items()
        ),
        latitude=_degrees(table.get("latitude"), 90, f"{place}.latitude"),
        longitude=_degrees(table.get("longitude"), 180, f"{place}.longitude"),
    )


def _file_system(name: str, raw: object, place: str) -> FileSystem:
    table = _table(raw, place)
    _refuse_unknown(table, _FILE_SYSTEM, place)
    rates = {key: _rate(table.get(key), f"{place}.{key}") for key in _FILE_SYSTEM}
    return FileSystem(name, rates["read_bps"], rates["write_bps"])


def _connection(key: str, raw: object, place: str) -> Connection:
    ends = [end.strip() for end in key.split(_SEPARATOR)]
    if len(ends) != 2 or not all(ends):
        raise SpecError(f'{place}: write two sites, such as "ANL - ORNL"')
    if isinstance(raw, int | float) and not isinstance(raw, bool) and raw > 0:
        # Without `rtt_ms` before it, a number does not say whether it is milliseconds.
        raise SpecError(f"{place}: {raw} could be {raw}ms or {raw}s; write the unit")
    table = raw if isinstance(raw, Mapping) else {"rtt_ms": raw}
    _refuse_unknown(table, _CONNECTION, place)
    if "rtt_ms" not in table:
        raise SpecError(f"{place}: no rtt_ms; every connection needs one")
    return Connection(
        sites=(ends[0], ends[1]),
        rtt_ms=_rtt_ms(table["rtt_ms"], f"{place}.rtt_ms"),
        capacity_bps=_rate(table.get("capacity_bps"), f"{place}.capacity_bps"),
    )


def _refuse_unknown(table: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in known:
            raise SpecError(f"{place}: unknown key {key!r}; {unknown(key, known)}")


def _table(raw: object, place: str) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        raise SpecError(f"{place}: {raw!r} is not a table")
    return raw


def _text(raw: object, place: str) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise SpecError(f"{place}: {raw!r} is not a string")
    return raw.strip()


def _rate(raw: object, place: str) -> float | None:
    """Bits per second from a number or a text such as "10G"; None where there is none."""
    if raw is None:
        return None
    value = _number(raw, units.parse_rate, place)
    if not (value > 0 and math.isfinite(value)):
        raise SpecError(f"{place}: {raw!r} is not a rate above 0")
    return value


def _rtt_ms(raw: object, place: str) -> float:
    """Milliseconds from a number of them or a text with its unit such as "22.6ms"."""
    value = _number(raw, units.parse_rtt_ms, place)
    if not 0 <= value <= LONGEST_RTT_MS:
        raise SpecError(f"{place}: {raw!r} is not between 0 and {LONGEST_RTT_MS:.0f} ms")
    return value


def _number(raw: object, parse: Callable[[str], float], place: str) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise SpecError(f"{place}: {raw!r} is neither a number nor a string with a unit")
    try:
        return float(parse(raw) if isinstance(raw, str) else raw)
    except OverflowError:
        raise SpecError(f"{place}: a number of {len(str(raw))} digits is too large") from None
    except ValueError as error:
        raise SpecError(f"{place}: {error}") from None


def _degrees(raw: object, most: int, place: str) -> float | None:
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not abs(raw) <= most:
        raise SpecError(f"{place}: {raw!r} is not between -{most} and {most} degrees")
    return float(raw)
