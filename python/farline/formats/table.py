"""Any table: a line for each transfer, a header, columns named by a mapping.

The delimiter is the one of comma, semicolon, tab, bar and spaces that the header is split by.
Columns whose header is the name of one of ours need no mapping. A line is a record by itself:
no field goes over a line end. Lines that start with `#` are comments, and so is the `sep=;` that
Excel asks for. A line that begins with `Total` or `Average` is of no transfer.

Figures may have a decimal comma, and marks or spaces between thousands. `1,234` alone may be a
thousand and more, or one and a fraction: what other figures of the first lines are decides, and
where they do not, it is malformed. `1.234` is more than a thousand where they have commas.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.errors import SpecError
from farline.formats.format import Format
from farline.formats.mapped import Mapped
from farline.formats.mapping import MAPPABLE, Read, decimal_mark, plain, reader_of
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, Unreadable, tables
from farline.spec.transfers import MODALITIES, TRANSFER_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = ",;\t|"
_COMMENT = re.compile(r'#|"?sep=.?"?\s*$', re.IGNORECASE)
_TOTAL = re.compile(r"(?:grand )?totals?:?|average:?|mean:?", re.IGNORECASE)
_LOOKED_AT = 64 * 1024

Split = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class _Column:
    """Where a column's texts are (None: a fixed text), and what reads them."""

    name: str
    index: int | None
    read: Read
    literal: str = ""

    @property
    def is_figure(self) -> bool:
        """Whether its texts are numbers, perhaps with a unit."""
        return self.index is not None and TRANSFER_COLUMNS[self.name] in (
            "double",
            "int32",
            "int64",
        )


def _splitter(header: str) -> Split:
    """What splits lines as the header is split."""
    delimiter = max(DELIMITERS, key=header.count)
    if header.count(delimiter) == 0:
        return str.split

    def split(line: str) -> list[str]:
        try:
            cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
        except csv.Error as failure:
            raise Unreadable(f"not a table row: {failure}") from None
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
            there = "is not in the header" if entry.name not in header else "appears twice"
            raise SpecError(
                f"{where}: {entry.column}: column {entry.name!r} {there}; available: "
                f"{', '.join(header)}"
            )
    named = {entry.column for entry in entries}
    if "rate_bps" not in named and not {"bytes", "duration_s"} <= named:
        raise SpecError(
            f"{where}: the rate is missing: map rate_bps, or bytes and duration_s, to some of "
            f"{', '.join(header)}"
        )
    return [
        _Column(
            entry.column,
            None if entry.literal else header.index(entry.name),
            reader_of(entry.column, entry.unit),
            entry.name if entry.literal else "",
        )
        for entry in entries
    ]


def _with_literal(entry: Mapped, header: Sequence[str]) -> Mapped:
    """`modality=T` means the modality, unless a column has that name."""
    if entry.column == "modality" and entry.name in MODALITIES and entry.name not in header:
        return Mapped(entry.column, entry.name, literal=True)
    return entry


def _decimal_marks(columns: list[_Column], lines: Sequence[str], split: Split) -> set[str]:
    """What stands before the fractions of the figures of these lines, where they say it."""
    marks: set[str] = set()
    for line in lines:
        try:
            cells = split(line)
        except Unreadable:
            continue
        for column in columns:
            if column.is_figure and column.index is not None and column.index < len(cells):
                mark = decimal_mark(cells[column.index])
                marks |= {mark} if mark else set()
    return marks


_MARKED = re.compile(r"[,'\u2019]|\d[ \u00a0\u202f]\d")


def _row(columns: list[_Column], cells: list[str], marks: set[str]) -> Row:
    row: Row = {}
    for column in columns:
        text = column.literal if column.index is None else cells[column.index]
        try:
            if column.is_figure and ("," in marks or _MARKED.search(text)):
                text = plain(text, marks)
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
    marks: set[str] = set()
    for number, line in reading.lines():
        if _COMMENT.match(line):
            reading.skip("comment")
            continue
        if header is None:
            split = _splitter(line)
            header = [cell.strip() for cell in split(line)]
            columns = _columns(header, reading.mapping, str(reading.path))
            first = reading.start(_LOOKED_AT).split("\n")
            marks = _decimal_marks(columns, [one for one in first if one.strip()], split)
            continue
        try:
            cells = split(line)
            if [cell.strip() for cell in cells] == header:
                reading.skip("header")
                continue
            if _TOTAL.fullmatch(next((cell.strip() for cell in cells if cell.strip()), "")):
                reading.skip("total or average")
                continue
            if len(cells) != len(header):
                raise Unreadable(f"{len(cells)} fields, but the header has {len(header)}")
            yield Record(number, line, _row(columns, cells, marks))
        except Unreadable as reason:
            reading.malformed(number, line, str(reason))


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of a table.

    Raises:
        SpecError: when its columns are not what the mapping says.
    """
    return tables(reading, "csv", _records(reading))


_UNITS = re.compile(r"(?<![A-Za-z])([kKMGT]i?)(bits?|b|B)(?:ps|[/_ ]?(?:s|sec)\b)")


def hint(start: str) -> str | None:
    """How to map the columns of what looks like a table; None for what does not."""
    lines = [line for line in start.split("\n") if line.strip() and not _COMMENT.match(line)][:2]
    delimiter = max(DELIMITERS, key=lines[0].count) if len(lines) == 2 else ","
    try:
        names, cells = (_splitter(lines[0])(line) for line in lines)
    except (ValueError, Unreadable):
        return None
    names = [name.strip() for name in names]
    if delimiter not in lines[0] or len(names) != len(cells) or not all(names):
        return None
    for name in names:
        if match := _UNITS.search(name):
            unit = f"{match[1]}{'B' if match[2] == 'B' else 'bit'}/s"
            return f"it looks like a table: --map 'rate_bps=\"{name}\":{unit},modality=T' (or E)"
    return (
        "it looks like a table: name the column with the rate, such as --map "
        f"'rate_bps=\"{names[-1]}\":Mbit/s,modality=T'; it has {', '.join(names)}"
    )


def _detect(start: str) -> bool:
    lines = (line for line in start.split("\n") if line.strip() and not _COMMENT.match(line))
    header = next(lines, "")
    try:
        names = {cell.strip() for cell in _splitter(header)(header)}
    except Unreadable:
        return False
    return "rate_bps" in names or {"bytes", "duration_s"} <= names


FORMAT = Format(
    "csv", "any table with a header, by a mapping of its columns", _detect, read, version=2
)
