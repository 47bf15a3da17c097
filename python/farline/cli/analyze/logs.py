"""One log of another tool, read: how it is asked for, and what is told of its reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farline.cli.analyze.text import count

if TYPE_CHECKING:
    import pyarrow as pa

    from farline.ingest import Log, Malformed, Tally
    from farline.store.transfers import KeptLog, Outcome, ParquetFiles

OnMalformed = Callable[["Malformed"], None]
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Reading:
    """How logs are read: `--format`, `--map`, `--set`."""

    kind: str | None = None
    mapping: str | None = None
    defaults: tuple[str, ...] = ()

    def log(
        self,
        path: Path,
        on_progress: OnProgress | None = None,
        on_malformed: OnMalformed | None = None,
    ) -> Log:
        """The log at `path`, ready to be read.

        Raises:
            SpecError: for an unknown format, mapping, column or value.
            UsageError: for a default that is no COLUMN=VALUE.
        """
        from farline.ingest import read_log

        return read_log(
            path, self.kind, self.mapping, defaults=defaults_from(self.defaults),
            on_progress=on_progress, on_malformed=on_malformed,
        )  # fmt: skip

    def parquet(self, pattern: str) -> ParquetFiles:
        """Parquet files, or a table of the engine, with the same mapping and values.

        Raises:
            SpecError: for a mapping or value that is not allowed.
        """
        from farline.cli.analyze.parquet import parquet_files

        return parquet_files(pattern, self.mapping, defaults_from(self.defaults))

    def name_of(self, log: Log) -> str:
        """What decides which rows a log gives: its format, the mapping, the defaults."""
        parts = [f"{log.format.name} {log.format.version}"]
        if self.mapping is not None:
            parts.append(f"map {self.mapping}")
        parts += [f"set {text}" for text in sorted(self.defaults)]
        return "; ".join(parts)


@dataclass(frozen=True)
class ReadLog:
    """A log that was read whole."""

    path: Path
    kind: str
    tables: tuple[pa.Table, ...]
    tally: Tally


@dataclass(frozen=True)
class Taken:
    """A log that was taken in, or was there already; `tally` is None if it was not read.

    `beside` are other logs of its name, or that begin like it; all of them count.
    """

    path: Path
    kept: KeptLog
    outcome: Outcome
    tally: Tally | None
    beside: tuple[KeptLog, ...] = ()


@dataclass(frozen=True)
class Refused:
    """A log that was not taken in, and why; `tally` where it could be read at all."""

    path: Path
    why: str
    tally: Tally | None = None


def defaults_from(texts: Iterable[str]) -> dict[str, str]:
    """Values for columns from texts such as `rtt_ms=45`.

    Raises:
        UsageError: for a text without `=`, or a column that is named twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise click.UsageError(f"--set {text!r}: write COLUMN=VALUE, such as rtt_ms=45")
        if name in found:
            raise click.UsageError(f"--set {name}: two values, {found[name]} and {value}")
        found[name] = value
    return found


def read_whole(path: Path, reading: Reading, on_progress: OnProgress | None = None) -> ReadLog:
    """A log as rows in memory."""
    log = reading.log(path, on_progress)
    tables = tuple(log.batches())
    return ReadLog(path, log.format.name, tables, log.tally)


def format_of(kept: KeptLog) -> str:
    """Of what a log was read as, the format; its version, mapping and values stand behind it."""
    return kept.reader.partition(";")[0].partition(" ")[0]


def unused_defaults(name: str, tally: Tally) -> list[str]:
    """A line for each value given by hand that filled no cell of a log."""
    return [
        f"{name}: --set {column} filled no cell: every transfer has its own"
        for column, cells in tally.filled.items()
        if not cells and tally.transfers + tally.failed
    ]


def warn_of_odd_lines(log: ReadLog) -> None:
    """Lines on standard error where a log has what is no record, or needed no `--set`."""
    for line in unused_defaults(log.path.name, log.tally):
        click.echo(f"farline: {line}", err=True)
    bad = log.tally.malformed
    if bad:
        first = log.tally.first_malformed[0]
        where = f"line {first.line}" if bad == 1 else f"the first is line {first.line}"
        click.echo(
            f"farline: {log.path.name}: {count(bad, 'record')} could not be read; {where}:"
            f" {first.reason}",
            err=True,
        )
