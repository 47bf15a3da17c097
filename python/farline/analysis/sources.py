"""Where measurements come from: files, what a store has, tables of an engine; opened as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from farline.analysis.files import is_parquet, is_remote, named_files
from farline.analysis.reading import OnRead, Reading, ReadLog
from farline.errors import SpecError, UsageError
from farline.spec.infrastructure import Infrastructure
from farline.spec.infrastructure_text import load_infrastructure
from farline.spec.user_folders import expanded
from farline.store import RunFilter, Store
from farline.store.engine import EMBEDDED
from farline.store.file_systems import FileSystemProfile, all_profiles
from farline.store.transfers import KeptLog, Transfers, open_transfers

OnProgress = Callable[[Path, int, int], None]
"""Called as logs are read: the log, bytes read of all of them, bytes that all have."""
DEFAULT_READING = Reading()


@dataclass(frozen=True)
class Measurements:
    """Measurements ready to be asked, and what is known of where they come from.

    `read` are logs that were read for this, `kept` those that the store keeps. `notices` are
    sentences on files that do not count, or count once though they were named twice.
    """

    transfers: Transfers
    infrastructure: Infrastructure | None
    read: tuple[ReadLog, ...] = ()
    kept: tuple[KeptLog, ...] = ()
    notices: tuple[str, ...] = ()
    profiles: tuple[FileSystemProfile, ...] = ()
    """Profiles of file systems that the store has."""


@contextmanager
def open_measurements(
    files: Sequence[str] = (),
    *,
    reading: Reading = DEFAULT_READING,
    infrastructure: Infrastructure | Path | None = None,
    store: Store | None = None,
    runs: bool = True,
    logs: bool = True,
    tables: Sequence[str] = (),
    engine: str = EMBEDDED,
    on_progress: OnProgress | None = None,
) -> Iterator[Measurements]:
    """Opens everything that is named, for as long as the block runs.

    `files` are logs of known formats and Parquet files, patterns and folders of them; they are
    read and not kept. Of `store` count farline's own `runs` and the `logs` that it keeps. `tables`
    are tables that the `engine` (an Ibis URL) has.

    Raises:
        UsageError: when a file is not there, or a log is among the kept ones in another state.
        SpecError: when a log, a Parquet file or the infrastructure cannot be read as such.
        SystemFailure: when the engine or the disk fails.
    """
    if isinstance(infrastructure, Path):
        infrastructure = load_infrastructure(infrastructure)
    logs = logs and store is not None
    found = _files(files, reading, store if logs else None, on_progress)
    with open_transfers(
        store=store,
        runs=RunFilter() if runs and store is not None else None,
        logs=logs,
        files=[reading.parquet(pattern) for pattern in found.parquet],
        views=[reading.parquet(table) for table in tables],
        tables=[table for log in found.logs for table in log.tables],
        infrastructure=infrastructure,
        engine=engine,
    ) as transfers:
        kept = tuple(store.transfer_logs()) if store is not None and logs else ()
        profiles = () if store is None else tuple(all_profiles(store.layout.file_systems))
        yield Measurements(transfers, infrastructure, found.logs, kept, found.notices, profiles)


@dataclass(frozen=True)
class _Files:
    """Parquet files, as the engine is to read them; logs, read whole; what was left out."""

    parquet: tuple[str, ...]
    logs: tuple[ReadLog, ...]
    notices: tuple[str, ...]


def _files(
    names: Sequence[str], reading: Reading, store: Store | None, on_progress: OnProgress | None
) -> _Files:
    """What is named, without logs that `store` keeps: these are left to it."""
    remote = [name for name in names if is_remote(name)]
    paths = named_files([name for name in names if name not in remote])
    parquet = [path for path in paths if is_parquet(path)]
    named = {expanded(name) for name in names}
    texts, notices = _of_known_format([p for p in paths if p not in parquet], named, reading)
    kept = [path for path in texts if store is not None and _is_kept(store, path, reading)]
    notices += [f"{path}: already among the kept logs, counted once" for path in kept]
    texts = [path for path in texts if path not in kept]
    logs = [ReadLog.read(p, reading, seen) for p, seen in with_progress(texts, on_progress)]
    return _Files((*remote, *map(str, parquet)), tuple(logs), tuple(notices))


def _of_known_format(
    paths: Sequence[Path], named: Collection[Path], reading: Reading
) -> tuple[list[Path], list[str]]:
    """The logs among `paths`; of a folder or pattern other files are left out, a line for each.

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
    return found, [f"left out: {other.message}" for other in refused]


def _is_kept(store: Store, path: Path, reading: Reading) -> bool:
    """Whether the store's logs have the log's transfers already.

    Raises:
        UsageError: when they have another state of it, so that its transfers would count twice.
    """
    look = store.look_at_log(path, reader=reading.name_of(reading.log(path)))
    if look.outcome not in ("new", "same"):
        why = (
            "the beginning of this log is"
            if look.outcome == "grown"
            else "this log, read with other options, is"
        )
        raise UsageError(
            f"{path}: {why} among the kept logs and would be counted twice; add it to the kept "
            "logs (farline analyze ingest), or leave out --logs or this file"
        )
    return look.outcome == "same"


def with_progress(
    paths: Sequence[Path], on_progress: OnProgress | None
) -> Iterator[tuple[Path, OnRead | None]]:
    """Each path, and what its reader has to call for `on_progress` to hear of all of them."""
    sizes = [path.stat().st_size for path in paths] if on_progress is not None else []
    for index, path in enumerate(paths):
        yield path, None if on_progress is None else _counted(on_progress, path, index, sizes)


def _counted(on_progress: OnProgress, path: Path, index: int, sizes: Sequence[int]) -> OnRead:
    before, total = sum(sizes[:index]), sum(sizes)
    on_progress(path, before, total)
    return lambda read, _: on_progress(path, before + read, total)
