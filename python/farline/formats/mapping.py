"""How the columns of a table, and values given by hand, are named and read.

A mapping is a list such as `rate_bps=Throughput:Mbit/s, rtt_ms="RTT (s)":s, modality='T'`:

- `column=name` takes a column of the table, `column=name:unit` one that is in another unit;
- `column='text'` gives every row the same value;
- names with commas, colons, quotes or spaces at an end stand in double quotes.

Units are those of `farline.spec.units` for rates, sizes and times, and other spellings of them
(`Mbits/sec`, `Mbps`, `MBps`). `GBytes` is refused: some tools mean GB by it, some GiB. For
`complete`, the unit is the word (or words, with `|` between) that means success; for `started_at`
it is `s`, `ms` or `us` since 1970, or a format of strptime, and ISO 8601 without one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from farline.errors import SpecError
from farline.formats.mapped import Mapped
from farline.formats.rows import Unreadable, check, moment_us, time_us
from farline.spec import units
from farline.spec.transfers import MODALITIES, TRANSFER_COLUMNS

Value = int | float | str | bool

MAPPABLE = tuple(name for name in TRANSFER_COLUMNS if name != "source")

# What was measured is never filled in by hand.
MEASURED = ("started_at", "duration_s", "bytes", "rate_bps", "complete", "code", "source")
# What every row has already.
_NEVER_EMPTY = ("tool",)

_SIZES = ("bytes", "buffer_bytes", "block_bytes")
_SECONDS = {"duration_s": "s", "rtt_ms": "ms"}
_EPOCH_US = {"s": 1_000_000, "ms": 1_000, "us": 1}

Read = Callable[[str], Value | None]


_ITEM = re.compile(
    r"""\s*(?P<column>[^=,:"'\s]+)\s*=\s*
    (?:'(?P<literal>[^']*)'|"(?P<quoted>[^"]+)"|(?P<bare>[^,:"'=]+?))\s*
    (?::\s*(?:"(?P<quoted_unit>[^"]+)"|(?P<unit>[^,"'=]+?)))?\s*(?:,|$)""",
    re.VERBOSE,
)


def parse_mapping(text: str) -> tuple[Mapped, ...]:
    """The entries of a mapping.

    Raises:
        SpecError: for what is no entry, an unknown column, one that comes twice, or a unit that
            its column cannot have.
    """
    entries: list[Mapped] = []
    at = 0
    while at < len(text):
        match = _ITEM.match(text, at)
        if match is None:
            raise SpecError(
                f"mapping: {text[at:].strip()!r} is not an entry: write COLUMN=NAME, "
                "COLUMN=NAME:UNIT or COLUMN='TEXT', with commas between"
            )
        entries.append(_entry(match))
        at = match.end()
    if not entries:
        raise SpecError("mapping: empty; write COLUMN=NAME[:UNIT],...")
    names = [entry.column for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"mapping: column {name} is given twice")
    return tuple(entries)


def _entry(match: re.Match[str]) -> Mapped:
    column, literal = match["column"], match["literal"]
    if column not in MAPPABLE:
        raise SpecError(f"mapping: {column!r} is not a column; use {', '.join(MAPPABLE)}")
    unit = match["quoted_unit"] or match["unit"]
    if literal is not None and unit is not None:
        raise SpecError(f"mapping: {column}: write the unit of a fixed text inside the quotes")
    found = Mapped(column, _name_of(match), unit, literal is not None)
    try:
        read = reader_of(column, unit)
        if literal is not None:
            _check(column, read(literal))
    except (ValueError, OverflowError, Unreadable) as failure:
        raise SpecError(f"mapping: {column}: {failure}") from None
    return found


def _name_of(match: re.Match[str]) -> str:
    found = (match[name] for name in ("literal", "quoted", "bare"))
    return next(name for name in found if name is not None)


