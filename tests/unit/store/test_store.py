"""What a user of the store can rely on: what goes in comes out, and can be found."""

from __future__ import annotations

import datetime
import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farline.errors import SpecError, SystemFailure, UsageError
from farline.store import RunFilter, Store, default_path
from farline.store.columns import run_columns
from farline.store.entry import RunBundle
from farline.store.filters import read_since, read_where
from tests.support.records import make_record, make_samples, make_spec


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def fill(store: Store) -> None:
    specs = [
        make_spec(streams=1, tcp={"congestion_control": "reno"}),
        make_spec(streams=4, tcp={"congestion_control": "bbr", "mss_bytes": 1400}),
        make_spec(transport="udp", udp={"gso": False}, client_cpus=[0, 1]),
    ]
    for number, spec in enumerate(specs):
        campaign = "night" if number < 2 else None
        store.append(RunBundle(make_record(number, spec), make_samples(2), campaign=campaign))
    failure = {"kind": "busy", "message": "no room"}
    store.append(RunBundle(make_record(3, status="failed", error=failure), {}))


def names(store: Store, **wanted: Any) -> list[int]:
    return [int(run_id[4:]) for run_id in store.runs(RunFilter(**wanted))["run_id"].to_pylist()]


def test_a_run_comes_back_whole(store: Store) -> None:
    record = make_record(1, make_spec(seed=2**53 - 1))
    labels = {"setting": "abc", "block": 2, "slot": 0, "attempt": 1, "reference": True, "x": [1]}
    store.append(RunBundle(record, make_samples(3), campaign="night", labels=labels))
    (row,) = store.runs().to_pylist()
    assert json.loads(row["record"]) == record
    assert json.loads(row["labels"]) == labels
    assert (row["campaign"], row["setting"], row["block"]) == ("night", "abc", 2)
    assert (row["reference"], row["seed"]) == (True, 2**53 - 1)
    assert (row["client_host"], row["server_host"]) == ("alpha", "beta")
    assert row["total_bps"] == 1e9 and row["verdict_limit"] == "sender-cpu"


def test_every_column_is_there_before_and_after_merging(store: Store) -> None:
    fill(store)
    before = store.runs()
    store.compact()
    after = store.runs()
    assert before.column_names == after.column_names == list(run_columns())
    assert before.to_pylist() == after.to_pylist()


def test_unknown_samples_are_null_and_late_datagrams_are_not(store: Store) -> None:
    columns = make_samples(1)
    columns["lost_packets"] = np.array([-1, -1])
    columns["packets"] = np.array([10, -1])
    run_id = store.append(RunBundle(make_record(1), columns))
    samples = store.samples([run_id])
    assert samples["rtt_us"].to_pylist() == [120, None]
    assert samples["lost_packets"].to_pylist() == [-1, None]
    assert samples["packets"].to_pylist() == [10, None]


def test_samples_of_some_runs_only_before_and_after_merging(store: Store) -> None:
    run_ids = [store.append(RunBundle(make_record(number), make_samples(4))) for number in range(3)]
    fresh = store.samples(run_ids[:2])
    store.compact()
    store.append(RunBundle(make_record(9), make_samples(4)))
    merged = store.samples(run_ids[:2])
    assert fresh.to_pylist() == merged.to_pylist()
    assert set(merged["run_id"].to_pylist()) == set(run_ids[:2])
    assert store.samples([]).num_rows == 0


def test_filters(store: Store) -> None:
    fill(store)
    assert names(store) == [0, 1, 2, 3]
    assert names(store, campaign="night") == [0, 1]
    assert names(store, transport="udp") == [2]
    assert names(store, status="failed") == [3]
    assert names(store, since="2026-11-21T20:00:02.000000Z") == [2, 3]
    assert names(store, where=read_where(["streams=4"])) == [1]
    assert names(store, where=read_where(["streams=1,4", "tcp.mss_bytes=none"])) == [0, 2, 3]
    assert names(store, where=read_where(["block_bytes=128K"])) == [0, 1, 2, 3]
    assert names(store, where=read_where(["client_cpus=0,1"])) == [2]
    assert names(store, where=read_where(["udp.gso=off"])) == [2]
    assert names(store, where=read_where(["duration_s=1"])) == [0, 1, 2, 3]


def test_the_newest_runs_within_a_limit_come_oldest_first(store: Store) -> None:
    fill(store)
    assert [int(r[4:]) for r in store.runs(limit=2)["run_id"].to_pylist()] == [2, 3]


