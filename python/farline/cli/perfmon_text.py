"""The statistics of a UDT run by libudt's names: as lines and tables, and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farline.errors import UsageError
from farline.profiles.perfmon import FIELDS, PLACE, json_columns, perfmon

if TYPE_CHECKING:
    from farline.profiles.perfmon import Floats

Record = Mapping[str, Any]


def perfmon_of(record: Record, samples: pa.Table) -> dict[str, Floats]:
    """The table of one run from its rows of the store.

    Raises:
        UsageError: when the run is no UDT run.
    """
    transport = record["spec"].get("transport", "tcp")
    if transport != "udt":
        raise UsageError(f"run {record['run_id']} went over {transport}: perfmon is UDT's")
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


def print_perfmon(table: Mapping[str, Floats]) -> None:
    """Of each stream at each end: its totals in a line, then a row per interval."""
    console = Console() if sys.stdout.isatty() else Console(width=1000)
    for title, part in _streams(table):
        console.print(Text(title, style="bold"))
        totals = [
            f"{field.name} {_cell(part[field.name][-1], True)}"
            for field in FIELDS
            if field.kind == "total" and _is_known(part[field.name])
        ]
        console.print(Text(", ".join(totals)))
        console.print(_intervals(part))


def _streams(table: Mapping[str, Floats]) -> Iterator[tuple[str, dict[str, Floats]]]:
    """Each stream of each end, with what it is."""
    places = zip(table["end"].tolist(), table["stream"].tolist(), strict=True)
    for end, stream in dict.fromkeys(places):
        rows = (table["end"] == end) & (table["stream"] == stream)
        part = {name: column[rows] for name, column in table.items()}
        does = "receives" if part["role"][0] else "sends"
        yield f"{('client', 'server')[int(end)]}, stream {stream:.0f} {does}", part


def _intervals(part: Mapping[str, Floats]) -> Any:
    shown = [field for field in FIELDS if field.kind != "total" and _is_known(part[field.name])]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for field in shown:
        table.add_column(field.name, justify="right", overflow="fold")
    for index in range(len(part["end"])):
        table.add_row(*(_cell(part[field.name][index], field.whole) for field in shown))
    return table


def _is_known(column: Floats) -> bool:
    return bool((column == column).any())


def _cell(value: float, whole: bool) -> str:
    if value != value:
        return "-"
    return f"{value:.0f}" if whole else f"{value:.3f}"
