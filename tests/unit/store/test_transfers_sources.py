"""Rows of any origin are one table: our own runs, and Parquet files by other people."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farline.errors import SpecError
from farline.spec.transfers import TRANSFER_COLUMNS
from farline.store import RunFilter, Store
from farline.store.entry import RunBundle
from farline.store.transfers import ParquetFiles, open_transfers, transfer_schema
from farline.store.transfers.rows import checked_table
from tests.support.kept_copies import make_copy_record, make_copy_spec, make_report, make_tally
from tests.support.records import make_record, make_samples, make_spec
from tests.support.transfers import transfers_table


def rows_of(**origin: Any) -> list[dict[str, Any]]:
    with open_transfers(**origin) as opened:
        table = opened.rows()
        assert list(table.column_names[: len(TRANSFER_COLUMNS)]) == list(TRANSFER_COLUMNS)
        found: list[dict[str, Any]] = table.to_pylist()
    return found


def test_a_run_is_a_row_with_what_it_was_and_came_to(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tcp = {"congestion_control": "bbr", "send_buffer_bytes": 4096, "receive_buffer_bytes": 1024}
    store.append(RunBundle(make_record(7, make_spec(streams=4, tcp=tcp)), make_samples(1)))
    (row,) = rows_of(store=store, runs=RunFilter())
    known = {name: value for name, value in row.items() if value is not None}
    assert known == {
        "tool": "farline", "modality": "T", "duration_s": 1.0, "bytes": 125_000_000,
        "started_at": datetime.datetime(2026, 11, 21, 20, 0, 7, tzinfo=datetime.UTC),
        "rate_bps": 1e9, "complete": True, "code": "complete", "from_host": "alpha",
        "to_host": "beta", "rtt_ms": 0.08, "streams": 4, "buffer_bytes": 1024,
        "block_bytes": 131_072, "congestion_control": "bbr", "transport": "tcp",
        "retransmits": 3, "source": "farline's own runs",
    }  # fmt: skip


def test_each_direction_is_a_row_from_its_sender(tmp_path: Path) -> None:
    store = Store(tmp_path)
    record = make_record(1, make_spec(direction="bidirectional"))
    record["summary"]["reverse"] = {**record["summary"]["forward"], "total_bps": 5e8}
    store.append(RunBundle(record, {}))
    record = make_record(2, make_spec(direction="reverse"))
    record["summary"]["reverse"] = record["summary"]["forward"] | {"total_bps": 3e8}
    record["summary"]["forward"] = None
    store.append(RunBundle(record, {}))
    rows = rows_of(store=store, runs=RunFilter())
    found = {(row["from_host"], row["to_host"], row["rate_bps"]) for row in rows}
    assert found == {("alpha", "beta", 1e9), ("beta", "alpha", 5e8), ("beta", "alpha", 3e8)}
    assert sorted(str(row["retransmits"]) for row in rows) == ["3", "None", "None"]


def copies(store: Store) -> None:
    """A copy, the same copy when all was there, and a dry run."""
    store.append(RunBundle(make_copy_record(1), {}))
    present = make_copy_record(2, copied=make_tally(), present=make_tally(10, 10**9))
    present["summary"]["forward"].update(bytes=0, total_bps=0.0)
    store.append(RunBundle(present, {}))
    dry = make_copy_record(3)
    dry["spec"]["copy"]["dry_run"] = True
    dry["summary"]["forward"].update(bytes=0, total_bps=0.0)
    store.append(RunBundle(dry, {}))


def test_a_copy_with_nothing_to_move_and_a_dry_run_are_no_transfers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    copies(store)
    rows = rows_of(store=store, runs=RunFilter())
    assert [(row["modality"], row["complete"]) for row in rows] == [("E", True)]


def test_a_copy_that_broke_off_before_a_byte_is_a_failure_all_the_same(tmp_path: Path) -> None:
    store = Store(tmp_path)
    record = make_copy_record(1, copied=make_tally())
    record["status"] = "failed"
    record["summary"]["forward"].update(bytes=0, total_bps=0.0)
    store.append(RunBundle(record, {}))
    assert [row["complete"] for row in rows_of(store=store, runs=RunFilter())] == [False]


def test_the_congestion_control_is_the_one_that_was_granted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    record = make_record(1, make_spec(tcp={"congestion_control": "bbr"}))
    record["streams"] = [
        {"stream": 0, "end": role, "role": role, "granted": {"congestion_control": name}}
        for role, name in enumerate(("cubic", "reno"))
    ]
    store.append(RunBundle(record, {}))
    (row,) = rows_of(store=store, runs=RunFilter())
    assert row["congestion_control"] == "cubic"


def test_what_failed_or_is_not_valid_is_a_row_but_no_rate(tmp_path: Path) -> None:
    store = Store(tmp_path)
    failure = {"kind": "busy", "message": "no room"}
    failed = make_record(1, status="failed", error=failure)
    failed["server"] = None
    store.append(RunBundle(failed, {}))
    store.append(RunBundle(make_record(2, status="partial"), {}))
    over_path = make_record(3)
    over_path["path"] = {
        "testbed": "t", "client_host": "anl", "server_host": "cern", "rtt_s": 0.0226,
        "rate_bps": None, "topology": None, "stamp": {"valid": False},
    }  # fmt: skip
    store.append(RunBundle(over_path, {}))
    rows = {row["code"]: row for row in rows_of(store=store, runs=RunFilter())}
    assert set(rows) == {"busy", "partial", "not valid"}
    assert not any(row["complete"] for row in rows.values())
    assert (rows["busy"]["rate_bps"], rows["busy"]["to_host"]) == (None, "192.0.2.7")
    emulated = rows["not valid"]
    assert (emulated["from_host"], emulated["to_host"]) == ("anl", "cern")
    assert emulated["rtt_ms"] == 22.6


def test_a_run_with_a_file_is_a_file_transfer(tmp_path: Path) -> None:
    store = Store(tmp_path)
    spec = make_spec(transport="rbudp", rbudp={"file": "/data/x"})
    store.append(RunBundle(make_record(1, spec), {}))
    store.append(RunBundle(make_record(2, make_spec(transport="rbudp", rbudp={"file": None})), {}))
    rows = rows_of(store=store, runs=RunFilter())
    assert sorted(row["modality"] for row in rows) == ["E", "T"]


def test_a_copy_is_a_file_transfer_unless_both_ends_had_no_disk(tmp_path: Path) -> None:
    store = Store(tmp_path)
    engines = [{}, {"read_engine": "null"}, {"read_engine": "null", "write_engine": "memory"}]
    for number, copy in enumerate(engines):
        spec = make_copy_spec(
            copy={**copy, "concurrency": 4, "pipeline": 9, "chunk_bytes": 1 << 20}
        )
        store.append(RunBundle({**make_record(number, spec), "copy": make_report()}, {}))
    rows = rows_of(store=store, runs=RunFilter())
    assert sorted(row["modality"] for row in rows) == ["E", "E", "T"]
    names = ("files", "concurrency", "pipelining", "block_bytes")
    assert {tuple(row[name] for name in names) for row in rows} == {(10, 4, 9, 1 << 20)}


def test_runs_and_logs_are_there_only_if_asked_for(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.append(RunBundle(make_record(1), {}, campaign="night"))
    store.append(RunBundle(make_record(2), {}))
    log = tmp_path / "x.log"
    log.write_text("x")
    store.append_transfers([transfers_table([{"rate_bps": 2e9}])], log, reader="x 1")
    both = rows_of(store=store, runs=RunFilter(campaign="night"))
    assert sorted(row["rate_bps"] for row in both) == [1e9, 2e9]
    assert [row["rate_bps"] for row in rows_of(store=store)] == [2e9]
    assert len(rows_of(store=store, runs=RunFilter(), logs=False)) == 2


def write(path: Path, columns: dict[str, Any]) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


def test_parquet_by_others_needs_a_modality_and_a_rate_and_gets_the_rest(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.parquet",
        {
            "throughput": [100.0, None],
            "streams": [4.0, float("nan")],
            "rtt_ms": pa.array([10, 20], pa.int16()),
            "started_at": pa.array([0, 1], pa.timestamp("ns")),
            "unrelated": ["a", "b"],
        },
    )
    source = ParquetFiles(
        path, {"rate_bps": "throughput"}, {"rate_bps": 1e6}, {"modality": "T", "tool": "mine"}
    )
    rows = sorted(rows_of(files=[source]), key=lambda row: float(row["rtt_ms"]))
    assert [row["rate_bps"] for row in rows] == [1e8, None]
    assert [row["complete"] for row in rows] == [True, False]
    assert [row["streams"] for row in rows] == [4, None]
    assert {(row["tool"], row["modality"], row["source"]) for row in rows} == {("mine", "T", path)}
    assert rows[0]["started_at"] == datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def test_a_rate_is_found_from_bytes_and_seconds(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.parquet",
        {"bytes": [1000, 1000, None], "duration_s": [2, 0, 1], "modality": ["E", "E", "E"]},
    )
    rows = rows_of(files=[path])
    assert sorted(str(row["rate_bps"]) for row in rows) == ["4000.0", "None", "None"]
    assert sorted(row["complete"] for row in rows) == [False, False, True]


def test_a_rate_that_one_row_lacks_is_found_from_its_bytes_but_not_of_what_failed(
    tmp_path: Path,
) -> None:
    columns = {
        "rate_bps": [7.0, None, None], "bytes": [1000] * 3, "duration_s": [2.0] * 3,
        "modality": ["E"] * 3,
    }  # fmt: skip
    path = write(tmp_path / "a.parquet", columns)
    rows = rows_of(files=[path])
    assert sorted(row["rate_bps"] for row in rows) == [7.0, 4000.0, 4000.0]
    assert all(row["complete"] for row in rows)
    path = write(tmp_path / "b.parquet", {**columns, "complete": [True, True, False]})
    rows = rows_of(files=[path])
    assert [row["rate_bps"] for row in rows if not row["complete"]] == [None]
    assert sorted(row["rate_bps"] for row in rows if row["complete"]) == [7.0, 4000.0]


def test_a_default_fills_what_is_empty_and_a_value_is_for_all(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.parquet", {"rate_bps": [1.0, 2.0], "rtt_ms": [5.0, None], "streams": [1, 2]}
    )
    defaults = {"rtt_ms": 45.0, "streams": 9, "modality": "E", "parallelism": 3}
    source = ParquetFiles(path, values={"streams": 4}, defaults=defaults)
    rows = sorted(rows_of(files=[source]), key=lambda row: float(row["rate_bps"]))
    assert [row["rtt_ms"] for row in rows] == [5.0, 45.0]
    assert {(row["streams"], row["parallelism"], row["modality"]) for row in rows} == {(4, 3, "E")}


@pytest.mark.parametrize("wrong", ["memory", None])
def test_a_modality_that_is_none_is_refused_not_lost(tmp_path: Path, wrong: str | None) -> None:
    path = write(tmp_path / "a.parquet", {"rate_bps": [1.0, 2.0], "modality": ["T", wrong]})
    with pytest.raises(SpecError, match=f"modality {wrong!r} is not one of T, E, H, F"):
        rows_of(files=[path])
    if wrong is None:
        rows = rows_of(files=[ParquetFiles(path, defaults={"modality": "E"})])
        assert sorted(row["modality"] for row in rows) == ["E", "T"]
    rows = rows_of(files=[ParquetFiles(path, values={"modality": "E"})])
    assert [row["modality"] for row in rows] == ["E", "E"]


def test_files_of_a_pattern_may_have_different_columns(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"rate_bps": [1e9], "modality": ["T"]})
    write(tmp_path / "b.parquet", {"rate_bps": [2e9], "modality": ["T"], "tool": ["iperf3"]})
    rows = rows_of(files=[str(tmp_path / "*.parquet")])
    assert sorted((row["rate_bps"], row["tool"]) for row in rows if row["tool"]) == [
        (2e9, "iperf3")
    ]
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (
            {"rate_bps": ["fast"]},
            {},
            "column 'rate_bps' is string, but rate_bps must be any number",
        ),
        ({"rate_bps": [1.0], "tool": [1]}, {}, "column 'tool' is int64, but tool must be text"),
        ({"rate_bps": [1.0], "complete": [1]}, {}, "complete must be boolean"),
        ({"rate_bps": [1.0], "started_at": [1]}, {}, "started_at must be timestamp"),
        ({"bytes": [1]}, {}, "no column rate_bps, nor bytes and duration_s"),
        (
            {"rate_bps": [1.0]},
            {"columns": {"tool": "program"}},
            "tool is mapped to 'program', but there is no such column; available: rate_bps",
        ),
        ({"rate_bps": [1.0]}, {"values": {"streams": "x"}}, "streams: 'x' is not of type int32"),
        ({"rate_bps": [1.0]}, {"values": {"modality": "Q"}}, "modality 'Q' is not one of T, E"),
    ],
)
def test_what_does_not_fit_is_refused_by_column_and_type(
    tmp_path: Path, columns: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    path = write(tmp_path / "a.parquet", columns)
    values = {"modality": "T"} | options.pop("values", {})
    with (
        pytest.raises(SpecError, match=words) as caught,
        open_transfers(files=[ParquetFiles(path, values=values, **options)]),
    ):
        pass
    assert "\n" not in caught.value.message and "a.parquet" in caught.value.message


def test_files_without_a_modality_or_not_there_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"rate_bps": [1.0]})
    junk = tmp_path / "junk.parquet"
    junk.write_bytes(b"junk")
    for source, words in (
        (path, "no column modality"),
        (str(junk), "junk.parquet: duckdb cannot read it"),
        (str(tmp_path / "absent*.parquet"), "duckdb cannot read it"),
    ):
        with pytest.raises(SpecError, match=words), open_transfers(files=[source]):
            pass


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": {"speed": "x"}}, "column 'speed'"),
        ({"columns": {"tool": "x"}, "values": {"tool": "y"}}, "tool has both a column and a value"),
        ({"scales": {"tool": 2.0}}, "tool is not a number"),
    ],
)
def test_a_mapping_that_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        ParquetFiles("x.parquet", **options)


def test_tables_in_memory_have_the_columns_of_a_transfer() -> None:
    table = transfers_table([{"rate_bps": 1e9}])
    assert checked_table(table.select(list(reversed(table.column_names)))) == table
    assert table.schema == transfer_schema()
    with (
        pytest.raises(SpecError, match="too many"),
        open_transfers(tables=[table.select(["tool"])]),
    ):
        pass