def check_defaults(defaults: Mapping[str, Value]) -> dict[str, Value]:
    """Values for columns that a log leaves empty, as the columns hold them.

    Texts are read with their units (`45ms`, `4MiB`); what is no text must fit as it is.

    Raises:
        SpecError: for an unknown column, one that only a measurement can fill, or a bad value.
    """
    allowed = [name for name in TRANSFER_COLUMNS if name not in (*MEASURED, *_NEVER_EMPTY)]
    checked: dict[str, Value] = {}
    for name, value in defaults.items():
        if name not in allowed:
            raise SpecError(f"{name!r} cannot be set; these can: {', '.join(allowed)}")
        try:
            found = reader_of(name, None)(value if isinstance(value, str) else repr(value))
            _check(name, found)
        except (ValueError, OverflowError, Unreadable) as failure:
            raise SpecError(f"{name}: {failure}") from None
        if found is None:
            raise SpecError(f"{name}: the value is empty")
        checked[name] = found
    return checked


def _check(column: str, value: Value | None) -> None:
    """Raises Unreadable for a value that no row may have."""
    if column != "complete":
        check({"complete": False, column: value})


def reader_of(column: str, unit: str | None) -> Read:
    """What turns a text into a value of `column`; it raises ValueError. An empty text is no value.

    Raises:
        ValueError: when the column cannot have the unit.
    """
    read = _reader(column, unit)

    def read_if_any(text: str) -> Value | None:
        text = text.strip()
        return None if text.lower() in _EMPTY else read(text)

    return read_if_any


_EMPTY = ("", "-", "na", "n/a", "nan", "null", "none")


def _reader(column: str, unit: str | None) -> Callable[[str], Value]:
    if column == "complete":
        return _success(unit)
    if column == "started_at":
        return _moment(unit)
    kind = TRANSFER_COLUMNS[column]
    if column == "rate_bps":
        return _scaled(unit, units.parse_rate, float)
    if column in _SIZES:
        return _scaled(unit, units.parse_size, int)
    if column in _SECONDS:
        return _time(unit or _SECONDS[column], 1000.0 if column == "rtt_ms" else 1.0)
    if unit is not None:
        raise ValueError(f"it has no unit, so leave out {unit!r}")
    if column == "modality":
        return _modality
    return _plain_whole if kind.startswith("int") else str


def _scaled(
    unit: str | None, parse: Callable[[str], int], kind: type[int] | type[float]
) -> Callable[[str], Value]:
    """Reads numbers in `unit` (the column's own if None), or texts that carry their unit."""
    # One unit is often less than a bit or a byte, so what a million of it is gives the factor.
    factor = 1.0 if unit is None else parse(_spelled(f"1000000{unit}")) / 1_000_000

    def read(text: str) -> Value:
        try:
            value = float(text) * factor
        except ValueError:
            return kind(parse(_spelled(text)))
        return round(value) if kind is int and abs(value) < 1e300 else value

    return read


_SPELLINGS = re.compile(
    r"(?P<number>.*?[\d.])\s*(?P<prefix>[kKMGT]?)(?P<binary>i?)"
    r"(?P<unit>[bB]its?|b|[bB]ytes?|B)(?P<per>ps|/s|/sec|/second|)"
)


def _spelled(text: str) -> str:
    """A quantity with its unit as `farline.spec.units` spells it.

    Raises:
        ValueError: for prefixed Bytes, of which nobody knows whether 1000 or 1024 is meant.
    """
    match = _SPELLINGS.fullmatch(text.strip())
    if match is None:
        return text
    prefix, per = match["prefix"], "/s" if match["per"] else ""
    in_bytes = match["unit"] == "B" or match["unit"].lower().startswith("byte")
    if match["unit"] not in ("B", "b") and in_bytes and prefix and not match["binary"]:
        word = f"{prefix}{match['unit']}{match['per']}"
        letter = "k" if prefix in "kK" else prefix
        raise ValueError(
            f"{word!r} could be {letter}B{per} (1000) or {prefix.upper()}iB{per} (1024): write "
            "one of them"
        )
    if match["unit"] == "b" and not per:
        return text
    return f"{match['number']}{prefix}{match['binary']}{'B' if in_bytes else 'bit'}{per}"


