"""A store being read: one consistent view of its files as Ibis tables on embedded DuckDB.

While a reader is open the files of its view stay where they are. Segments that need no
upgrade are scanned by DuckDB where they lie; fresh files, and what needs one, are read and
upgraded into memory.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.errors import SystemFailure
from farline.store.columns import OTHER_NAMES, run_columns, runs_table
from farline.store.compact import segment_samples, segment_tables
from farline.store.disk import locked
from farline.store.entry import Fresh, fresh_samples
from farline.store.layout import LINKS, MOVER, Layout, Segment, Side, View, take_view
from farline.store.spool import spooled_table
from farline.store.upgrade import SAME_SINCE

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends.duckdb import Backend


@dataclass(frozen=True)
class Reader:
    """Tables of one view. Made by `open_reader`."""

    layout: Layout
    view: View
    engine: Backend

    @functools.cached_property
    def runs(self) -> ir.Table:
        """The runs table: every run of the view, with exactly the columns of `run_columns`."""
        import ibis

        parts = [ibis.memtable(self._fresh_runs())]
        files = [self.layout.runs / f"{segment.name}.parquet" for segment in self._present]
        if files:
            parts.append(self._scan("segment_runs", [str(path) for path in files]))
        return _union([_shaped(part, run_columns()) for part in parts])

    def samples(self, run_ids: Iterable[str] | None = None) -> ir.Table:
        """The samples table, of all runs or at least of `run_ids`."""
        import ibis

        from farline.spec._types import SAMPLE_COLUMNS

        wanted = None if run_ids is None else frozenset(run_ids)
        fresh = [f for f in self.view.fresh if wanted is None or f.entry.run_id in wanted]
        scanned = [str(f.path) for f in fresh if _in_place(f)]
        scanned += [str(self.layout.samples / f"{s.name}.parquet") for s in self._present]
        older = [fresh_samples(f) for f in fresh if not _in_place(f)]
        older += [table for s in self._older for table in segment_samples(self.layout, s)]
        parts = [ibis.memtable(_joined(older))]
        if scanned:
            parts.append(self._scan("scanned_samples", scanned))
        found = (name for part in parts for name in part.columns if name != "run_id")
        names = dict.fromkeys([*SAMPLE_COLUMNS, *found])
        columns = {"run_id": "string", **dict.fromkeys(names, "int64")}
        return _union([_shaped(part, columns) for part in parts])

    def link_samples(self, run_ids: Iterable[str] | None = None) -> ir.Table:
        """The samples of links, of all runs or at least of `run_ids`; most runs have none."""
        from farline.spec._types import LINK_SAMPLE_COLUMNS

        return self._side(LINKS, LINK_SAMPLE_COLUMNS, run_ids)

    def mover_samples(self, run_ids: Iterable[str] | None = None) -> ir.Table:
        """The samples of files, of all copies or at least of `run_ids`; other runs have none."""
        from farline.spec._types import MOVER_SAMPLE_COLUMNS

        return self._side(MOVER, MOVER_SAMPLE_COLUMNS, run_ids)

    def _side(self, side: Side, names: Iterable[str], run_ids: Iterable[str] | None) -> ir.Table:
        import ibis

        wanted = None if run_ids is None else frozenset(run_ids)
        fresh = [f for f in self.view.fresh if wanted is None or f.entry.run_id in wanted]
        paths = [side.fresh_path(self.layout, f.entry.run_id) for f in fresh if not f.spooled]
        paths += [side.path(self.layout, segment) for segment in self.view.segments]
        found = [str(path) for path in paths if path.exists()]
        spooled = [spooled_table(f, side.name) for f in fresh if f.spooled]
        parts = [ibis.memtable(_joined(spooled))]
        if found:
            parts.append(self._scan(f"{side.name}_samples", found))
        columns = {"run_id": "string", **dict.fromkeys(names, "int64")}
        return _union([_shaped(part, columns) for part in parts])

    def arrow(self, expression: ir.Table) -> pa.Table:
        """The result of an expression.

        Raises:
            SystemFailure: when a file turns out to be damaged.
        """
        import duckdb

        try:
            return self.engine.to_pyarrow(expression)
        except duckdb.Error as error:
            raise SystemFailure(f"reading {self.layout.root}: {error}") from error

    @property
    def _present(self) -> list[Segment]:
        return [s for s in self.view.segments if s.version >= SAME_SINCE]

    @property
    def _older(self) -> list[Segment]:
        return [s for s in self.view.segments if s.version < SAME_SINCE]

    def _fresh_runs(self) -> pa.Table:
        import pyarrow as pa

        tables = [runs_table(item.entry for item in self.view.fresh)]
        tables += [table for s in self._older for table in segment_tables(self.layout, s)]
        return pa.concat_tables(tables)

    def _scan(self, name: str, paths: list[str]) -> ir.Table:
        return self.engine.read_parquet(paths, table_name=name, union_by_name=True)


@contextlib.contextmanager
def open_reader(layout: Layout) -> Iterator[Reader]:
    """Opens a consistent view of the store for as long as the block runs.

    Raises:
        VersionError: when a newer farline wrote one of the files.
    """
    import ibis

    with locked(layout.use_lock, exclusive=False):
        view = take_view(layout)
        engine = ibis.duckdb.connect()
        try:
            yield Reader(layout, view, engine)
        finally:
            engine.disconnect()


def _in_place(fresh: Fresh) -> bool:
    """Whether the engine reads it where it lies: Parquet, and nothing to upgrade."""
    return fresh.version >= SAME_SINCE and not fresh.spooled


def _shaped(table: ir.Table, columns: dict[str, str]) -> ir.Table:
    """`table` with exactly `columns`; what it does not have is null.

    Older files have some options under the option's own name.
    """
    import ibis

    older = {new: old for old, new in OTHER_NAMES.items()}
    names = {name: name if name in table.columns else older.get(name, name) for name in columns}
    types = {"double": "float64", "bool": "boolean"}
    present = {
        name: table[found] if found in table.columns else ibis.null()
        for name, found in names.items()
    }
    casts = {name: types.get(kind, kind) for name, kind in columns.items()}
    return table.select(**{name: value.cast(casts[name]) for name, value in present.items()})


def _union(parts: list[ir.Table]) -> ir.Table:
    import ibis

    return ibis.union(*parts, distinct=False) if len(parts) > 1 else parts[0]


def _joined(tables: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    empty = pa.schema([("run_id", pa.string())]).empty_table()
    return pa.concat_tables([empty, *tables], promote_options="default")
