"""A store being read: one consistent view of its files as Ibis tables on embedded DuckDB.

While a reader is open the files of its view stay where they are. Segments that need no
upgrade are scanned by DuckDB where they lie; fresh files, and what needs one, are read and
upgraded into memory.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import SystemFailure, VersionError
from farline.store import left_out
from farline.store.columns import OTHER_NAMES, run_columns, runs_table
from farline.store.compact import segment_samples, segment_tables
from farline.store.disk import locked
from farline.store.entry import Fresh, fresh_samples, read_footer
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
    scans: dict[str, tuple[list[str], dict[str, str]]] = field(default_factory=dict)
    """Files and columns of what the engine scans, by name."""

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
        older = [t for f in fresh if not _in_place(f) for t in _whole(f.path, fresh_samples, f)]
        older += [table for s in self._older for table in segment_samples(self.layout, s)]
        parts = [ibis.memtable(_joined(older))]
        if scanned := _sound(scanned):
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
        spooled = [
            t for f in fresh if f.spooled for t in _whole(f.path, spooled_table, f, side.name)
        ]
        parts = [ibis.memtable(_joined(spooled))]
        if found := _sound(found):
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
            if not self._drop_damaged():
                raise SystemFailure(f"reading {self.layout.root}: {error}") from error
        return self.arrow(expression)

    def _drop_damaged(self) -> bool:
        """Takes files that cannot be read to their end out of what is scanned; whether any was."""
        dropped = False
        for name, (paths, columns) in list(self.scans.items()):
            sound = [path for path in paths if _is_whole(path)]
            if len(sound) < len(paths):
                dropped = True
                self.scans[name] = (sound, columns)
                self._scan_again(name, sound, columns)
        return dropped

    def _scan_again(self, name: str, paths: list[str], columns: Mapping[str, str]) -> None:
        """Puts fewer files under the name of a scan, with the columns that it had."""
        if not paths:
            nulls = ", ".join(f'NULL::{kind} AS "{column}"' for column, kind in columns.items())
            self._replace_view(name, f"SELECT {nulls} WHERE false")
            return
        files = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        source = f"read_parquet([{files}], union_by_name = true)"
        there = {row[0] for row in self.engine.con.execute(f"DESCRIBE FROM {source}").fetchall()}
        picked = ", ".join(
            f'"{column}"' if column in there else f'NULL::{kind} AS "{column}"'
            for column, kind in columns.items()
        )
        self._replace_view(name, f"SELECT {picked} FROM {source}")

    def _replace_view(self, name: str, query: str) -> None:
        self.engine.con.execute(f'CREATE OR REPLACE TEMPORARY VIEW "{name}" AS {query}')

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
        table = self.engine.read_parquet(paths, table_name=name, union_by_name=True)
        described = self.engine.con.execute(f'DESCRIBE "{name}"').fetchall()
        self.scans[name] = (paths, {row[0]: row[1] for row in described})
        return table


@contextlib.contextmanager
def open_reader(layout: Layout) -> Iterator[Reader]:
    """Opens a consistent view of the store for as long as the block runs."""
    import ibis

    with locked(layout.use_lock, exclusive=False):
        view = take_view(layout)
        engine = ibis.duckdb.connect()
        try:
            yield Reader(layout, view, engine)
        finally:
            engine.disconnect()


def _sound(paths: Iterable[str]) -> list[str]:
    """Those whose footers can be read; the others are noted."""
    sound = []
    for path in paths:
        try:
            read_footer(Path(path))
        except (SystemFailure, VersionError) as failure:
            left_out.note(failure.message)
        else:
            sound.append(path)
    return sound


def _is_whole(path: str) -> bool:
    """Whether every page of a file can be read; if not, that is noted."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches():
                pass
    except (pa.ArrowException, OSError, ValueError) as error:
        left_out.note(f"{path}: damaged: {' '.join(str(error).split())[:200]}")
        return False
    return True


def _whole(path: Path, read: Callable[..., pa.Table], *arguments: Any) -> list[pa.Table]:
    """What a reader makes of a file; nothing, and a note, where it is damaged."""
    import pyarrow as pa

    try:
        return [read(*arguments)]
    except (SystemFailure, pa.ArrowException, OSError, ValueError) as error:
        left_out.note(f"{path}: damaged: {error}")
        return []


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
