"""Writes the stores that the upgrade tests read: run once per version of the format, then never.

    python -m tests.data.store.make v3      with the code of version 3
    python -m tests.data.store.make v2      with the code of version 2
    python -m tests.data.store.make v1      with the code of version 1
    python -m tests.data.store.make v0      by hand: version 0 was never released

What is committed stays as it is, whatever the code becomes: that is what it is for.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from farline.store import Store
from farline.store.entry import RunBundle
from farline.store.receipts import keep_receipt, receipt
from tests.support.kept_copies import (
    make_copy_spec,
    make_mover_samples,
    make_report,
    receipt_line,
    write_receipt,
)
from tests.support.paths import make_link_samples, make_path
from tests.support.records import make_record, make_samples, make_spec

HERE = Path(__file__).parent
STREAMS = (1, 2, 4)


def write_v1(root: Path) -> None:
    """Two runs in a segment, one fresh."""
    store = Store(root)
    for number, streams in enumerate(STREAMS):
        record = make_record(number, make_spec(streams=streams, tcp={"congestion_control": "reno"}))
        labels = {"setting": f"s{streams}", "block": 0, "slot": 0, "attempt": 0, "reference": False}
        store.append(RunBundle(record, make_samples(3), campaign="old", labels=labels))
        if number == 1:
            store.compact()


def write_v2(root: Path) -> None:
    """As version 1, and every run went over an emulated path."""
    store = Store(root)
    for number, streams in enumerate(STREAMS):
        spec = make_spec(streams=streams, tcp={"congestion_control": "reno"})
        record = {**make_record(number, spec), "path": make_path()}
        labels = {"setting": f"s{streams}", "block": 0, "slot": 0, "attempt": 0, "reference": False}
        store.append(
            RunBundle(
                record,
                make_samples(3),
                campaign="old",
                labels=labels,
                links=make_link_samples(4),
            )
        )
        if number == 1:
            store.compact()


def write_v3(root: Path) -> None:
    """Two copies in a segment, one spooled, with samples of files; receipts of two of them."""
    store = Store(root)
    for number, streams in enumerate(STREAMS):
        spec = make_copy_spec(streams=streams, tcp={"congestion_control": "reno"})
        record = {**make_record(number, spec), "copy": make_report()}
        labels = {"setting": f"s{streams}", "block": 0, "slot": 0, "attempt": 0, "reference": False}
        keep = store.spool if number else store.append
        run = RunBundle(record, make_samples(3), "old", labels, mover=make_mover_samples())
        keep(run)
        lines = write_receipt(root / "tmp" / "lines", [receipt_line(1), receipt_line(2)])
        if number == 1:
            store.compact()
        if number:
            keep_receipt(store.layout, record["run_id"], lines)
        else:
            lines.unlink()
    batches = receipt(store.layout, make_record(1)["run_id"])
    assert batches is not None
    assert sum(map(len, batches)) == 2


def write_v0(root: Path) -> None:
    """One run in a segment, two fresh, as version 0 had them."""
    store = Store(root)
    for number, streams in enumerate(STREAMS):
        document = _document_v0(number, streams)
        metadata = {"farline.format": "0", "farline.entry": json.dumps(document)}
        run_id = document["record"]["run_id"]
        if number:
            _write(store.path / "fresh" / f"{run_id}.parquet", _samples_v0(run_id), metadata)
        else:
            _write_segment_v0(store.path, document, run_id)


def _document_v0(number: int, streams: int) -> dict[str, Any]:
    record = make_record(number, make_spec(streams=streams, tcp={"congestion_control": "reno"}))
    del record["server_notes"]
    record.update(schema=0, status="ok")
    return {"record": record, "campaign": "old", "tags": {"setting": f"s{streams}", "block": 0}}


def _samples_v0(run_id: str) -> pa.Table:
    columns = {"run_id": pa.array([run_id] * 6)}
    for name, values in make_samples(3).items():
        column = pa.array(values, pa.int64(), mask=values == -1)
        columns["srtt_us" if name == "rtt_us" else name] = column
    return pa.table(columns)


def _write_segment_v0(root: Path, document: dict[str, Any], run_id: str) -> None:
    row = {
        "run_id": [run_id],
        "campaign": [document["campaign"]],
        "tags": [json.dumps(document["tags"])],
        "record": [json.dumps(document["record"])],
    }
    _write(root / "samples" / "seg.parquet", _samples_v0(run_id), {"farline.format": "0"})
    metadata = {"farline.format": "0", "farline.replaces": "[]"}
    _write(root / "runs" / "seg.parquet", pa.table(row), metadata)


def _write(path: Path, table: pa.Table, metadata: dict[str, str]) -> None:
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)


if __name__ == "__main__":
    {"v0": write_v0, "v1": write_v1, "v2": write_v2, "v3": write_v3}[sys.argv[1]](
        HERE / sys.argv[1]
    )
