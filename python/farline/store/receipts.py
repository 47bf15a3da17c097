"""Receipts of copies: what became of each name, one file per run in `receipts/`.

A receipt comes as JSON lines (`ReceiptLine` in `crates/spec`) from the end that wrote the files,
and is kept as Parquet with the same columns. A large one is turned at once; a small one is put
aside as it is, which costs a rename, and turned by the next reader or merge. Two who turn the same
one write the same file, and the lines go only when that has its name: a kill loses nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from farline.errors import SystemFailure
from farline.store.disk import make_folder, publish, sync_directory, system_failures
from farline.store.entry import checked_run_id
from farline.store.layout import Layout
from farline.store.parquet_files import VERSION_KEY, read_footer
from farline.store.upgrade import FORMAT_VERSION

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

LINES = ".jsonl"
LARGE_BYTES = 16 << 20
"""Lines that have more than this are turned into Parquet at once: about 80,000 names."""

COLUMNS = {
    "path": "VARCHAR",
    "kind": "VARCHAR",
    "status": "VARCHAR",
    "bytes": "UBIGINT",
    "resumed_bytes": "UBIGINT",
    "blake3": "VARCHAR",
    "xxh3_tree": "VARCHAR",
    "hash": "VARCHAR",
    "reason": "VARCHAR",
    "node": "VARCHAR",
}
"""Columns of a receipt, with the engine's types; null is "not said"."""

_PART_BYTES = 1 << 20
_MEMORY = "160MB"
_GROUP_ROWS = 50_000
_BATCH_ROWS = 10_000


def keep_receipt(layout: Layout, run_id: str, lines: Path, *, move: bool = True) -> None:
    """Keeps the receipt of a copy; when this returns it is on disk.

    `lines` are moved, or copied if `move` is false. Nothing is imported for a small one.

    Raises:
        SpecError: when `run_id` is no name of a run.
        SystemFailure: when the disk refuses, or the lines are damaged.
    """
    name = f"{checked_run_id(run_id)}{LINES}"
    make_folder(layout.receipts)
    target = layout.receipts / name
    with system_failures(f"keeping the receipt {lines}"):
        large = lines.stat().st_size > LARGE_BYTES
        if not (move and _moved(lines, target)):
            with lines.open("rb") as source:
                publish(layout.temp, target, lambda file: _copy(source, file))
            if move:
                lines.unlink()
    if large:
        _turn(layout, target)


def receipt(
    layout: Layout, run_id: str, *, failed: bool = False
) -> Iterator[pa.RecordBatch] | None:
    """The receipt of a copy in batches, with the columns of `COLUMNS`; None where there is none.

    With `failed` only names that failed.

    Raises:
        SystemFailure: when it is damaged.
        VersionError: when a newer farline wrote it.
    """
    lines = layout.receipts / f"{checked_run_id(run_id)}{LINES}"
    table = lines.with_suffix(".parquet")
    if not table.exists() and lines.exists():
        if not os.access(layout.receipts, os.W_OK):
            return _batches(f"({_reading()})", [str(lines)], failed)
        _turn(layout, lines)
    if not table.exists():
        return None
    known = read_footer(table).columns
    # One of an older version has fewer columns.
    columns = ", ".join(name if name in known else f"NULL AS {name}" for name in COLUMNS)
    return _batches(f"(SELECT {columns} FROM read_parquet(?))", [str(table)], failed)


def settle_receipts(layout: Layout) -> None:
    """Turns what is still lines into Parquet; a damaged one stays as it is and is read as such."""
    if not layout.receipts.exists():
        return
    for lines in sorted(layout.receipts.glob(f"*{LINES}")):
        with contextlib.suppress(SystemFailure):
            _turn(layout, lines)


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    while part := source.read(_PART_BYTES):
        target.write(part)


def _moved(lines: Path, target: Path) -> bool:
    """Whether a rename did it: it does within one file system."""
    handle = os.open(lines, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    try:
        lines.rename(target)
    except OSError:
        return False
    sync_directory(target.parent)
    return True


def _reading() -> str:
    """The query that reads lines; the one parameter is their file."""
    types = ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS.items())
    return (
        f"SELECT {', '.join(COLUMNS)} FROM read_json(?, format = 'newline_delimited',"
        f" columns = {{{types}}})"
    )


def _turn(layout: Layout, lines: Path) -> None:
    """Writes the lines as Parquet beside them, and removes them."""
    target = lines.with_suffix(".parquet")
    temp = layout.temp / f"{target.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        with _engine(layout.temp) as engine:
            engine.execute(
                f"COPY ({_reading()}) TO '{_quoted(temp)}' (FORMAT parquet, COMPRESSION zstd,"
                f" ROW_GROUP_SIZE {_GROUP_ROWS},"
                f" KV_METADATA {{'{VERSION_KEY.decode()}': '{FORMAT_VERSION}'}})",
                [str(lines)],
            )
        with system_failures(f"writing {target}"):
            _finish(temp, target)
            lines.unlink(missing_ok=True)
    except SystemFailure:
        # Somebody else may have turned it meanwhile.
        if lines.exists() or not target.exists():
            raise
    finally:
        temp.unlink(missing_ok=True)


def _finish(temp: Path, target: Path) -> None:
    handle = os.open(temp, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    temp.rename(target)
    sync_directory(target.parent)


@contextlib.contextmanager
def _engine(temp: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine with little memory; its refusals are failures of the system."""
    import duckdb

    # One thread keeps the order of the lines without keeping them all.
    config: dict[str, Any] = {"threads": 1, "memory_limit": _MEMORY}
    if temp is not None:
        config["temp_directory"] = str(temp)
    engine = duckdb.connect(config=config)
    try:
        yield engine
    except duckdb.Error as error:
        first = (str(error).splitlines() or ["no reason given"])[0]
        raise SystemFailure(f"reading a receipt: {first}") from error
    finally:
        engine.close()


def _batches(source: str, parameters: list[str], failed: bool) -> Iterator[pa.RecordBatch]:
    where = " WHERE status = 'failed'" if failed else ""
    with _engine() as engine:
        query = f"SELECT {', '.join(COLUMNS)} FROM {source}{where}"
        found = engine.sql(query, params=parameters)
        yield from found.to_arrow_reader(_BATCH_ROWS)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
