"""Logs of other tools taken in: read, and kept in a store, which recognises them again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from farline.analysis.files import named_files
from farline.analysis.reading import OnMalformed, OnRead, Reading
from farline.analysis.sources import DEFAULT_READING, OnProgress, with_progress
from farline.errors import FarlineError, SystemFailure, UsageError
from farline.formats import Log, Malformed, Tally
from farline.store import Store
from farline.store.transfers import KeptLog, Outcome


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
    """A log that was not taken in, and why; `tally` where it could be read at all.

    `exit_code` says whose fault it was, the log's or this machine's.
    """

    path: Path
    why: str
    tally: Tally | None = None
    exit_code: int = UsageError.exit_code


def ingest(
    store: Store,
    files: Sequence[str],
    reading: Reading = DEFAULT_READING,
    *,
    malformed: Path | None = None,
    on_progress: OnProgress | None = None,
) -> list[Taken | Refused]:
    """Takes in every log that `files` name; one that is refused does not hold up the others.

    Records that could not be read are written to `malformed`, one a line, with place and reason.

    Raises:
        UsageError: when a name means no file.
        SystemFailure: when the file for malformed records cannot be written.
    """
    paths = named_files(files)
    with _malformed_file(malformed) as listener:
        return [
            _take(store, path, reading, on_read, listener(path))
            for path, on_read in with_progress(paths, on_progress)
        ]


def _take(
    store: Store,
    path: Path,
    reading: Reading,
    on_read: OnRead | None,
    on_malformed: OnMalformed | None,
) -> Taken | Refused:
    log: Log | None = None
    try:
        log = reading.log(path, on_read, on_malformed)
        done = store.append_transfers(
            _rows(log), path, reader=reading.name_of(log), counts=lambda: log.tally.counts()
        )
        if done.look.outcome == "same" and on_malformed is not None:
            # Its rows are kept; its malformed records are nowhere but in the log.
            for _ in log.batches():
                pass
    except FarlineError as error:
        return Refused(path, error.message, log.tally if log is not None else None, error.exit_code)
    there = done.look.outcome == "same"
    tally = None if there and on_malformed is None else log.tally
    return Taken(path, done.log, done.look.outcome, tally, done.look.beside)


def _rows(log: Log) -> Iterator[pa.Table]:
    """The log's tables; a log without any transfer is not kept."""
    yield from log.batches()
    if not log.tally.transfers + log.tally.failed:
        raise UsageError(f"{log.path.name}: it contains no transfer ({log.format.title})")


@contextlib.contextmanager
def _malformed_file(path: Path | None) -> Iterator[Callable[[Path], OnMalformed | None]]:
    """Writes records that could not be read as tab-separated lines; nothing without a path."""
    if path is None:
        yield lambda _: None
        return
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write("log\tline\twhy\ttext\n")

            def listener(log: Path) -> OnMalformed:
                def write(found: Malformed) -> None:
                    file.write(f"{log}\t{found.line}\t{found.reason}\t{found.text}\n")

                return write

            yield listener
    except OSError as error:
        raise SystemFailure(f"{path}: cannot write to it: {error.strerror}") from None
