"""Which measurements are made, and that they go to where they should."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from farline.errors import SystemFailure, UsageError
from farline.storage import files
from farline.storage.job import Ground, StorageJob, StorageRequest, caps_of
from farline.storage.measured import Measured, measured_of, quantile_s
from farline.storage.settings import StorageSetting, StorageWishes, plan_of


def test_the_default_plan_varies_one_thing_at_a_time_and_processes_thrice() -> None:
    plan = plan_of(StorageWishes())
    base = [one for one in plan.settings if one == StorageSetting("read")]
    assert len(base) == 3
    assert {one.processes for one in plan.settings} == {1, 2, 4, 8}
    assert plan.shares and plan.reads
    assert len(set(plan.settings)) == 26


def test_wishes_make_the_full_grid_of_what_was_wished() -> None:
    wishes = StorageWishes(("read",), processes=(1, 3), requests_bytes=(4096, 65536), repeats=2)
    plan = plan_of(wishes)
    assert len(plan.settings) == 8
    assert plan.settings[:4] == plan.settings[4:], "rounds, not repeats in a row"
    assert {one.depth for one in plan.settings} == {4}


def test_more_than_can_be_meant_is_refused() -> None:
    for wishes in (
        StorageWishes(processes=tuple(range(1, 257)), depths=(1, 2, 3)),
        StorageWishes(processes=(100,), threads=(100,)),
        StorageWishes(actions=()),
    ):
        with pytest.raises(UsageError):
            plan_of(wishes)


def test_lanes_of_a_shared_file_never_overlap() -> None:
    ground = Ground((), 0, Path("f"), 1000 << 10)
    setting = StorageSetting("read", processes=3, request_bytes=64 << 10, layout="shared")
    lanes = ground.lanes(setting)
    ends = [lane["offset_bytes"] + lane["span_bytes"] for lane in lanes]
    assert [lane["offset_bytes"] for lane in lanes] == [0, *ends[:-1]]
    assert ends[-1] <= 1000 << 10
    gaps = ground.lanes(StorageSetting("read", 3, 1, 64 << 10, layout="shared", access="strided"))
    first = [lane["offset_bytes"] // (64 << 10) for lane in gaps]
    assert (first, {lane["step_bytes"] for lane in gaps}) == ([0, 1, 2], {3 * (64 << 10)})


def test_requests_that_direct_io_refuses_and_times_too_short_are_named(tmp_path: Path) -> None:
    odd = StorageRequest(tmp_path, wishes=StorageWishes(requests_bytes=(1000,)))
    with pytest.raises(UsageError, match="multiples of 4096"):
        StorageJob(odd)
    with pytest.raises(UsageError, match="42 measurements need 22 s or more"):
        StorageJob(StorageRequest(tmp_path, budget_s=2.0))
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_for_reading_alone(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 8192)
    with pytest.raises(UsageError, match="only reads"):
        StorageJob(StorageRequest(path, reads_file=True))
    with pytest.raises(UsageError, match="not a regular file"):
        StorageJob(StorageRequest(tmp_path, reads_file=True, wishes=StorageWishes(("read",))))
    with pytest.raises(UsageError, match="not a folder"):
        StorageJob(StorageRequest(path)).wait().checked()
    small = StorageRequest(path, reads_file=True, wishes=StorageWishes(("read",)))
    with pytest.raises(UsageError, match=r"has 8\.00 KiB; 8 threads"):
        StorageJob(small)
    assert path.read_bytes() == b"x" * 8192


def test_the_folder_goes_whatever_happens_and_strangers_files_stay(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), files.work_folder(tmp_path) as folder:
        folder.make(folder.lane(0))
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SystemFailure), files.work_folder(tmp_path) as folder:
        (folder.path / "a stranger's").write_text("x")
    assert [path.name for path in folder.path.iterdir()] == ["a stranger's"]


def test_what_a_killed_measurement_left_goes_with_the_next_and_a_live_one_stays(
    tmp_path: Path,
) -> None:
    dead = tmp_path / f"{files.PREFIX}0123456789ab"
    dead.mkdir()
    (dead / "owner").write_text("")
    (dead / "lane-0000").write_bytes(b"x")
    (tmp_path / f"{files.PREFIX}notours").mkdir()
    young = tmp_path / f"{files.PREFIX}ba9876543210"
    young.mkdir()
    with files.work_folder(tmp_path) as first:
        assert not dead.exists()
        with files.work_folder(tmp_path):
            assert first.path.exists()
    assert {path.name for path in tmp_path.iterdir()} == {f"{files.PREFIX}notours", young.name}


def test_a_full_file_system_is_not_filled(tmp_path: Path) -> None:
    with pytest.raises(SystemFailure, match="state a smaller --size"):
        files.check_room(tmp_path, 1 << 60)


def answer(began: int, ended: int, moved: int, cached: int | None = 0) -> dict[str, object]:
    report = {
        "bytes": moved, "requests": 2, "began_ns": began, "ended_ns": ended, "sync_ns": 5,
        "span_bytes": 100, "latency_counts": [0, 2, 0], "latency_max_ns": 1500,
    }  # fmt: skip
    if cached is not None:
        report |= {"cached_bytes": cached, "cached_before_bytes": 100}
    return {"report": report, "cpu_s": 0.5, "device_bytes": moved}


def test_processes_count_together_from_the_first_begin_to_the_last_end() -> None:
    now = time.monotonic_ns()
    found = measured_of(
        StorageSetting("read"),
        [answer(now, now + 10**9, 500, 50), answer(now + 10**8, now + 2 * 10**9, 1500)],
        now,
    )
    assert (found.rate_bps, found.seconds, found.requests) == (8000.0, 2.0, 4)
    assert (found.cached, found.cached_before, found.device) == (0.25, 1.0, 1.0)
    assert found.late_s == pytest.approx(0.1)
    unknown = measured_of(StorageSetting("read"), [answer(0, 10, 1, None)], 0)
    assert unknown.cached is None


def test_a_quantile_lies_in_the_place_that_holds_it() -> None:
    counts = [0] * 128
    counts[40], counts[80] = 98, 2
    assert 2**10 * 1e-6 <= quantile_s(counts, 0.5) <= 2**10.25 * 1e-6
    assert 2**20 * 1e-6 <= quantile_s(counts, 0.99) <= 2**20.25 * 1e-6
    assert quantile_s([0, 0], 0.5) == 0.0


def test_caps_come_from_settings_that_differ_in_processes_alone() -> None:
    def one(processes: int, rate: int, request: int = 4 << 20) -> Measured:
        setting = StorageSetting("write", processes=processes, request_bytes=request)
        return measured_of(setting, [answer(0, 10**9, rate)], 0)

    of_base = [one(1, 100), one(2, 200), one(4, 300), one(8, 300)]
    found = caps_of([*of_base, one(1, 999, 4096)], "write")
    assert found is not None and found.total is not None
    assert found.total.rate_bps == pytest.approx(2400, rel=0.01)
    assert caps_of([], "read") is None
