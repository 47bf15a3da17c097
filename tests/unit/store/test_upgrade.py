"""Stores of every older version are read; what a newer one wrote is named in one line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farline.errors import VersionError
from farline.spec._types import SAMPLE_COLUMNS
from farline.store import Store, left_out
from farline.store.columns import run_columns
from farline.store.entry import RunBundle
from farline.store.upgrade import FORMAT_VERSION
from tests.support.records import make_record, make_samples

DATA = Path(__file__).parents[2] / "data" / "store"
VERSIONS = [f"v{version}" for version in range(FORMAT_VERSION + 1)]


@pytest.fixture
def old_store(tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    """A copy of a committed store."""
    shutil.copytree(DATA / request.param, tmp_path / "store")
    return Store(tmp_path / "store")


def test_every_version_has_a_committed_store() -> None:
    assert sorted(path.name for path in DATA.iterdir() if path.is_dir()) == VERSIONS


@pytest.mark.parametrize("old_store", VERSIONS, indirect=True)
@pytest.mark.parametrize("merged", [False, True])
def test_an_older_store_reads_as_a_present_one(old_store: Store, merged: bool) -> None:
    if merged:
        old_store.compact(everything=True)
    runs = old_store.runs()
    assert runs.column_names == list(run_columns())
    assert runs["streams"].to_pylist() == [1, 2, 4]
    assert runs["status"].to_pylist() == ["complete"] * 3
    assert runs["campaign"].to_pylist() == ["old"] * 3
    assert runs["setting"].to_pylist() == ["s1", "s2", "s4"]
    assert runs["tcp.congestion_control"].to_pylist() == ["reno"] * 3
    records = [json.loads(text) for text in runs["record"].to_pylist()]
    assert [record["schema"] for record in records] == [1, 1, 1]
    assert all(record["server_notes"] == [] for record in records)
    samples = old_store.samples(runs["run_id"].to_pylist())
    assert samples.num_rows == 18
    assert samples["rtt_us"].drop_null().to_pylist() == [120, 121, 122] * 3
    assert "srtt_us" not in samples.column_names
    assert [name for name in samples.column_names if name != "run_id"] == list(SAMPLE_COLUMNS)
    assert samples["flight_packets"].null_count == 18
    assert runs["udt.flow_window_packets"].to_pylist() == [None] * 3


@pytest.mark.parametrize("old_store", VERSIONS, indirect=True)
def test_new_runs_stand_beside_old_ones(old_store: Store) -> None:
    old_store.append(RunBundle(make_record(77), make_samples(3), campaign="old"))
    assert old_store.runs().num_rows == 4
    assert old_store.samples([make_record(77)["run_id"]]).num_rows == 6
    old_store.compact()
    assert old_store.runs().num_rows == 4


def test_a_merge_writes_the_present_version(tmp_path: Path) -> None:
    shutil.copytree(DATA / "v0", tmp_path / "store")
    store = Store(tmp_path / "store")
    store.compact(everything=True)
    for folder in (store.layout.runs, store.layout.samples):
        (path,) = folder.iterdir()
        metadata = pq.read_metadata(path).metadata
        assert metadata[b"farline.format"] == str(FORMAT_VERSION).encode()


def test_columns_added_later_are_filled_from_the_record(tmp_path: Path) -> None:
    """A segment written before `streams` was a column: flattened anew when it is merged."""
    store = Store(tmp_path)
    store.append(RunBundle(make_record(0), {}))
    store.append(RunBundle(make_record(1), {}))
    store.compact()
    (path,) = store.layout.runs.iterdir()
    table = pq.read_table(path).drop_columns(["streams"])
    metadata = pq.read_metadata(path).metadata
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        kept = {k: v for k, v in metadata.items() if k.startswith(b"farline")}
        writer.add_key_value_metadata(kept)
    assert store.runs()["streams"].to_pylist() == [None, None]
    store.append(RunBundle(make_record(2), {}))
    store.compact(everything=True)
    assert store.runs()["streams"].to_pylist() == [1, 1, 1]


@pytest.mark.parametrize("folder", ["fresh", "runs"])
def test_a_newer_version_is_named_in_one_line_and_nothing_is_merged_over_it(
    tmp_path: Path, folder: str
) -> None:
    store = Store(tmp_path)
    store.append(RunBundle(make_record(0), {}))
    path = store.path / folder / "newer.parquet"
    with pq.ParquetWriter(path, pa.schema([("run_id", pa.string())])) as writer:
        writer.add_key_value_metadata({"farline.format": str(FORMAT_VERSION + 1)})
    newer = rf"format {FORMAT_VERSION + 1} is newer .* use a newer version"
    content = path.read_bytes()
    left_out.forget()
    assert store.runs().num_rows == 1
    (line,) = left_out.noted()
    assert re.search(newer, line) and "\n" not in line
    with pytest.raises(VersionError, match=newer):
        store.compact()
    assert path.read_bytes() == content
