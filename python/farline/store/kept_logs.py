"""Logs that were taken in: a Parquet file each, named by what the log's bytes and its reader are.

The file's metadata say which log it was: name, size, a digest of all bytes and one of the first
64 KiB. By these a log is recognised when it comes again, and one that has grown since replaces its
earlier self: only content decides, so that renamed and rotated logs are not counted twice. Two
logs of one name and different content are both kept.

Appending is safe to kill: a file has its name when it is whole (`disk.publish`), and names what it
replaces in its own metadata, so the old one stops counting in the same moment. One process appends
at a time, under `transfers.lock`.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from farline.errors import SpecError, SystemFailure, UsageError, VersionError
from farline.store import left_out
from farline.store.disk import locked, make_folder, publish, system_failures
from farline.store.layout import REPLACES_KEY, Layout
from farline.store.log_file import LogFile, digest_log
from farline.store.parquet_files import VERSION_KEY, read_footer
from farline.store.upgrade import FORMAT_VERSION

if TYPE_CHECKING:
    import pyarrow as pa

LOG_KEY = b"farline.log"
_ROW_GROUP_ROWS = 250_000

Outcome = Literal["new", "same", "grown", "reread"]
"""new: its rows were added; same: nothing was done, it is there already; grown: it replaced what
was kept of its beginning; reread: another reader, or another version of it, replaced its rows."""


@dataclass(frozen=True, slots=True)
class KeptLog:
    """A log in the store: `rows` transfers, `failed` of them failed.

    `file` is its Parquet file in the folder `transfers`. `counts` is the reader's tally, such as
    lines that were no records.
    """

    file: str
    log: LogFile
    reader: str
    kept_at: str
    rows: int
    failed: int
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Look:
    """What a log is to the store: see `Outcome`. `earlier` is what it equals or replaces."""

    log: LogFile
    reader: str
    outcome: Outcome
    earlier: tuple[KeptLog, ...] = ()
    beside: tuple[KeptLog, ...] = ()
    """Kept logs of the same name, or with the same first 64 KiB, but other content; both count."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What an append did."""

    log: KeptLog
    look: Look


@dataclass(frozen=True, slots=True)
class KeptView:
    """The logs that count at one moment; valid while the shared lock is held."""

    logs: tuple[KeptLog, ...] = ()
    superseded: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()
    """Of them, those of a newer farline."""
    replaced: frozenset[str] = frozenset()
    """Every name of a file that some file replaces, whether it is still there or not."""


def kept_view(layout: Layout) -> KeptView:
    """Lists the kept logs. The caller holds the shared lock."""
    if not layout.transfers.exists():
        return KeptView()
    with system_failures(f"listing {layout.transfers}"):
        names = sorted(p.name for p in layout.transfers.iterdir() if p.suffix == ".parquet")
    found: list[tuple[KeptLog, frozenset[str]]] = []
    damaged: list[str] = []
    newer: list[str] = []
    for name in names:
        try:
            found.append(_read_kept(layout.transfers / name))
        except SystemFailure as failure:
            damaged.append(failure.message)
        except VersionError as failure:
            damaged.append(failure.message)
            newer.append(failure.message)
    for line in damaged:
        left_out.note(line)
    replaced = frozenset(name for _, names in found for name in names)
    return KeptView(
        logs=tuple(log for log, _ in found if log.file not in replaced),
        superseded=tuple(name for name in names if name in replaced),
        damaged=tuple(damaged),
        newer=tuple(newer),
        replaced=replaced,
    )


def look_at(layout: Layout, path: Path, reader: str) -> Look:
    """What the log at `path` is to the store. Reads it once.

    Raises:
        SystemFailure: when it cannot be read.
    """
    return _looked(layout, path, reader)[0]


def _looked(layout: Layout, path: Path, reader: str) -> tuple[Look, KeptView]:
    with locked(layout.use_lock, exclusive=False):
        view = kept_view(layout)
    if view.newer:
        # It may be this log that the file has.
        raise VersionError(view.newer[0])
    known = view.logs
    log, beginnings = digest_log(path, {kept.log.size_bytes for kept in known})
    same = tuple(kept for kept in known if kept.log.digest == log.digest)
    grown = tuple(
        kept
        for kept in known
        if 0 < kept.log.size_bytes < log.size_bytes
        and beginnings.get(kept.log.size_bytes) == kept.log.digest
    )
    outcome: Outcome = "grown" if grown else "new"
    if same:
        outcome = "same" if any(kept.reader == reader for kept in same) else "reread"
    earlier = same + grown
    beside = tuple(kept for kept in known if _alike(kept.log, log) and kept not in earlier)
    return Look(log, reader, outcome, earlier, beside), view


def append(
    layout: Layout,
    tables: Iterable[pa.Table],
    path: Path,
    reader: str,
    counts: Callable[[], Mapping[str, int]],
) -> Kept:
    """Keeps the rows of the log at `path`; when this returns they are on disk.

    `tables` is not touched if the log is there already. `counts` is asked after the last table.

    Raises:
        SpecError: when the tables have not the columns of `transfer_schema`.
        SystemFailure: when the disk refuses.
    """
    make_folder(layout.transfers)
    with locked(layout.transfers_lock, exclusive=True):
        look, view = _looked(layout, path, reader)
        if look.outcome == "same":
            (there, *_) = (kept for kept in look.earlier if kept.reader == reader)
            return Kept(there, look)
        replaces = sorted({kept.file for kept in look.earlier})
        name = _file_name(look, view.replaced)
        kept = _write(layout, tables, look, counts, replaces, name)
        if replaces:
            clean(layout)
        return Kept(kept, look)


