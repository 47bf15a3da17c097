"""Many small files into few: safe to kill at any moment, safe beside writers and readers.

1. Under `merge.lock` (one merger at a time) a view is taken and parts are chosen.
2. The samples of the new segment are published (of runs, of links, of files), then its rows, whose
   metadata name all that the segment replaces. That last rename is the commit: before it the parts
   count, after it the segment does.
3. Replaced files are deleted if no reader holds the store, and next time otherwise.

Sizes of segments grow by powers of two, so a run is written again only O(log n) times.
"""

from __future__ import annotations

import itertools
import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import VersionError
from farline.store.columns import runs_table
from farline.store.disk import (
    STALE_TEMP_S,
    locked,
    make_folder,
    publish,
    remove_stale,
    system_failures,
)
from farline.store.entry import Fresh
from farline.store.layout import REPLACES_KEY, SIDES, Layout, Segment, Side, View, take_view
from farline.store.parquet_files import VERSION_KEY, fresh_samples, read_footer
from farline.store.receipts import settle_receipts
from farline.store.segments import BATCH_RUNS, aligned, segment_samples, segment_tables
from farline.store.spool import spooled_table
from farline.store.upgrade import FORMAT_VERSION, upgrade_samples

if TYPE_CHECKING:
    import pyarrow as pa

MAX_SEGMENT_RUNS = 20_000
"""A segment of this size is not merged again."""
_ROW_GROUP_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a merge did."""

    merged_runs: int = 0
    merged_files: int = 0
    removed_files: int = 0
    busy: bool = False
    """Another process was merging, so this one did nothing."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a segment is made of."""

    fresh: tuple[Fresh, ...]
    segments: tuple[Segment, ...]

    @property
    def runs(self) -> int:
        """How many runs."""
        return len(self.fresh) + sum(segment.runs for segment in self.segments)

    @property
    def names(self) -> list[str]:
        """Their files, as lists of replaced files have them."""
        fresh = [item.name for item in self.fresh]
        return fresh + [f"runs/{segment.name}.parquet" for segment in self.segments]


def compact(layout: Layout, everything: bool = False) -> Compaction:
    """Merges fresh files and the segments not larger than what they join; cleans up.

    With `everything` all segments below `MAX_SEGMENT_RUNS` are merged into one.
    """
    with locked(layout.merge_lock, exclusive=True, wait=False) as mine:
        if not mine:
            return Compaction(busy=True)
        with locked(layout.use_lock, exclusive=False):
            view = take_view(layout)
        if view.newer:
            # What a file that cannot be read yet replaces would be merged a second time.
            raise VersionError(view.newer[0])
        # Only a merger deletes, and that is this process: the view stays true without the lock.
        parts = _choose(view, everything)
        superseded = set(view.superseded)
        if len(parts.names) >= 2:
            superseded.update(parts.names)
            write_segment(layout, parts, sorted(superseded))
            merged = parts.runs, len(parts.names)
        else:
            merged = 0, 0
        settle_receipts(layout)
        return Compaction(*merged, removed_files=clean(layout, superseded))


def _choose(view: View, everything: bool) -> Parts:
    chosen: list[Segment] = []
    gathered = len(view.fresh)
    for segment in sorted(view.segments, key=lambda item: item.runs):
        fits = gathered + segment.runs <= MAX_SEGMENT_RUNS
        if fits and (everything or segment.runs <= gathered):
            chosen.append(segment)
            gathered += segment.runs
    return Parts(view.fresh, tuple(chosen))


def write_segment(layout: Layout, parts: Parts, replaces: list[str]) -> None:
    """Publishes a segment of these parts that replaces the files named. The merge lock is held."""
    name = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"
    schema = _sample_schema(layout, parts)
    tables = _sample_tables(layout, parts)
    _publish_tables(layout, layout.samples / f"{name}.parquet", schema, tables, {})
    for side in SIDES:
        _write_side(layout, side, parts, side.folder(layout) / f"{name}.parquet")
    rows = _run_tables(layout, parts)
    first = next(rows)
    metadata = {REPLACES_KEY: json.dumps(replaces)}
    _publish_tables(
        layout, layout.runs / f"{name}.parquet", first.schema, _chain(first, rows), metadata
    )


