"""A store being read: one consistent view of its files, and every question that is asked of it.

While a reader is open the files of its view stay where they are. Rows are picked in Arrow alone:
an engine and the binding to it take longer to import than a store of runs takes to be asked. Of
segments no more is read than a question needs: the columns that it looks at, then the row groups
that hold what it found.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from farline.errors import SystemFailure, VersionError
from farline.spec._types import LINK_SAMPLE_COLUMNS, MOVER_SAMPLE_COLUMNS, SAMPLE_COLUMNS
from farline.store import left_out
from farline.store.arrays import array_of, scalar_of
from farline.store.columns import OTHER_NAMES, column_of, run_columns
from farline.store.disk import locked
from farline.store.entry import Fresh
from farline.store.filters import EVERYTHING, RunFilter
from farline.store.layout import LINKS, MOVER, Layout, Side, View, take_view
from farline.store.parquet_files import fresh_samples, read_footer
from farline.store.segments import aligned, segment_tables
from farline.store.spool import spooled_table
from farline.store.upgrade import SAME_SINCE, upgrade_samples

_WORDS = ("campaign", "transport", "status")
_OLDER = {new: old for old, new in OTHER_NAMES.items()}
_CAMPAIGN_COLUMNS = (
    "run_id", "status", "setting", "block", "slot", "attempt", "reference", "error_kind", "error",
    "total_bps", "retransmits", "lost_packets", "cpu_s_per_gb", "verdict_limit", "session_s",
    "run_s", "valid",
)  # fmt: skip
"""What a campaign's machine needs to know of its runs."""
Fits = Callable[[pa.Table], pa.ChunkedArray]
"""Which rows of a table are meant, as booleans; null is no."""


class Rows:
    """Rows of runs in memory."""

    path = None

    def __init__(self, table: pa.Table) -> None:
        """`table` has the columns of `run_columns`."""
        self._table = table

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Some columns of all rows."""
        return self._table.select(names)

    def picked(self, names: Sequence[str], mask: pa.ChunkedArray) -> pa.Table:
        """Some columns of some rows."""
        return self.columns(names).filter(mask)


class SegmentRows:
    """Rows of the runs of a segment, read as they are asked for."""

    def __init__(self, path: Path) -> None:
        """Opens nothing yet."""
        self.path = path

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Some columns of all rows; what the file does not have is null."""
        with pq.ParquetFile(self.path) as file:
            return _shaped(file.read(_in_file(file, names)), names)

    def picked(self, names: Sequence[str], mask: pa.ChunkedArray) -> pa.Table:
        """Some columns of some rows, from the row groups that have any of these."""
        found, start = [], 0
        with pq.ParquetFile(self.path) as file:
            there = _in_file(file, names)
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                here = mask.slice(start, rows)
                start += rows
                if pc.any(here).as_py():
                    found.append(_shaped(file.read_row_group(group, there).filter(here), names))
        return pa.concat_tables(found) if found else _shaped(pa.table({}), names)


