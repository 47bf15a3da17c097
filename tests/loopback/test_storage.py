"""`farline storage` on this machine's own files: what it measures, and what it leaves behind."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from farline.errors import FarlineError, SystemFailure
from farline.storage.files import PREFIX, work_folder
from farline.storage.job import StorageJob, StorageRequest
from farline.storage.settings import StorageWishes
from farline.storage.workers import Worker
from farline.store import Store
from farline.store.file_systems import all_profiles

SMALL = ("--budget", "4s", "--size", "16M", "--processes", "1,2", "--request", "256K",
         "--depth", "1")  # fmt: skip


def farline(*words: str, store: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "farline", "storage", *words], capture_output=True, text=True,
        timeout=100, env={**os.environ, "FARLINE_STORE": str(store)},
    )  # fmt: skip


def test_a_folder_is_measured_kept_as_a_profile_and_left_as_it_was(tmp_path: Path) -> None:
    place, store = tmp_path / "data", tmp_path / "store"
    place.mkdir()
    (place / "mine").write_text("untouched")
    done = farline(str(place), *SMALL, "--json", store=store)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    measured = document["measurements"]
    assert {(one["action"], one["processes"]) for one in measured} == {
        ("read", 1), ("read", 2), ("write", 1), ("write", 2)
    }  # fmt: skip
    assert all(one["rate_bps"] > 0 and one["requests"] >= 1 for one in measured)
    assert [path.name for path in place.iterdir()] == ["mine"]
    assert (place / "mine").read_text() == "untouched"
    (profile,) = all_profiles(Store(store).layout.file_systems)
    assert profile.read is not None and profile.write is not None
    assert profile.read.best_bps == pytest.approx(document["caps"]["read"]["best_bps"])


def test_the_page_and_the_table_say_the_same(tmp_path: Path) -> None:
    page = tmp_path / "storage.html"
    done = farline(
        str(tmp_path), *SMALL, "--only", "read", "--io", "buffered", "--report", str(page),
        "--no-store", store=tmp_path / "store",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80, lines
    assert any(line.startswith("reads: up to ") for line in lines)
    text = page.read_text()
    assert "data:image/svg+xml" in text and "Measurements" in text
    assert not (tmp_path / "store").exists()


def test_only_reads_of_an_existing_file_write_nothing(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(4 << 20))
    before = path.stat()
    wishes = StorageWishes(("read",), processes=(1, 2), requests_bytes=(1 << 18,), depths=(1,),
                           modes=("buffered",))  # fmt: skip
    result = StorageJob(StorageRequest(path, reads_file=True, wishes=wishes, budget_s=3.0)).wait()
    document = result.checked()
    assert document["read_file"] == str(path)
    after = path.stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)
    assert [found.name for found in tmp_path.iterdir()] == ["large"]


def test_what_is_cached_is_measured_and_said(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(4 << 20))
    wishes = StorageWishes(("read",), requests_bytes=(1 << 18,), depths=(1,), modes=("buffered",))
    request = StorageRequest(path, reads_file=True, wishes=wishes, budget_s=2.0, is_warm=True)
    path.read_bytes()
    result = StorageJob(request).wait()
    result.checked()
    (one,) = result.measured
    if one.cached is None:
        pytest.skip("the kernel does not tell what is cached")
    assert one.cached == 1.0
    assert result.document is not None
    assert "up to 100% of what was read was in the page cache" in result.document["notes"]


def test_a_killed_measurement_is_cleaned_up_by_the_next_and_an_interrupted_one_by_itself(
    tmp_path: Path,
) -> None:
    words = [sys.executable, "-m", "farline", "storage", str(tmp_path), "--no-store",
             "--budget", "60s", "--size", "16M", "--processes", "1,2", "--request", "256K",
             "--depth", "1"]  # fmt: skip
    for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
        before = set(tmp_path.iterdir())
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
            until = time.monotonic() + 60
            while time.monotonic() < until:
                made = [path.parent for path in tmp_path.glob(f"{PREFIX}*/lane-*")]
                if set(made) - before:
                    break
                time.sleep(0.05)
            running.send_signal(number)
            running.wait(60)
            assert running.returncode == code
        left = list(tmp_path.iterdir())
        assert len(left) == (1 if number == signal.SIGKILL else 0), left


def test_a_folder_that_somebody_removed_meanwhile_does_not_hide_what_else_went_wrong(
    tmp_path: Path,
) -> None:
    with pytest.raises(SystemFailure, match="the first"), work_folder(tmp_path) as folder:
        shutil.rmtree(folder.path)
        raise SystemFailure("the first")


def test_a_process_that_ended_while_it_waited_for_a_load_is_an_error_that_is_told() -> None:
    worker = Worker()
    try:
        os.kill(worker._process.pid, signal.SIGKILL)
        worker._process.wait()
        with pytest.raises(SystemFailure, match="ended with code -9: out of memory"):
            worker.send({})  # type: ignore[typeddict-item]
    finally:
        worker.kill()


def test_processes_are_heard_where_many_files_are_open(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip("this user may not open 2048 files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        wishes = StorageWishes(
            ("read",), (1,), requests_bytes=(4096,), depths=(1,), modes=("buffered",)
        )
        request = StorageRequest(tmp_path, wishes=wishes, budget_s=2.0, size_bytes=65536)
        result = StorageJob(request).wait()
        assert result.checked()["measurements"]
    finally:
        for file in held:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("name", "reads", "told"),
    [
        ("nothing", False, "nothing: no such folder; make it first, or name one that is there"),
        ("nothing", True, "nothing: no such file"),
        ("n" * 300, False, "File name too long"),
    ],
)
def test_what_cannot_be_measured_is_told_as_what_it_is(
    name: str, reads: bool, told: str, tmp_path: Path
) -> None:
    with pytest.raises(FarlineError, match=told):
        wishes = StorageWishes(("read",))
        StorageJob(StorageRequest(tmp_path / name, reads, wishes)).wait().checked()


def test_who_stated_no_size_is_told_where_it_is_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farline.storage.job.FREE_SHARE", 1e-9)
    with pytest.raises(FarlineError, match=r"files of .*, a tenth of the free space: 8 threads"):
        StorageJob(StorageRequest(tmp_path)).wait().checked()


def test_a_page_that_cannot_be_written_costs_no_measurement(tmp_path: Path) -> None:
    words = (str(tmp_path), *SMALL, "--no-store", "--report")
    done = farline(*words, str(tmp_path / "none" / "x.html"), store=tmp_path / "store")
    assert done.returncode == 1
    assert f"there is no folder {tmp_path}/none; make it first" in done.stderr
    assert "measurements" not in done.stdout
    (tmp_path / "x.html").symlink_to(tmp_path / "none" / "y")
    done = farline(*words, str(tmp_path / "x.html"), store=tmp_path / "store")
    assert done.returncode == 2
    assert "x.html: cannot write into it: No such file or directory" in done.stderr
    assert "writes: up to" in done.stdout
