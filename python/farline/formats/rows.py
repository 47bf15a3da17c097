"""Rows: what one must be, and how they become tables.

A format's reader gives `Record`s: a row with the line it came from. Here a row is checked,
completed by its rate, counted and gathered; one that cannot be true is malformed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from farline.formats.reading import Reading
from farline.spec.transfers import TRANSFER_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
"""Columns of `TRANSFER_COLUMNS` that are known; `started_at` as microseconds since 1970 UTC."""

BATCH_ROWS = 16_384
MOST_INT32, MOST_INT64 = 2**31 - 1, 2**63 - 1
LATEST_US = 7_258_118_400_000_000
"""The year 2200: a later start is a slip."""

_WHOLE = {"int32": MOST_INT32, "int64": MOST_INT64}
_ONE_OR_MORE = ("streams", "concurrency", "parallelism", "stripes")


class NotATransfer(Exception):
    """Says why a record is known to be no transfer."""


class Unreadable(Exception):
    """Says why a record cannot be read."""


@dataclass(frozen=True, slots=True)
class Record:
    """A row, and where it came from."""

    line: int
    text: str
    row: Row


def arrow_schema() -> pa.Schema:
    """The columns of `TRANSFER_COLUMNS`; times are microseconds of UTC without a zone."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "timestamp": pa.timestamp("us"),
        "double": pa.float64(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "bool": pa.bool_(),
    }
    return pa.schema([(name, types[kind]) for name, kind in TRANSFER_COLUMNS.items()])


def from_lines(reading: Reading, parse: Callable[[str], Row]) -> Iterator[Record]:
    """Records of a log with one in each line, by a parser of a line.

    The parser raises `NotATransfer` or `Unreadable` where there is none.
    """
    for number, text in reading.lines():
        try:
            yield Record(number, text, parse(text))
        except NotATransfer as reason:
            reading.skip(str(reason))
        except Unreadable as reason:
            reading.malformed(number, text, str(reason))


def tables(reading: Reading, tool: str, records: Iterable[Record]) -> Iterator[pa.Table]:
    """Tables of the records that hold, counted; a table has at most `BATCH_ROWS` rows."""
    batch: list[Row] = []
    for record in records:
        row = {"tool": tool, "complete": True, **record.row, "source": reading.source}
        try:
            check(row)
        except Unreadable as reason:
            reading.malformed(record.line, record.text, str(reason))
            continue
        reading.tally.transfers += row["complete"]
        reading.tally.failed += not row["complete"]
        batch.append(row)
        if len(batch) >= BATCH_ROWS:
            yield table_of(batch)
            batch = []
    if batch:
        yield table_of(batch)


def read_records(
    tool: str, records: Callable[[Reading], Iterable[Record]]
) -> Callable[[Reading], Iterator[pa.Table]]:
    """How a format is read whose logs give `records` of one tool."""
    return lambda reading: tables(reading, tool, records(reading))


class LineByLine(Protocol):
    """What makes records of a log that has to be remembered from line to line."""

    def __init__(self, reading: Reading) -> None:
        """At the start of a log."""

    def take(self, number: int, line: str) -> Iterator[Record]:
        """The records that a line ends."""

    def end(self) -> Iterator[Record]:
        """The records that the end of the log ends."""


def line_by_line(start: type[LineByLine]) -> Callable[[Reading], Iterator[Record]]:
    """The records that such a one makes of a log's lines."""

    def records(reading: Reading) -> Iterator[Record]:
        found = start(reading)
        for number, line in reading.lines():
            yield from found.take(number, line)
        yield from found.end()

    return records


def table_of(rows: list[Row]) -> pa.Table:
    """Checked rows as a table."""
    import pyarrow as pa

    schema = arrow_schema()
    known = {name for row in rows for name in row}
    columns = [
        pa.array([row.get(field.name) for row in rows], field.type)
        if field.name in known
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def check(row: Row) -> None:
    """Completes `row` by its rate, or refuses it.

    A complete transfer needs a rate above 0, given or from bytes and duration. A failed one has
    none: what it moved until then is no measurement.

    Raises:
        Unreadable: with what cannot be true of it.
    """
    for name, value in row.items():
        kind = TRANSFER_COLUMNS[name]
        if value is None:
            continue
        if kind == "string":
            # JSON can hold halves of characters, which no table can.
            row[name] = value.encode("utf-8", "replace").decode() if not value.isascii() else value
        elif kind in _WHOLE:
            _check_whole(name, value, _WHOLE[kind])
        elif kind == "double" and not (math.isfinite(value) and value >= 0):
            raise Unreadable(f"{name} is {value:g}: it must be a number from 0")
    started_us = row.get("started_at")
    if started_us is not None and not 0 <= started_us <= LATEST_US:
        raise Unreadable("the start is not between 1970 and 2200")
    if row["complete"]:
        row["rate_bps"] = _rate_bps(row)
    else:
        row["rate_bps"] = None


def _check_whole(name: str, value: int, most: int) -> None:
    least = 1 if name in _ONE_OR_MORE else 0
    if not least <= value <= most:
        raise Unreadable(f"{name} is {value}: it must be between {least} and {most}")


def _rate_bps(row: Row) -> float:
    rate_bps, moved, duration_s = row.get("rate_bps"), row.get("bytes"), row.get("duration_s")
    if duration_s is not None and duration_s <= 0:
        raise Unreadable("a complete transfer took no time")
    if rate_bps is None:
        if moved is None:
            raise Unreadable("a complete transfer has neither a rate nor bytes")
        if duration_s is None:
            raise Unreadable("a complete transfer has bytes but no duration")
        rate_bps = moved * 8 / duration_s
    if rate_bps <= 0:
        raise Unreadable("a complete transfer has rate 0")
    if not math.isfinite(rate_bps):
        raise Unreadable("a complete transfer has a rate without limit")
    return float(rate_bps)


def number(value: object) -> float | None:
    """A finite number of a JSON document, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def whole(value: object) -> int | None:
    """A whole number of a JSON document (as the nearest, if it has a fraction), or None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = number(value)
    return None if found is None else round(found)


def above_zero(value: object) -> int | None:
    """A whole number above 0, or None: tools write 0 for what they leave to the kernel."""
    found = whole(value)
    return found if found is not None and found > 0 else None


def word(value: object) -> str | None:
    """A text that is not empty, or None."""
    return value.strip() or None if isinstance(value, str) else None


def address(value: object) -> str | None:
    """A host, without the form that IPv4 addresses have on IPv6 sockets; None for none."""
    host = word(value)
    if host is None:
        return None
    host = host.removeprefix("::ffff:") if "." in host else host
    return None if host in ("0.0.0.0", "::") else host


def time_us(text: object) -> int | None:
    """Microseconds since 1970 UTC from an ISO 8601 text; without a zone it is taken as UTC."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment_us(moment)


def moment_us(moment: datetime) -> int:
    """Microseconds since 1970 of a moment with a zone, without rounding."""
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
