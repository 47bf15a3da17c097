"""Which transfers are meant, from texts such as `modality=E,site=ORNL`.

Refusals call a text as the option that has it on the command line.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import replace

from farline.errors import SpecError, UsageError
from farline.spec import units
from farline.spec.infrastructure import Infrastructure
from farline.spec.near import unknown
from farline.spec.transfers import TRANSFER_COLUMNS
from farline.store.filters import read_since
from farline.store.transfers import Selection

_SIZES = ("buffer_bytes", "block_bytes", "bytes")
"""Columns whose values may have a unit."""
_TEXT_KEYS = ("modality", "site", "sites", "since", "until", "min-rate", "min-bytes")
"""What `--a` and `--b` know besides columns."""


def select(
    infrastructure: Infrastructure | None = None,
    *,
    modality: str | None = None,
    sites: str | None = None,
    at_site: str | None = None,
    where: Sequence[str] = (),
    since: str | None = None,
    until: str | None = None,
    min_rate_bps: float | None = None,
    min_bytes: float | None = None,
) -> Selection:
    """The selection that texts say: sites as `ANL,ORNL`, columns as `streams=1,4`, times as an
    ISO date or time, or as an age such as `7d`.

    Raises:
        SpecError: for a column, value, time or site that is not there.
        UsageError: for a text that cannot be read, or sites without an infrastructure.
    """
    return Selection(
        modality=modality,
        sites=_sites(sites, infrastructure, "--sites"),
        at_site=_site(at_site, infrastructure, "--at-site"),
        where=_columns(where),
        since=_moment(since, "--since"),
        until=_moment(until, "--until"),
        min_rate_bps=min_rate_bps,
        min_bytes=None if min_bytes is None else int(min_bytes),
    )


def narrowed(base: Selection, text: str, sites: Infrastructure | None, flag: str) -> Selection:
    """`base` with what a text such as `modality=E,site=ORNL,streams=1,4` adds or changes.

    Raises:
        SpecError: for a key or value that is not there or cannot be read.
    """
    found = base
    for key, values in _parts(text, flag):
        found = _with(found, key, values, sites, flag)
    return found


def keys_of(text: str, flag: str) -> set[str]:
    """The keys that a text such as `modality=E,site=ORNL` states.

    Raises:
        UsageError: when it begins with none, or states one twice.
    """
    return {key for key, _ in _parts(text, flag)}


def at_the_sites_of(
    base: Selection, text: str, sites: Infrastructure | None, flag: str
) -> Selection:
    """`base` at the sites that `narrowed` has; what else the text says is of transfers alone.

    Raises:
        SpecError: for a key or value that is not there or cannot be read.
    """
    found = narrowed(base, text, sites, flag)
    return replace(base, sites=found.sites, at_site=found.at_site)


def _parts(text: str, flag: str) -> list[tuple[str, str]]:
    """Keys and values; a piece without `=` is a further value of the key before it."""
    parts: list[tuple[str, str]] = []
    for piece in text.split(","):
        key, equals, value = piece.partition("=")
        if equals:
            parts.append((key.strip(), value.strip()))
        elif parts:
            parts[-1] = (parts[-1][0], f"{parts[-1][1]},{piece.strip()}")
        else:
            raise UsageError(f"{flag} {text!r}: write KEY=VALUE,..., such as modality=E")
    _check_once([key for key, _ in parts], flag)
    return parts


def _check_once(names: Sequence[str], flag: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{flag} {twice}: given twice; write several values as one {twice}=A,B")


def _columns(texts: Sequence[str]) -> dict[str, tuple[object, ...]]:
    """Columns with their allowed values, each of a text such as `streams=1,4`."""
    found = [_where(text) for text in texts]
    _check_once([column for column, _ in found], "--where")
    return dict(found)


def _with(
    base: Selection, key: str, value: str, sites: Infrastructure | None, flag: str
) -> Selection:
    where = f"{flag} {key}"
    match key:
        case "modality":
            return replace(base, modality=value)
        case "site":
            return replace(base, at_site=_site(value, sites, where))
        case "sites":
            return replace(base, sites=_sites(value, sites, where))
        case "since":
            return replace(base, since=_moment(value, where))
        case "until":
            return replace(base, until=_moment(value, where))
        case "min-rate":
            return replace(base, min_rate_bps=_number(value, units.parse_rate, where))
        case "min-bytes":
            return replace(base, min_bytes=int(_number(value, units.parse_size, where)))
    if key not in TRANSFER_COLUMNS:
        allowed = (*_TEXT_KEYS, *TRANSFER_COLUMNS)
        raise UsageError(f"{flag} {key!r}: no such key; {unknown(key, allowed)}")
    return replace(base, where={**base.where, **dict([_where(f"{key}={value}", flag)])})


def _where(text: str, flag: str = "--where") -> tuple[str, tuple[object, ...]]:
    """A column and its allowed values, from `streams=1,4` or `buffer_bytes=4M,none`."""
    name, equals, values = text.partition("=")
    column = name.strip()
    if not equals:
        raise UsageError(f"{flag} {text!r}: write COLUMN=VALUE, such as streams=4")
    if column not in TRANSFER_COLUMNS:
        said = unknown(column, TRANSFER_COLUMNS)
        raise UsageError(f"{flag} {column!r}: no such column; {said}")
    try:
        return column, tuple(_value(column, value.strip()) for value in values.split(","))
    except ValueError as error:
        raise UsageError(f"{flag} {column}: {error}") from None


def _value(column: str, text: str) -> object:
    if text == "none":
        return None
    if column in _SIZES:
        return units.parse_size(text)
    match TRANSFER_COLUMNS[column]:
        case "string":
            return text
        case "bool":
            return units.parse_switch(text)
        case "double":
            return units.parse_number(text)
        case _:
            return units.parse_integer(text)


def _number(text: str, parse: Callable[[str], float], where: str) -> float:
    try:
        return float(parse(text))
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None


def _sites(text: str | None, sites: Infrastructure | None, where: str) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UsageError(f"{where} {text!r}: name sites, such as {where} ANL,ORNL")
    return _known(names, sites, where)


def _site(text: str | None, sites: Infrastructure | None, where: str) -> str | None:
    return None if text is None else _known((text.strip(),), sites, where)[0]


def _known(names: tuple[str, ...], sites: Infrastructure | None, where: str) -> tuple[str, ...]:
    if sites is None:
        raise UsageError(
            f"{where}: it is not known which host belongs to which site; give --infrastructure "
            "SITES.toml"
        )
    return sites.sites_named(names)


def _moment(text: str | None, where: str) -> datetime.datetime | None:
    """A moment from a date, a time or an age; a time without a zone is the user's own."""
    if text is None:
        return None
    try:
        return datetime.datetime.fromisoformat(read_since(text))
    except SpecError:
        raise UsageError(
            f"{where} {text!r}: write a date (2026-11-21), a time, or an age (30m, 2h, 7d)"
        ) from None
