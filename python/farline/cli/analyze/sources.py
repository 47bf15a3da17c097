"""Where measurements come from: files named on the command line, and parts of the store."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farline.cli.analyze.check import infrastructure_at
from farline.cli.analyze.files import is_parquet, is_remote, named_files
from farline.cli.analyze.logs import Reading, ReadLog, read_whole, warn_of_odd_lines
from farline.cli.analyze.progress import progress
from farline.errors import SpecError, UsageError

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
    parquet, logs = _files(options, store if options.with_logs else None)
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


def _files(options: SourceOptions, store: Store | None) -> tuple[list[str], list[ReadLog]]:
    """Parquet files, as the engine is to read them, and the logs, read whole.

    Logs that `store` keeps are left to it. What cannot be read is said on standard error.
    """
    remote = [name for name in options.files if is_remote(name)]
    paths = named_files([name for name in options.files if name not in remote])
    parquet = [path for path in paths if is_parquet(path)]
    named = {Path(name).expanduser() for name in options.files}
    texts = _of_known_format([p for p in paths if p not in parquet], named, options.reading)
    if store is not None:
        texts = [path for path in texts if not _is_kept(store, path, options.reading)]
    logs = _read(texts, options.reading)
    return [*remote, *map(str, parquet)], logs


def _of_known_format(
    paths: Sequence[Path], named: Collection[Path], reading: Reading
) -> list[Path]:
    """The logs among `paths`; of a folder or pattern other files are left out, and that is said.

    Raises:
        SpecError: when a file that is `named` itself is no log, or none is.
    """
    found, refused = [], []
    for path in paths:
        try:
            reading.log(path)
            found.append(path)
        except SpecError as error:
            if path in named:
                raise
            refused.append(error)
    if refused and not found:
        raise refused[0]
    for other in refused:
        click.echo(f"farline: left out: {other.message}", err=True)
    return found


def _is_kept(store: Store, path: Path, reading: Reading) -> bool:
    """Whether the store's logs have the log's transfers already; said on standard error.

    Raises:
        UsageError: when they have another state of it, so that its transfers would count twice.
    """
    look = store.look_at_log(path, reader=reading.name_of(reading.log(path)))
    if look.outcome == "new":
        return False
    if look.outcome != "same":
        why = "its beginning is" if look.outcome == "grown" else "it is, read otherwise,"
        raise UsageError(
            f"{path}: {why} among the kept logs and would count twice; take it in"
            " (farline analyze ingest), or leave out --logs or the file"
        )
    click.echo(f"farline: {path}: among the kept logs already, counted once", err=True)
    return True


def _read(paths: Sequence[Path], reading: Reading) -> list[ReadLog]:
    with progress(paths) as advance:
        logs = [read_whole(path, reading, advance(path)) for path in paths]
    for log in logs:
        warn_of_odd_lines(log)
    return logs