def test_the_largest_seed_is_kept_exactly(store: Store) -> None:
    for number in range(2):
        store.append(RunBundle(make_record(number, make_spec(seed=2**64 - 1)), {}))
    assert store.runs()["seed"].to_pylist() == [2**64 - 1] * 2
    store.compact()
    assert names(store, where=read_where([f"seed={2**64 - 1}"])) == [0, 1]


def test_a_failed_run_is_a_failure_not_a_zero(store: Store) -> None:
    fill(store)
    (row,) = store.runs(RunFilter(status="failed")).to_pylist()
    assert row["total_bps"] is None
    assert (row["error_kind"], row["error"]) == ("busy", "no room")


def test_sums_over_both_directions_and_unknown_parts(store: Store) -> None:
    record = make_record(1, make_spec(direction="bidirectional"))
    record["summary"]["reverse"] = {**record["summary"]["forward"], "steady_bps": None}
    store.append(RunBundle(record, {}))
    (row,) = store.runs().to_pylist()
    assert row["total_bps"] == 2e9
    assert row["steady_bps"] is None


def test_finding_by_beginning_and_the_newest(store: Store) -> None:
    assert store.find(None) == []
    fill(store)
    assert store.find(None)[0]["run_id"] == make_record(3)["run_id"]
    assert len(store.find("01JD")) == 4
    assert [row["run_id"] for row in store.find(make_record(2)["run_id"])] == [
        make_record(2)["run_id"]
    ]


def test_campaigns_are_counted(store: Store) -> None:
    fill(store)
    (row,) = store.campaigns().to_pylist()
    assert (row["campaign"], row["runs"], row["complete"], row["failed"]) == ("night", 2, 2, 0)


def test_an_empty_store_answers(store: Store) -> None:
    assert store.runs().num_rows == 0
    assert store.samples(["x"]).num_rows == 0
    assert store.campaigns().num_rows == 0


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", "x" * 65, None, 7])
def test_names_that_are_no_file_names_are_refused(store: Store, run_id: object) -> None:
    with pytest.raises(SpecError, match="run_id"):
        store.append(RunBundle({**make_record(1), "run_id": run_id}, {}))


def test_a_run_is_not_written_twice(store: Store) -> None:
    store.append(RunBundle(make_record(1), {}))
    with pytest.raises(SpecError, match="already in the store"):
        store.append(RunBundle(make_record(1), {}))


def test_columns_of_different_lengths_are_refused(store: Store) -> None:
    columns = {"end": np.zeros(2, np.int64), "bytes": np.zeros(3, np.int64)}
    with pytest.raises(SpecError, match="different lengths"):
        store.append(RunBundle(make_record(1), columns))
    assert store.runs().num_rows == 0


def test_a_full_disk_is_one_line_and_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("farline.store.disk.os.fsync", full)
        with pytest.raises(SystemFailure, match="No space left on device"):
            store.append(RunBundle(make_record(1), make_samples(1)))
    assert list(store.layout.temp.iterdir()) == []
    assert store.runs().num_rows == 0


def test_reading_needs_a_store(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no store here"):
        Store(tmp_path / "nothing", create=False)
    assert not (tmp_path / "nothing").exists()


def test_where_the_store_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARLINE_STORE", "/a/b")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_path() == Path("/a/b")
    monkeypatch.delenv("FARLINE_STORE")
    assert default_path() == Path("/data/farline/store")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_path() == Path.home() / ".local/share/farline/store"


@pytest.mark.parametrize(
    ("text", "named"),
    [("streams", "OPTION=VALUE"), ("strems=4", "strems"), ("streams=0", "1 to 256")],
)
def test_filters_that_cannot_be_read_say_what_is_allowed(text: str, named: str) -> None:
    with pytest.raises(SpecError, match=named):
        read_where([text])


def test_since_reads_ages_dates_and_times() -> None:
    now = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)
    assert read_since("2h", now) == "2026-11-21T10:00:00.000000Z"
    assert read_since("7d", now) == "2026-11-14T12:00:00.000000Z"
    assert read_since("2026-11-20T01:00:00+01:00") == "2026-11-20T00:00:00.000000Z"
    assert read_since("2026-11-20").startswith("2026-11-")
    with pytest.raises(SpecError, match="an age"):
        read_since("yesterday")


def test_a_glance_says_whether_asking_can_find_anything(store: Store) -> None:
    asked = ("tcp.congestion_control", "bbr")
    assert not store.may_hold(*asked)
    fill(store)
    for _ in range(2):
        assert store.may_hold(*asked)
        assert not store.may_hold("tcp.congestion_control", "htcp")
        store.compact()
