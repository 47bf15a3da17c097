"""How logs of other tools and Parquet files are read: their format, columns, values that lack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from farline.errors import SpecError
from farline.formats import Log, Malformed, Tally, read_log
from farline.formats.mapped import Mapped
from farline.formats.mapping import check_defaults, parse_mapping, reader_of
from farline.spec.transfers import TRANSFER_COLUMNS
from farline.store.transfers import ParquetFiles

OnMalformed = Callable[[Malformed], None]
OnRead = Callable[[int, int], None]


@dataclass(frozen=True)
class Reading:
    """How files are read.

    `kind` is the format of logs; None finds it out from their content. `mapping` says which column
    of a table is which (`rate_bps=throughput:Mbit/s,rtt_ms=rtt,modality='E'`), `defaults` are
    values, as text, for columns that a file has no value for (`{"rtt_ms": "45"}`).
    """

    kind: str | None = None
    mapping: str | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)

    def log(
        self, path: Path, on_read: OnRead | None = None, on_malformed: OnMalformed | None = None
    ) -> Log:
        """The log at `path`, ready to be read.

        Raises:
            SpecError: for an unknown format, mapping, column or value.
        """
        return read_log(
            path, self.kind, self.mapping, defaults=self.defaults,
            on_progress=on_read, on_malformed=on_malformed,
        )  # fmt: skip

    def parquet(self, pattern: str) -> ParquetFiles:
        """Parquet files, or a table of an engine, with names, units and values of columns.

        A quoted value of the mapping is for every row, a default for those that have none.

        Raises:
            SpecError: for a mapping or value that is not allowed.
        """
        entries = () if self.mapping is None else parse_mapping(self.mapping)
        named = [entry for entry in entries if not entry.literal]
        return ParquetFiles(
            pattern,
            columns={entry.column: entry.name for entry in named},
            scales={entry.column: _scale(entry) for entry in named if entry.unit is not None},
            values={e.column: reader_of(e.column, e.unit)(e.name) for e in entries if e.literal},
            defaults=check_defaults(self.defaults),
        )

    def name_of(self, log: Log) -> str:
        """What decides which rows a log gives: its format, the mapping, the defaults."""
        parts = [f"{log.format.name} {log.format.version}"]
        if self.mapping is not None:
            parts.append(f"map {self.mapping}")
        parts += sorted(f"set {name}={value}" for name, value in self.defaults.items())
        return "; ".join(parts)


def format_of(reader: str) -> str:
    """Of what `Reading.name_of` gave, the format alone."""
    return reader.partition(";")[0].partition(" ")[0]


def _scale(entry: Mapped) -> float:
    """What a figure in the entry's unit has to be multiplied by: as a log's column is read."""
    if TRANSFER_COLUMNS[entry.column] not in ("double", "int64", "int32"):
        raise SpecError(
            f"--map {entry.column}: a Parquet column has no unit, so leave out {entry.unit!r}"
        )
    # A unit may be less than one bit or byte, so a million of it tells.
    million = reader_of(entry.column, entry.unit)("1000000")
    assert isinstance(million, int | float)
    return million / 1e6


@dataclass(frozen=True)
class ReadLog:
    """A log that was read whole: its transfers in memory, and what in it was none."""

    path: Path
    kind: str
    tables: tuple[pa.Table, ...]
    tally: Tally

    @classmethod
    def read(cls, path: Path, reading: Reading, on_read: OnRead | None = None) -> ReadLog:
        """Reads it.

        Raises:
            SpecError: when it cannot be read as a log.
        """
        log = reading.log(path, on_read)
        tables = tuple(log.batches())
        return cls(path, log.format.name, tables, log.tally)
