"""A look into a store without an engine: whether asking it could find anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farline.store.columns import runs_table
from farline.store.disk import locked
from farline.store.layout import Layout, take_view
from farline.store.upgrade import SAME_SINCE

if TYPE_CHECKING:
    import pyarrow as pa


def may_hold(layout: Layout, column: str, value: str) -> bool:
    """Whether a run may have `value` in a text column of the runs table; False is certain.

    Raises:
        VersionError: when a newer farline wrote one of the files.
        SystemFailure: when the disk refuses.
    """
    import pyarrow.compute as pc

    with locked(layout.use_lock, exclusive=False):
        view = take_view(layout)
        if any(segment.version < SAME_SINCE for segment in view.segments):
            return True
        parts = [runs_table(item.entry for item in view.fresh)[column]]
        names = (segment.name for segment in view.segments)
        parts += [found for name in names if (found := _column(layout, name, column)) is not None]
    return any(pc.any(pc.equal(part, value)).as_py() for part in parts)


def _column(layout: Layout, segment: str, column: str) -> pa.ChunkedArray | None:
    """A column of a segment's runs; None where it was written before there was one."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(layout.runs / f"{segment}.parquet") as file:
        if column not in file.schema_arrow.names:
            return None
        return file.read([column])[column]