def _write_side(layout: Layout, side: Side, parts: Parts, target: Path) -> None:
    """Samples of another kind, of all parts; no file where no run has any."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = [side.fresh_path(layout, item.entry.run_id) for item in parts.fresh if not item.spooled]
    paths += [side.path(layout, segment) for segment in parts.segments]
    found = [path for path in paths if path.exists()]
    spooled = [spooled_table(item, side.name) for item in parts.fresh if item.spooled]
    spooled = [table for table in spooled if len(table)]
    if not found and not spooled:
        return
    columns = [read_footer(path).columns for path in found] + [t.column_names for t in spooled]
    names = dict.fromkeys(name for some in columns for name in some if name != "run_id")
    schema = pa.schema([("run_id", pa.string()), *((name, pa.int64()) for name in names)])
    tables = itertools.chain(spooled, (pq.read_table(path, use_threads=False) for path in found))
    make_folder(target.parent)
    _publish_tables(layout, target, schema, tables, {})


def _chain(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from rest


def _publish_tables(
    layout: Layout,
    target: Path,
    schema: pa.Schema,
    tables: Iterator[pa.Table],
    metadata: dict[bytes, str],
) -> None:
    import pyarrow.parquet as pq

    def write(file: object) -> None:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for table in _gathered(aligned(table, schema) for table in tables):
                writer.write_table(table)
            writer.add_key_value_metadata({VERSION_KEY: str(FORMAT_VERSION), **metadata})

    publish(layout.temp, target, write)


def _gathered(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in fewer and larger tables: each becomes a row group."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= _ROW_GROUP_ROWS or len(waiting) >= BATCH_RUNS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _run_tables(layout: Layout, parts: Parts) -> Iterator[pa.Table]:
    for start in range(0, len(parts.fresh), BATCH_RUNS):
        yield runs_table(item.entry for item in parts.fresh[start : start + BATCH_RUNS])
    for segment in parts.segments:
        yield from segment_tables(layout, segment)


def _sample_tables(layout: Layout, parts: Parts) -> Iterator[pa.Table]:
    for item in parts.fresh:
        yield fresh_samples(item)
    for segment in parts.segments:
        yield from segment_samples(layout, segment)


def _sample_schema(layout: Layout, parts: Parts) -> pa.Schema:
    """All sample columns of all parts, `run_id` first."""
    import pyarrow as pa

    found = {(item.columns, item.version) for item in parts.fresh}
    for segment in parts.segments:
        columns = read_footer(layout.samples / f"{segment.name}.parquet").columns
        found.add((columns, segment.version))
    names: dict[str, pa.DataType] = {"run_id": pa.string()}
    for columns, version in sorted(found):
        empty = pa.schema([(name, pa.int64()) for name in columns]).empty_table()
        present = upgrade_samples(empty, version).column_names
        names.update({name: pa.int64() for name in present if name != "run_id"})
    return pa.schema(list(names.items()))


def clean(layout: Layout, superseded: set[str]) -> int:
    """Deletes what nobody reads: replaced files, samples without rows, stale temporary files.

    Fresh and spooled files go before the segment that replaced them: were it the other way round, a
    kill in between could bring them back.
    """
    with locked(layout.use_lock, exclusive=True, wait=False) as alone:
        if not alone:
            return 0
        with system_failures(f"cleaning {layout.root}"):
            for name in sorted(superseded, key=lambda name: (name.startswith("runs/"), name)):
                (layout.root / name).unlink(missing_ok=True)
            orphans = [
                path
                for folder in (layout.samples, *(side.folder(layout) for side in SIDES))
                for path in folder.glob("*.parquet")
                if not (layout.runs / path.name).exists()
            ]
            orphans += _side_files_left(layout, superseded)
            for path in orphans:
                path.unlink(missing_ok=True)
            return len(superseded) + len(orphans) + remove_stale(layout.temp)


def _side_files_left(layout: Layout, superseded: set[str]) -> list[Path]:
    """Other samples of single runs that were merged, or whose writer died before the run's file.

    They get their names before their run does, so one without a run may belong to a living writer
    until it is old.
    """
    dead_before = time.time() - STALE_TEMP_S
    return [
        path
        for side in SIDES
        for path in side.fresh_folder(layout).glob("*.parquet")
        if not (layout.fresh / path.name).exists()
        and (f"fresh/{path.name}" in superseded or path.stat().st_mtime < dead_before)
    ]
