"""Estimates beside real copies: the line at a copy's end, and samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import farline
from farline.copying import CopyJob, CopyRequest
from farline.store import Store
from farline.store.paths import path_history
from farline.tools.events import EstimateChecked


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number}").write_bytes(bytes(50_000))
    return folder


def test_a_sample_is_part_of_the_copy_and_is_learnt_from(data: Path, tmp_path: Path) -> None:
    store, target = tmp_path / "store", tmp_path / "target"
    estimate = farline.estimate(data, target, sample_s=1.0, store=store)
    assert (estimate.document["basis"], estimate.document["transfers"]) == ("sample", 1)
    arrived = len(list(target.rglob("*")))
    assert arrived > 0
    again = farline.estimate(data, target, store=store)
    assert again.document["basis"] == "own-path"
    assert again.interval(0.8).duration_high_s < 5 * again.duration_s


def test_a_copy_tells_and_keeps_what_had_been_estimated(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Copies as short as these are not looked back at otherwise.
    monkeypatch.setattr("farline.copying.record_keeper.LIGHT_S", 0.0)
    store, told = tmp_path / "store", []
    for number in range(3):
        request = CopyRequest.between(str(data), str(tmp_path / f"to-{number}"), store_path=store)
        with CopyJob(request) as job:
            told.append([one for one in job if isinstance(one, EstimateChecked)])
        assert job.wait().exit_code == 0
    assert [len(events) for events in told] == [0, 1, 1]
    assert told[2][0].low_s <= told[2][0].estimated_s <= told[2][0].high_s
    kept = [row.estimate for row in path_history(Store(store))]
    assert kept[0] is None
    assert all(one is not None and one["score"] >= 0 for one in kept[1:])
    assert json.dumps(kept[2])