def forget(layout: Layout, wanted: str) -> KeptLog:
    """Deletes the one log that is called so, by its name or the beginning of its digest.

    Raises:
        UsageError: when none or several are, with what there is.
        SystemFailure: when somebody is reading the store.
    """
    with locked(layout.use_lock, exclusive=True, wait=False) as alone:
        if not alone:
            raise SystemFailure(
                f"{layout.root}: another process is reading this store; forget the log when "
                "it has finished"
            )
        found = _chosen(kept_view(layout).logs, wanted, layout.root)
        with system_failures(f"deleting {found.file}"):
            # What the file replaced has to go first, or it would count again.
            for name in (*kept_view(layout).superseded, found.file):
                (layout.transfers / name).unlink(missing_ok=True)
    return found


def clean(layout: Layout) -> int:
    """Deletes replaced files if nobody reads the store; how many."""
    if not layout.transfers.exists():
        return 0
    with locked(layout.use_lock, exclusive=True, wait=False) as alone:
        if not alone:
            return 0
        superseded = kept_view(layout).superseded
        with system_failures(f"cleaning {layout.transfers}"):
            for name in superseded:
                (layout.transfers / name).unlink(missing_ok=True)
        return len(superseded)


def _alike(one: LogFile, other: LogFile) -> bool:
    return one.name == other.name or one.head_digest == other.head_digest


def _chosen(logs: Iterable[KeptLog], wanted: str, where: Path) -> KeptLog:
    known = tuple(logs)
    named = [kept for kept in known if wanted == kept.log.name]
    fits = named or [k for k in known if len(wanted) >= 6 and k.log.digest.startswith(wanted)]
    if len(fits) == 1:
        return fits[0]
    shown = ", ".join(f"{k.log.name} ({k.log.digest[:12]})" for k in (fits or known)[:8]) or "none"
    problem = f"{len(fits)} logs are called {wanted!r}" if fits else f"no log {wanted!r}"
    raise UsageError(f"{where}: {problem}; give a name or a digest of: {shown}")


def _write(
    layout: Layout,
    tables: Iterable[pa.Table],
    look: Look,
    counts: Callable[[], Mapping[str, int]],
    replaces: list[str],
    name: str,
) -> KeptLog:
    written: list[KeptLog] = []

    def write(file: BinaryIO) -> None:
        rows, failed = 0, 0
        with _writer(file) as writer:
            for table in _gathered(tables):
                rows += len(table)
                failed += len(table) - _complete(table)
                writer.write_table(table)
            now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            kept = KeptLog(name, look.log, look.reader, now, rows, failed, dict(counts()))
            writer.add_key_value_metadata(
                {
                    VERSION_KEY: str(FORMAT_VERSION),
                    LOG_KEY: json.dumps(asdict(kept)),
                    REPLACES_KEY: json.dumps(replaces),
                }
            )
        written.append(kept)

    publish(layout.temp, layout.transfers / name, write)
    return written[0]


def _file_name(look: Look, replaced: frozenset[str]) -> str:
    """A name that no file has replaced: a log may come back as it was before it was replaced."""
    by_reader = hashlib.sha256(look.reader.encode()).hexdigest()
    stem = f"{look.log.digest[:32]}-{by_reader[:8]}"
    names = (f"{stem}{f'-{again}' if again else ''}.parquet" for again in itertools.count())
    return next(name for name in names if name not in replaced)


def _writer(file: BinaryIO) -> Any:
    import pyarrow.parquet as pq

    from farline.store.transfers.rows import transfer_schema

    return pq.ParquetWriter(file, transfer_schema(), compression="zstd")


def _complete(table: pa.Table) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(table["complete"]).as_py() or 0)


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in larger tables, each a row group, with exactly the columns of a transfer."""
    import pyarrow as pa

    from farline.store.transfers.rows import checked_table

    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(checked_table(table))
        if sum(map(len, waiting)) >= _ROW_GROUP_ROWS:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def _read_kept(path: Path) -> tuple[KeptLog, frozenset[str]]:
    with system_failures(f"reading {path}"):
        state = path.stat()
    return _read_state(path, state.st_ino, state.st_size, state.st_mtime_ns)


# Every log that is taken in is looked up among all that are kept: each is read once.
@functools.lru_cache(maxsize=65_536)
def _read_state(
    path: Path, _inode: int, _size_bytes: int, _changed_ns: int
) -> tuple[KeptLog, frozenset[str]]:
    end = read_footer(path)
    try:
        document = json.loads(end.metadata[LOG_KEY])
        log = LogFile(**document.pop("log"))
        kept = KeptLog(log=log, **{**document, "file": path.name})
        return kept, frozenset(json.loads(end.metadata[REPLACES_KEY]))
    except (KeyError, ValueError, TypeError) as error:
        raise SystemFailure(f"{path}: damaged: {error!r}") from error


def checked_reader(reader: str) -> str:
    """A reader's name and version, such as `gridftp 1`.

    Raises:
        SpecError: when it is empty or more than a line.
    """
    if not reader.strip() or len(reader.splitlines()) != 1:
        raise SpecError(f"reader: {reader!r} is not one line such as 'gridftp 1'")
    return reader.strip()