@dataclass(frozen=True)
class Reader:
    """Questions to one view. Made by `open_reader`."""

    layout: Layout
    view: View

    def runs(
        self,
        wanted: RunFilter = EVERYTHING,
        limit: int | None = None,
        names: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows of the runs that fit, oldest first; with `limit`, the newest so many of them.

        All columns of `run_columns`, or `names`.
        """
        looked_at = [name for name in _WORDS if getattr(wanted, name) is not None]
        looked_at += [*map(column_of, wanted.where), *(["started_at"] if wanted.since else [])]
        return self._pick(looked_at, functools.partial(_fits, wanted), limit, names)

    def runs_named(self, part: str) -> pa.Table:
        """Rows of the runs whose name begins or ends so."""

        def fits(table: pa.Table) -> pa.Array:
            run_id = table["run_id"]
            return pc.or_(pc.starts_with(run_id, part), pc.ends_with(run_id, part))

        return self._pick([], fits, None, None)

    def campaign_runs(self, campaign: str) -> pa.Table:
        """What a campaign's machine needs to know of its runs, oldest first."""
        return self.runs(RunFilter(campaign=campaign), names=_CAMPAIGN_COLUMNS)

    def campaigns(self) -> pa.Table:
        """One row per campaign: when it started, and how many runs ended how; newest first."""
        rows = self.runs(names=("campaign", "started_at", "status"))
        started: dict[str, str] = {}
        ended: dict[str, Counter[str]] = {}
        for campaign, started_at, status in zip(*(c.to_pylist() for c in rows), strict=True):
            if campaign is not None:
                started[campaign] = min(started.get(campaign, started_at), started_at)
                ended.setdefault(campaign, Counter())[status] += 1
        order = sorted(started, key=lambda name: started[name], reverse=True)
        columns = {
            "campaign": array_of(order, "string"),
            "started_at": array_of([started[name] for name in order], "string"),
            "runs": array_of([ended[name].total() for name in order], "int64"),
        }
        for status in ("complete", "partial", "failed"):
            columns[status] = array_of([ended[name][status] for name in order], "int64")
        return pa.Table.from_arrays(list(columns.values()), names=list(columns))

    def may_hold(self, column: str, value: str) -> bool:
        """Whether any run has `value` in a text column of the runs table."""
        return any(
            pc.any(pc.equal(part.columns([column])[column], scalar_of(value))).as_py()
            for part in self._parts
        )

    def samples(self, run_ids: Iterable[str] | None = None) -> pa.Table:
        """Samples of all runs or of `run_ids`, in the order in which an end took them."""
        wanted = None if run_ids is None else frozenset(run_ids)
        found = [t for f in self._fresh(wanted) for t in _whole(f.path, fresh_samples, f)]
        for segment in self.view.segments:
            path = self.layout.samples / f"{segment.name}.parquet"
            for table in _whole(path, _samples_in, path, wanted):
                found.append(upgrade_samples(table, segment.version))
        return _joined(found, SAMPLE_COLUMNS, ("run_id", "end", "stream", "start_us"))

    def link_samples(self, run_ids: Iterable[str] | None = None) -> pa.Table:
        """Samples of links of all runs or of `run_ids`, link by link; most runs have none."""
        order = ("run_id", "link", "direction", "start_us")
        return _joined(self._side(LINKS, run_ids), LINK_SAMPLE_COLUMNS, order)

    def mover_samples(self, run_ids: Iterable[str] | None = None) -> pa.Table:
        """Samples of files of all copies or of `run_ids`, end by end; other runs have none."""
        order = ("run_id", "end", "role", "start_us")
        return _joined(self._side(MOVER, run_ids), MOVER_SAMPLE_COLUMNS, order)

    def _side(self, side: Side, run_ids: Iterable[str] | None) -> list[pa.Table]:
        wanted = None if run_ids is None else frozenset(run_ids)
        found: list[pa.Table] = []
        paths = [side.path(self.layout, segment) for segment in self.view.segments]
        for fresh in self._fresh(wanted):
            if fresh.spooled:
                found += _whole(fresh.path, spooled_table, fresh, side.name)
            else:
                paths.append(side.fresh_path(self.layout, fresh.entry.run_id))
        there = (path for path in paths if path.exists())
        return [*found, *(t for path in there for t in _whole(path, _samples_in, path, wanted))]

    def _fresh(self, wanted: frozenset[str] | None) -> list[Fresh]:
        return [f for f in self.view.fresh if wanted is None or f.entry.run_id in wanted]

    @functools.cached_property
    def _parts(self) -> list[Rows | SegmentRows]:
        """Where rows are, in memory and in segments; what turns out to be damaged is taken out."""
        parts: list[Rows | SegmentRows] = [Rows(self.view.rows)]
        for segment in self.view.segments:
            if segment.version >= SAME_SINCE:
                parts.append(SegmentRows(self.layout.runs / f"{segment.name}.parquet"))
            else:
                parts += map(Rows, segment_tables(self.layout, segment))
        return parts

    def _pick(
        self, looked_at: Iterable[str], fits: Fits, limit: int | None, names: Iterable[str] | None
    ) -> pa.Table:
        """Rows that fit, told by `run_id` and the columns `looked_at`, in the order of run_id."""
        keys = list(dict.fromkeys(["run_id", *looked_at]))
        heads = [
            (part, t) for part in tuple(self._parts) for t in self._ask(part, part.columns, keys)
        ]
        masks = [fits(head) for _, head in heads]
        ids = [head["run_id"].filter(mask) for (_, head), mask in zip(heads, masks, strict=True)]
        if limit is not None and sum(map(len, ids)) > limit:
            oldest = sorted(value for some in ids for value in some.to_pylist())[-limit]
            newer = (pc.greater_equal(head["run_id"], scalar_of(oldest)) for _, head in heads)
            masks = [pc.and_(mask, new) for mask, new in zip(masks, newer, strict=True)]
        columns = list(dict.fromkeys(["run_id", *(run_columns() if names is None else names)]))
        found = [
            table
            for (part, _), mask in zip(heads, masks, strict=True)
            for table in self._ask(part, part.picked, columns, mask)
        ]
        if len(found) < len(heads):
            # A part was damaged beyond what was looked at: others may take its places.
            return self._pick(looked_at, fits, limit, names)
        rows = pa.concat_tables(found).sort_by("run_id")
        return rows if names is None else rows.select(list(names))

    def _ask(
        self, part: Rows | SegmentRows, read: Callable[..., pa.Table], *arguments: Any
    ) -> list[pa.Table]:
        """What a part answers; nothing, and the part is none any more, where it is damaged."""
        found = _whole(part.path, read, *arguments)
        if not found:
            self._parts.remove(part)
        return found


@contextlib.contextmanager
def open_reader(layout: Layout) -> Iterator[Reader]:
    """Opens a consistent view of the store for as long as the block runs."""
    with locked(layout.use_lock, exclusive=False):
        yield Reader(layout, take_view(layout))


def _whole(path: Path | None, read: Callable[..., pa.Table], *arguments: Any) -> list[pa.Table]:
    """What a reader makes of a file; nothing, and a note, where it is damaged."""
    try:
        return [read(*arguments)]
    except VersionError as failure:
        left_out.note(failure.message)
    except (SystemFailure, pa.ArrowException, OSError, ValueError) as error:
        if path is None:
            raise
        left_out.note(f"{path}: damaged: {' '.join(str(error).split())[:200]}")
    return []


def _samples_in(path: Path, wanted: frozenset[str] | None) -> pa.Table:
    """Samples of some runs, or all, from a file of many, as it has them.

    Raises:
        SystemFailure: when it is damaged or none of the store's.
        VersionError: when a newer farline wrote it.
    """
    read_footer(path)
    with pq.ParquetFile(path) as file:
        if wanted is None:
            return file.read()
        groups = [g for g in range(file.num_row_groups) if _may_have(file, g, wanted)]
        ids = array_of(sorted(wanted), "string")
        table = file.read_row_groups(groups)
        return table.filter(pc.is_in(table["run_id"], value_set=ids))


def _may_have(file: pq.ParquetFile, group: int, wanted: frozenset[str]) -> bool:
    """Whether any of the runs can be in a row group, by what the file says of its names."""
    said = file.metadata.row_group(group).column(0).statistics
    if said is None or not said.has_min_max:
        return True
    return any(said.min <= run_id <= said.max for run_id in wanted)


def _fits(wanted: RunFilter, table: pa.Table) -> pa.ChunkedArray:
    masks = [pc.is_valid(table["run_id"])]
    for name in _WORDS:
        if (value := getattr(wanted, name)) is not None:
            masks.append(pc.equal(table[name], scalar_of(value)))
    if wanted.since is not None:
        masks.append(pc.greater_equal(table["started_at"], scalar_of(wanted.since)))
    if wanted.run_ids:
        ids = array_of(wanted.run_ids, "string")
        masks.append(pc.is_in(table["run_id"], value_set=ids))
    for path, values in wanted.where.items():
        masks.append(_one_of(table[column_of(path)], column_of(path), values))
    return functools.reduce(pc.and_, masks)


def _one_of(column: pa.ChunkedArray, name: str, values: Sequence[object]) -> pa.ChunkedArray:
    """Whether a column has one of `values`; None stands for "left open"."""
    kind = run_columns()[name]
    known = array_of([_stored(kind, value) for value in values if value is not None], kind)
    fits = pc.is_in(column, value_set=known)
    return pc.or_(fits, pc.is_null(column)) if None in values else fits


def _stored(kind: str, value: object) -> object:
    """A value as its column has it: lists are JSON texts there."""
    if isinstance(value, list | dict):
        return json.dumps(value, separators=(",", ":"))
    return float(value) if kind == "double" and isinstance(value, int) else value


def _in_file(file: pq.ParquetFile, names: Iterable[str]) -> list[str]:
    """What the columns `names` are called in a file, those that it has.

    Older files have some options under the option's own name.
    """
    there = frozenset(file.schema_arrow.names)
    called = (name if name in there else _OLDER.get(name, name) for name in names)
    return [name for name in called if name in there]


def _shaped(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """`table` with exactly the columns `names` of the runs table; what it does not have is null."""
    arrays = {}
    for name in names:
        kind = pa.type_for_alias(run_columns()[name])
        found = name if name in table.column_names else _OLDER.get(name, name)
        there = found in table.column_names
        arrays[name] = table[found].cast(kind) if there else pa.nulls(len(table), kind)
    return pa.Table.from_arrays(list(arrays.values()), names=list(arrays))


def _joined(tables: list[pa.Table], names: Iterable[str], order: Sequence[str]) -> pa.Table:
    """Tables of samples as one: `run_id`, the columns `names`, and others that a file has."""
    found = (name for table in tables for name in table.column_names if name != "run_id")
    columns = [("run_id", pa.string())]
    columns += [(name, pa.int64()) for name in dict.fromkeys([*names, *found])]
    schema = pa.schema(columns)
    nothing = pa.Table.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema=schema)
    whole = pa.concat_tables([nothing, *(aligned(table, schema) for table in tables)])
    return whole.sort_by([(name, "ascending") for name in order])
