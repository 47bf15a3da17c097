"""Any table: a line for each transfer, a header, columns named by a mapping.

The delimiter is the one of comma, semicolon, tab, bar and spaces that the header is split by.
Columns whose header is the name of one of ours need no mapping. A line is a record by itself:
no field goes over a line end. Lines that start with `#` are comments.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.errors import SpecError
from farline.ingest.format import Format
from farline.ingest.mapping import MAPPABLE, Mapped, Read
from farline.ingest.reading import Reading
from farline.ingest.rows import Record, Row, Unreadable, tables
from farline.spec.transfers import MODALITIES

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = ",;\t|"

Split = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class _Column:
    """Where a column's texts are (None: a fixed text), and what reads them."""

    name: str
    index: int | None
    read: Read
    literal: str = ""


def _splitter(header: str) -> Split:
    """What splits lines as the header is split."""
    delimiter = max(DELIMITERS, key=header.count)
    if header.count(delimiter) == 0:
        return str.split

    def split(line: str) -> list[str]:
        try:
            cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
        except csv.Error as failure:
            raise Unreadable(f"no line of a table: {failure}") from None
        return cells

    return split


def _columns(
    header: Sequence[str], mapping: tuple[Mapped, ...] | None, where: str
) -> list[_Column]:
    """The columns to take, as mapped; those with a name of ours that are not are taken too.

    Raises:
        SpecError: when a column is not there, or nothing says how fast a transfer was.
    """
    entries = [_with_literal(entry, header) for entry in mapping or ()]
    named = {entry.column for entry in entries}
    entries += [Mapped(name, name) for name in MAPPABLE if name in header and name not in named]
    for entry in entries:
        if not entry.literal and header.count(entry.name) != 1:
            there = "is not in the header" if entry.name not in header else "is there twice"
            raise SpecError(
                f"{where}: {entry.column}: column {entry.name!r} {there}; "
                f"there are {', '.join(header)}"
            )
    named = {entry.column for entry in entries}
    if "rate_bps" not in named and not {"bytes", "duration_s"} <= named:
        raise SpecError(
            f"{where}: nothing says how fast a transfer was: map rate_bps, or bytes and "
            f"duration_s, to some of {', '.join(header)}"
        )
    return [
        _Column(
            entry.column,
            None if entry.literal else header.index(entry.name),
            entry.reader(),
            entry.name if entry.literal else "",
        )
        for entry in entries
    ]


def _with_literal(entry: Mapped, header: Sequence[str]) -> Mapped:
    """`modality=T` means the modality, unless a column has that name."""
    if entry.column == "modality" and entry.name in MODALITIES and entry.name not in header:
        return Mapped(entry.column, entry.name, literal=True)
    return entry


def _row(columns: list[_Column], cells: list[str]) -> Row:
    row: Row = {}
    for column in columns:
        text = column.literal if column.index is None else cells[column.index]
        try:
            value = column.read(text)
        except (ValueError, OverflowError) as failure:
            raise Unreadable(f"{column.name}: {failure}") from None
        if value is not None:
            row[column.name] = value
    return row


def _records(reading: Reading) -> Iterator[Record]:
    split: Split = str.split
    header: list[str] | None = None
    columns: list[_Column] = []
    for number, line in reading.lines():
        if line.startswith("#"):
            reading.skip("comment")
            continue
        if header is None:
            split = _splitter(line)
            header = [cell.strip() for cell in split(line)]
            columns = _columns(header, reading.mapping, str(reading.path))
            continue
        try:
            cells = split(line)
            if [cell.strip() for cell in cells] == header:
                reading.skip("header")
                continue
            if len(cells) != len(header):
                raise Unreadable(f"{len(cells)} fields, but the header has {len(header)}")
            yield Record(number, line, _row(columns, cells))
        except Unreadable as reason:
            reading.malformed(number, line, str(reason))


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of a table.

    Raises:
        SpecError: when its columns are not what the mapping says.
    """
    return tables(reading, "csv", _records(reading))


def _detect(start: str) -> bool:
    lines = (line for line in start.split("\n") if line.strip() and not line.startswith("#"))
    header = next(lines, "")
    try:
        names = {cell.strip() for cell in _splitter(header)(header)}
    except Unreadable:
        return False
    return "rate_bps" in names or {"bytes", "duration_s"} <= names


FORMAT = Format("csv", "any table with a header, by a mapping of its columns", _detect, read)