def plain(text: str, marks: set[str]) -> str:
    """A figure with a point before its fraction, and no mark between its thousands.

    `marks` are those that other figures of the table have before their fraction.

    Raises:
        ValueError: where a comma may be either.
    """
    match = _FIGURE.fullmatch(text.strip())
    if match is None:
        return text
    sign, digits, exponent, unit = match.groups()
    digits = _GROUP.sub("", digits)
    mark = decimal_mark(text)
    if mark is None and "," in digits:
        if not marks:
            raise ValueError(
                f"{text!r} has a comma that may be decimal or a thousands separator: "
                "write a decimal point, or no separator"
            )
        mark = "," if "," in marks else "."
    elif mark is None:
        mark = "," if marks == {","} else "."
    between = "." if mark == "," else ","
    whole, _, fraction = digits.partition(mark)
    if between in whole and not re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", whole, re.ASCII):
        return text
    whole = whole.replace(between, "")
    return f"{sign}{whole}{'.' if fraction else ''}{fraction}{exponent}{unit}"


def decimal_mark(text: str) -> str | None:
    """What stands before the fraction of a figure: `,` or `.`; None where it does not say it.

    `1,234.5` and `1.234,5` say it, and so do `9,41`, `0,412` and `1,234,567`; `1,234` does not.
    """
    match = _FIGURE.fullmatch(text.strip())
    digits = _GROUP.sub("", match[2]) if match else ""
    found = re.findall("[.,]", digits)
    if match is None or not found:
        return None
    last: str = found[-1]
    other = "." if last == "," else ","
    head, _, tail = digits.rpartition(last)
    if len(set(found)) > 1 or match[3]:
        return last
    if len(found) > 1:
        return other
    return last if len(tail) != 3 or len(head) > 3 or head.lstrip("0") == "" else None


_FIGURE = re.compile(
    r"([+-]?)(\d[\d.,'\u2019 \u00a0\u202f]*\d|\d)((?:[eE][+-]?\d+)?)(\s*[^\d.,]*)", re.ASCII
)
# Between thousands; not what stands before a unit.
_GROUP = re.compile(r"(?<=\d)['\u2019 \u00a0\u202f](?=\d{3}(?!\d))", re.ASCII)


def _time(unit: str, per_second: float) -> Callable[[str], Value]:
    factor = units.parse_duration(f"1{unit}")

    def read(text: str) -> Value:
        try:
            return float(text) * factor * per_second
        except ValueError:
            pass
        try:
            return units.parse_duration(text) * per_second
        except ValueError:
            raise ValueError(
                f"{text!r} is not a time: write a number of {unit}, or one with its unit such as "
                "100ms or 10s"
            ) from None

    return read


def _success(words: str | None) -> Callable[[str], Value]:
    if words is None:
        return units.parse_switch
    good = {word.strip().lower() for word in words.split("|")}
    return lambda text: text.lower() in good


def _moment(unit: str | None) -> Callable[[str], Value]:
    if unit in _EPOCH_US:
        return lambda text: round(float(text) * _EPOCH_US[unit])
    if unit is not None and "%" not in unit:
        raise ValueError(f"{unit!r} is not s, ms or us, nor a format with %")

    def read(text: str) -> Value:
        if unit is not None:
            moment = datetime.strptime(text, unit)
            return moment_us(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
        found = time_us(text)
        if found is None:
            raise ValueError(f"{text!r} is not a time: write 2026-11-20T10:00:00Z")
        return found

    return read


def _modality(text: str) -> Value:
    if text not in MODALITIES:
        raise ValueError(f"{text!r} is not a modality: use {', '.join(MODALITIES)}")
    return text


def _plain_whole(text: str) -> Value:
    try:
        return units.parse_integer(text)
    except ValueError:
        value = units.parse_number(text)
        if value != int(value):
            raise ValueError(f"{text!r} is not a whole number") from None
        return int(value)
