"""Segments as they are read: rows and samples in batches, in the present version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from farline.store.columns import entry_of_row, run_columns, runs_table
from farline.store.entry import Entry
from farline.store.layout import Layout, Segment
from farline.store.upgrade import SAME_SINCE, labels_name, upgrade_document, upgrade_samples

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_RUNS = 500
"""Rows that are read or made at once."""


def segment_tables(layout: Layout, segment: Segment) -> Iterator[pa.Table]:
    """Rows of a segment in batches, in the present version and with the present columns.

    They are flattened anew from the records when the file was written with other columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(layout.runs / f"{segment.name}.parquet") as file:
        same = segment.version >= SAME_SINCE and file.schema_arrow.names == list(run_columns())
        for batch in file.iter_batches(BATCH_RUNS):
            if same:
                yield pa.Table.from_batches([batch])
            else:
                yield runs_table(_entry(row, segment.version) for row in batch.to_pylist())


def segment_samples(layout: Layout, segment: Segment) -> Iterator[pa.Table]:
    """Samples of a segment in batches, in the present version."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(layout.samples / f"{segment.name}.parquet") as file:
        for batch in file.iter_batches():
            yield upgrade_samples(pa.Table.from_batches([batch]), segment.version)


def aligned(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` with the columns of `schema`; what it does not have is null."""
    import pyarrow as pa

    if table.schema.equals(schema):
        return table
    columns = [
        table.column(column.name).cast(column.type)
        if column.name in table.column_names
        else pa.nulls(len(table), column.type)
        for column in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _entry(row: dict[str, str], version: int) -> Entry:
    document = upgrade_document(entry_of_row(row, labels_name(version)), version)
    return Entry(document["record"], document["campaign"], document["labels"])
