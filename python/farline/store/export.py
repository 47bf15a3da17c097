"""Runs, their samples and receipts of copies as files: CSV, Parquet, JSON.

Receipts go batch by batch, so that a million names fit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv
import pyarrow.parquet

from farline.store.columns import entry_of_row
from farline.store.receipts import COLUMNS, receipt

if TYPE_CHECKING:
    from farline.store.store import Store


class Receipts:
    """The receipts of some runs as one table, `run_id` in front; counts what was written."""

    def __init__(self, store: Store, run_ids: Sequence[str]) -> None:
        """Reads nothing yet."""
        self._store, self._run_ids = store, run_ids
        self.rows = 0

    def put(self, file: BinaryIO, kind: str) -> None:
        """Writes all rows as `csv`, `parquet` or `json`."""
        writers: dict[str, Callable[[BinaryIO], None]] = {
            "csv": self._put_csv, "parquet": self._put_parquet, "json": self._put_json,
        }  # fmt: skip
        writers[kind](file)

    def _put_csv(self, file: BinaryIO) -> None:
        with pyarrow.csv.CSVWriter(file, _schema()) as writer:
            for table in self._tables():
                writer.write_table(table)

    def _put_parquet(self, file: BinaryIO) -> None:
        with pyarrow.parquet.ParquetWriter(file, _schema(), compression="zstd") as writer:
            for table in self._tables():
                writer.write_table(table)

    def _put_json(self, file: BinaryIO) -> None:
        file.write(b'{"schema": 1, "files": [')
        comma = ""
        for table in self._tables():
            for row in table.to_pylist():
                file.write(f"{comma}\n{json.dumps(row)}".encode())
                comma = ","
        file.write(b"\n]}\n")

    def _tables(self) -> Iterator[pa.Table]:
        schema = _schema()
        for run_id in self._run_ids:
            for batch in receipt(self._store.layout, run_id) or ():
                self.rows += len(batch)
                table = pa.Table.from_batches([batch])
                table = table.add_column(0, "run_id", pa.array([run_id] * len(batch), pa.string()))
                yield table.cast(schema)


def _schema() -> pa.Schema:
    kinds = {"VARCHAR": pa.string(), "UBIGINT": pa.uint64()}
    columns = [(name, kinds[kind]) for name, kind in COLUMNS.items()]
    return pa.schema([("run_id", pa.string()), *columns])


def put_runs(file: BinaryIO, kind: str, runs: pa.Table, samples: pa.Table | None = None) -> None:
    """Writes runs, or their samples, as `csv`, `parquet` or `json`; JSON has both."""
    table = runs if samples is None else samples
    if kind == "parquet":
        pyarrow.parquet.write_table(table, file, compression="zstd")
    elif kind == "csv":
        dropped = [name for name in ("record",) if name in table.column_names]
        pyarrow.csv.write_csv(table.drop_columns(dropped), file)
    else:
        file.write(json.dumps(_document(runs, samples), indent=1).encode() + b"\n")


def _document(runs: pa.Table, samples: pa.Table | None) -> dict[str, object]:
    entries = [
        entry_of_row(row) for row in runs.select(["record", "labels", "campaign"]).to_pylist()
    ]
    if samples is not None:
        for entry in entries:
            mine = samples.filter(compute.equal(samples["run_id"], entry["record"]["run_id"]))
            entry["samples"] = mine.drop_columns(["run_id"]).to_pydict()
    return {"schema": 1, "runs": entries}
