"""Where measurements come from: files named on the command line, and parts of the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farline.cli.analyze.check import infrastructure_at
from farline.cli.analyze.files import is_parquet, is_remote, named_files
from farline.cli.analyze.logs import Reading, ReadLog, read_whole, warn_of_odd_lines
from farline.cli.analyze.progress import progress

if TYPE_CHECKING:
    from farline.cli.analyze.options import SourceOptions
    from farline.spec.infrastructure import Infrastructure
    from farline.store import Store
    from farline.store.transfers import KeptLog, Transfers


@dataclass(frozen=True)
class Opened:
    """Measurements ready to be asked, and what is known of where they come from."""

    transfers: Transfers
    infrastructure: Infrastructure | None
    read: tuple[ReadLog, ...] = ()
    kept: tuple[KeptLog, ...] = ()


@contextmanager
def opened(options: SourceOptions) -> Iterator[Opened]:
    """Opens everything that the options name for as long as the block runs.

    Raises:
        UsageError: when a file or the store is not there, or nothing is left to read.
        SpecError: when a log, a Parquet file or the infrastructure cannot be read as such.
    """
    from farline.store import RunFilter
    from farline.store.transfers import open_transfers

    sites = infrastructure_at(options.infrastructure) if options.infrastructure else None
    store = _store(options)
    parquet, logs = _files(options)
    with open_transfers(
        store=store,
        runs=RunFilter() if options.with_runs else None,
        logs=options.with_logs,
        files=[options.reading.parquet(pattern) for pattern in parquet],
        views=[options.reading.parquet(table) for table in options.tables],
        tables=[table for log in logs for table in log.tables],
        infrastructure=sites,
        engine=options.engine,
    ) as transfers:
        for line in transfers.damaged:
            click.echo(f"farline: {line}", err=True)
        kept = tuple(store.transfer_logs()) if store is not None and options.with_logs else ()
        yield Opened(transfers, sites, tuple(logs), kept)


def _store(options: SourceOptions) -> Store | None:
    """The store, where a part of it is wanted."""
    if options.with_runs or options.with_logs:
        from farline.cli.selection import read_store

        return read_store(options.store_path)
    if options.store_path is not None:
        raise click.UsageError(
            "--store: nothing of the store is read, since a SOURCE is named; add --runs or --logs"
        )
    if not options.names_any:
        raise click.UsageError("nothing to read: name a SOURCE, --runs or --logs")
    return None


def _files(options: SourceOptions) -> tuple[list[str], list[ReadLog]]:
    """Parquet files, as the engine is to read them, and the logs, read whole.

    What cannot be read of the logs is said on standard error.
    """
    remote = [name for name in options.files if is_remote(name)]
    paths = named_files([name for name in options.files if name not in remote])
    parquet = [path for path in paths if is_parquet(path)]
    logs = _read([path for path in paths if path not in parquet], options.reading)
    return [*remote, *map(str, parquet)], logs


def _read(paths: Sequence[Path], reading: Reading) -> list[ReadLog]:
    with progress(paths) as advance:
        logs = [read_whole(path, reading, advance(path)) for path in paths]
    for log in logs:
        warn_of_odd_lines(log)
    return logs
