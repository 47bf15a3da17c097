"""The statistics of UDT runs by libudt's names, from the rows of a store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from farline.errors import UsageError
from farline.profiles.perfmon import FIELDS, PLACE, Floats, json_columns, perfmon

Record = Mapping[str, Any]


def perfmon_of(record: Record, samples: pa.Table) -> dict[str, Floats]:
    """The table of one run from its rows of the store.

    Raises:
        UsageError: when the run is no UDT run.
    """
    transport = record["spec"].get("transport", "tcp")
    if transport != "udt":
        raise UsageError(
            f"run {record['run_id']} used {transport}: perfmon samples exist only for UDT"
        )
    return perfmon(record, _columns(samples))


def _columns(samples: pa.Table) -> dict[str, Any]:
    """Sample columns as integers; what is not known is -1."""
    return {
        name: samples[name].fill_null(-1).to_numpy().astype(np.int64)
        for name in samples.column_names
        if name != "run_id"
    }


def perfmon_table(runs: pa.Table, samples: pa.Table) -> pa.Table:
    """The tables of all UDT runs among `runs` one below the other, `run_id` in front."""
    whole = {*PLACE, *(field.name for field in FIELDS if field.whole)}
    kinds = {
        name: pa.int64() if name in whole else pa.float64()
        for name in (*PLACE, *(field.name for field in FIELDS))
    }
    schema = pa.schema([("run_id", pa.string()), *kinds.items()])
    tables = [schema.empty_table()]
    for row in runs.select(["run_id", "transport", "record"]).to_pylist():
        if row["transport"] == "udt":
            mine = samples.filter(compute.equal(samples["run_id"], row["run_id"]))
            columns = json_columns(perfmon_of(json.loads(row["record"]), mine))
            rows = len(columns["end"])
            arrays = [pa.array(columns[name], kind) for name, kind in kinds.items()]
            tables.append(
                pa.Table.from_arrays([pa.array([row["run_id"]] * rows), *arrays], schema=schema)
            )
    return pa.concat_tables(tables)
