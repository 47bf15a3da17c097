"""Samples of links stand beside the runs they belong to, whatever happens to the files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from farline.errors import SpecError
from farline.spec._types import LINK_SAMPLE_COLUMNS
from farline.store import Store
from farline.store.disk import STALE_TEMP_S
from farline.store.entry import RunBundle
from farline.store.filters import RunFilter, read_where
from tests.support.paths import make_link_samples, make_path
from tests.support.records import make_record, make_samples


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


def over_path(store: Store, number: int, rows: int = 3, **path: object) -> str:
    record = {**make_record(number), "path": make_path(**path)}  # type: ignore[arg-type]
    return store.append(RunBundle(record, make_samples(2), links=make_link_samples(rows)))


def test_links_read_the_same_before_and_after_a_merge(store: Store) -> None:
    ids = [over_path(store, number) for number in range(3)]
    plain = store.append(RunBundle(make_record(9), make_samples(2)))
    before = store.link_samples([*ids, plain])
    assert before.column_names == ["run_id", *LINK_SAMPLE_COLUMNS]
    assert before.num_rows == 18
    store.compact(everything=True)
    assert store.link_samples([*ids, plain]).to_pylist() == before.to_pylist()
    assert list(store.layout.fresh_links.iterdir()) == []
    assert store.link_samples([plain]).num_rows == 0


def test_merging_segments_keeps_all_links(store: Store) -> None:
    first = [over_path(store, number) for number in range(2)]
    store.compact()
    later = [over_path(store, number) for number in range(2, 4)]
    store.compact(everything=True)
    assert len(list(store.layout.links.iterdir())) == 1
    assert store.link_samples([*first, *later]).num_rows == 24


def test_a_store_without_links_has_no_file_of_them(store: Store) -> None:
    for number in range(2):
        store.append(RunBundle(make_record(number), make_samples(2)))
    store.compact()
    assert list(store.layout.links.iterdir()) == []
    assert store.link_samples([make_record(0)["run_id"]]).num_rows == 0


def test_links_without_their_run_are_removed_once_old(store: Store) -> None:
    """A writer was killed between its two files; a living one must not lose its first."""
    over_path(store, 1)
    (links,) = store.layout.fresh_links.iterdir()
    (store.layout.fresh / links.name).unlink()
    store.compact()
    assert links.exists()
    long_ago = time.time() - STALE_TEMP_S - 1
    os.utime(links, (long_ago, long_ago))
    assert store.compact().removed_files == 1
    assert not links.exists()


def test_an_old_store_takes_links_too(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for folder in (store.layout.fresh_links, store.layout.links):
        folder.rmdir()
    old = Store(tmp_path, create=False)
    run_id = over_path(old, 1)
    over_path(old, 2)
    old.compact()
    assert old.link_samples([run_id]).num_rows == 6


def test_a_run_says_whether_its_path_held(store: Store) -> None:
    over_path(store, 1)
    over_path(store, 2, reasons=("packets came 2 ms late",), loss=1e-3)
    store.append(RunBundle(make_record(3), make_samples(1)))
    rows = store.runs(RunFilter()).to_pylist()
    assert [row["valid"] for row in rows] == [True, False, None]
    assert [row["path.rtt_s"] for row in rows] == [0.0118, 0.0118, None]
    assert [row["path.loss"] for row in rows] == [None, 1e-3, None]
    assert rows[0]["path.rate_bps"] == 10**9
    assert rows[0]["path.server_host"] == "b"


def test_figures_of_a_run_are_those_of_the_link_that_was_varied(store: Store) -> None:
    path = make_path(loss=0.5)
    topology = path["topology"]
    queue = {"discipline": "drop-tail", "ecn": False, "capacity_bdp": 0.25}
    varied = {**topology["links"][0], "name": "far"}
    varied["forward"] = {**varied["forward"], "loss": {"random": 0.125}, "queue": queue}
    topology = {**topology, "links": [*topology["links"], varied], "main_link": "far"}
    store.append(
        RunBundle({**make_record(1), "path": {**path, "topology": topology}}, make_samples(1))
    )
    (row,) = store.runs().to_pylist()
    assert (row["path.loss"], row["path.capacity_bdp"]) == (0.125, 0.25)
    assert row["path.capacity_bytes"] is None


def test_runs_are_found_by_their_path(store: Store) -> None:
    over_path(store, 1, rtt_s=0.0118)
    over_path(store, 2, rtt_s=0.366)
    store.append(RunBundle(make_record(3), {}))
    found = store.runs(RunFilter(where=read_where(["path.rtt_s=11.8ms,45.6ms"])))
    assert found["path.rtt_s"].to_pylist() == [0.0118]
    assert store.runs(RunFilter(where=read_where(["path.rtt_s=none"]))).num_rows == 1
    with pytest.raises(SpecError, match="is not an option"):
        read_where(["path.moon=1"])
