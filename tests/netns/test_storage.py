"""File systems of the testbed: what they are told to do is what programs meet, and is found."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from farline.errors import UsageError
from farline.storage.job import StorageJob, StorageRequest
from farline.storage.settings import StorageWishes
from farline.testbeds.storage import mounted_storage, storage_spec
from farline.tools.mounts import mount_of

pytestmark = pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="needs /dev/fuse")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "mount"
    folder.mkdir()
    yield folder
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def rate_mbps(path: Path, write: bool, count: int = 4) -> float:
    data = os.urandom(1 << 20)
    flags = os.O_CREAT | os.O_RDWR
    handle = os.open(path, flags, 0o600)
    try:
        for number in range(count):
            os.pwrite(handle, data, number << 20)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        began = time.monotonic()
        for number in range(count):
            if write:
                os.pwrite(handle, data, number << 20)
            else:
                assert os.pread(handle, 1 << 20, number << 20) == data
        return 8 * count * 1.048576 / (time.monotonic() - began)
    finally:
        os.close(handle)


@pytest.mark.alone
def test_a_process_is_held_to_its_rate_and_files_are_files(place: Path) -> None:
    spec = storage_spec("lustre-like", process_bps=200_000_000, latency_s=0.0)
    with mounted_storage(spec, place) as mounted:
        found = mount_of(place)
        assert found is not None and found.source == "farline-storage-lustre-like"
        (place / "folder").mkdir()
        (place / "folder" / "a").write_bytes(b"content")
        (place / "folder" / "a").rename(place / "b")
        (place / "link").symlink_to("b")
        assert (place / "link").read_bytes() == b"content"
        # Never faster; slower only by what else the machine does.
        assert 100 < rate_mbps(place / "w", write=True) < 210
        assert rate_mbps(place / "w", write=False) < 210
        assert mounted.counters()["written_bytes"] >= 8 << 20
        (place / "w").unlink()
        (place / "folder").rmdir()
        assert sorted(path.name for path in place.iterdir()) == ["b", "link"]
    assert list(place.iterdir()) == []


def test_it_is_bounded_and_mounts_only_where_nothing_is_hidden(place: Path) -> None:
    with mounted_storage(storage_spec("nvme", capacity_bytes=2 << 20), place):
        with pytest.raises(OSError, match="No space left"):
            (place / "large").write_bytes(bytes(4 << 20))
        (place / "large").unlink()
        (place / "fits").write_bytes(bytes(2 << 20))
    (place / "mine").write_text("x")
    spec = storage_spec("nvme")
    with pytest.raises(UsageError, match="is not empty"), mounted_storage(spec, place):
        pass
    with pytest.raises(UsageError, match="no such storage preset"):
        storage_spec("lustre")


def test_what_a_killed_process_left_mounted_is_freed_by_the_next(place: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\n"
        "from farline.testbeds.storage import mounted_storage, storage_spec\n"
        "with mounted_storage(storage_spec('nvme'), Path(sys.argv[1])):\n"
        "    print('ready', flush=True)\n    time.sleep(100)\n"
    )
    words = [sys.executable, "-c", script, str(place)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"ready\n"
        one.kill()
    with mounted_storage(storage_spec("nvme"), place):
        (place / "a").write_text("x")
    assert list(place.iterdir()) == []


@pytest.mark.alone
def test_the_caps_that_it_was_told_are_found_again(place: Path) -> None:
    wishes = StorageWishes(("write",), processes=(1, 2, 4, 6), modes=("direct",))
    with mounted_storage(storage_spec("lustre-like"), place):
        request = StorageRequest(place, wishes=wishes, budget_s=8.0, size_bytes=96 << 20)
        document = StorageJob(request).wait().checked()
    caps = document["caps"]["write"]
    assert caps["process"]["rate_bps"] == pytest.approx(300e6, rel=0.15)
    assert caps["total"]["rate_bps"] == pytest.approx(1200e6, rel=0.15)


@pytest.mark.alone
def test_credits_give_their_bytes_per_round_trip(place: Path) -> None:
    rates = {}
    for latency_s in (0.05, 0.2):
        with mounted_storage(storage_spec("lnet-like", latency_s=latency_s), place):
            wishes = StorageWishes(("write",), processes=(4,), modes=("direct",))
            request = StorageRequest(place, wishes=wishes, budget_s=4.0, size_bytes=64 << 20)
            document = StorageJob(request).wait().checked()
        rates[latency_s] = document["measurements"][0]["rate_bps"]
    for latency_s, rate_bps in rates.items():
        bound_bps = 8 * 8 * (1 << 20) / latency_s
        assert 0.5 * bound_bps < rate_bps < 1.05 * bound_bps
