"""`farline storage`'s engine beside fio at equal settings, and caps beside those that were stated.

A row of settings is the allowed difference, 5 %, over the difference of the medians that ours and
fio reach on the same files, in turns. A row of a cap is 10 % over the difference between the cap
that `farline storage` fits and the one that a file system of the testbed was told to have (root).
FOLDER=DIR measures there instead of in a temporary folder, FARLINE_FIO=PATH names another fio.
IOzone is a peer where it is installed (FARLINE_IOZONE=PATH).
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from _contract import FEWEST_PAIRS, Row, finish
from _program import program
from farline.spec.units import size_human
from farline.storage.job import StorageJob, StorageRequest, caps_of, load_of
from farline.storage.measured import measured_of
from farline.storage.settings import Action, Mode, StorageSetting, StorageWishes
from farline.storage.workers import Workers
from farline.testbeds.storage import mounted_storage, storage_spec
from farline.tools import never_stop

FILE_BYTES = 512 << 20
SECONDS = 1.5
MEET_NS = 300_000_000
"""Time for the processes to prepare and begin together."""
ALLOWED, ALLOWED_CAP = 0.05, 0.10
GRID: tuple[tuple[int, int, int], ...] = (
    (1, 1 << 20, 1), (1, 1 << 20, 16), (1, 64 << 10, 16), (4, 1 << 20, 4)
)  # fmt: skip
"""Processes, bytes of a request, requests in flight."""
ACTIONS: tuple[Action, ...] = ("read", "write")
CASES = [
    StorageSetting(action, processes, 1, request, depth, sync="none")
    for action in ACTIONS
    for processes, request, depth in GRID
]


def main() -> int:
    """All rows."""
    return finish("storage-vs-fio", rows())


def rows() -> Iterator[Row]:
    """Settings beside fio, then IOzone's, then caps."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("FOLDER"), prefix="farline-") as name:
        folder = Path(name)
        if (fio := _program("fio", "FARLINE_FIO")) is not None:
            print(f"fio: {_first_line(fio, '--version')}")
            with Workers(never_stop) as workers:
                lay_out(folder)
                for setting in CASES:
                    yield beside(setting, folder, workers, lambda one: _fio(fio, one, folder))
        if (iozone := _program("iozone", "FARLINE_IOZONE")) is not None:
            with Workers(never_stop) as workers:
                for action in ACTIONS:
                    setting = StorageSetting(action, 1, 1, 1 << 20, 1, sync="none")
                    yield beside(setting, folder, workers, lambda one: _iozone(iozone, one, folder))
    if os.geteuid() == 0:
        yield from cap_rows()


def _program(name: str, variable: str) -> str | None:
    found = os.environ.get(variable) or shutil.which(name)
    if found is None:
        print(f"{name} is not installed: no rows beside it ({variable}=PATH names one)")
    return found


def _first_line(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True)
    return done.stdout.splitlines()[0]


def lay_out(folder: Path) -> None:
    """Files of random content, on the device."""
    block = os.urandom(1 << 20)
    for number in range(4):
        with (folder / f"lane-000{number}").open("wb") as file:
            for _ in range(FILE_BYTES >> 20):
                file.write(block)
            os.fsync(file.fileno())


def beside(
    setting: StorageSetting,
    folder: Path,
    workers: Workers,
    peer: Callable[[StorageSetting], float],
) -> Row:
    """Ours and the peer in turns."""
    pairs = [(_ours(setting, folder, workers), peer(setting)) for _ in range(FEWEST_PAIRS + 2)]
    ratios = [ours / theirs for ours, theirs in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    ours, theirs = (statistics.median(column) / 1e9 for column in zip(*pairs, strict=True))
    size = size_human(setting.request_bytes)
    case = f"{setting.action} {setting.processes}p {size} qd{setting.depth}"
    return Row(case, ours, theirs, "Gb/s", *_over(ALLOWED, middle, low, high))


def _over(allowed: float, middle: float, low: float, high: float) -> tuple[float, float, float]:
    """Allowed over found difference: of the median, and of the quartiles."""
    found = [allowed / max(abs(one - 1), 1e-3) for one in (middle, low, high)]
    return found[0], min(found), max(found)


def _ours(setting: StorageSetting, folder: Path, workers: Workers) -> float:
    begin_at_ns = time.monotonic_ns() + MEET_NS
    loads = [
        load_of(setting, folder / f"lane-000{number}", FILE_BYTES, begin_at_ns, SECONDS)
        for number in range(setting.processes)
    ]
    steps = workers.run(loads, SECONDS)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return measured_of(setting, end.value, begin_at_ns).rate_bps


def _fio(fio: str, setting: StorageSetting, folder: Path) -> float:
    engine = "io_uring" if setting.depth > 1 else "psync"
    words = [
        fio, "--name=bench", f"--directory={folder}", "--filename_format=lane-000$jobnum",
        f"--rw={setting.action}", f"--bs={setting.request_bytes}", f"--iodepth={setting.depth}",
        f"--ioengine={engine}", "--direct=1", f"--size={FILE_BYTES}", "--time_based",
        f"--runtime={int(1000 * SECONDS)}ms", f"--numjobs={setting.processes}", "--overwrite=1",
        "--fallocate=none", "--group_reporting", "--output-format=json",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    text = done.stdout[done.stdout.index("{") :]
    return 8.0 * float(json.loads(text)["jobs"][0][setting.action]["bw_bytes"])


def _iozone(iozone: str, setting: StorageSetting, folder: Path) -> float:
    """The second pass of IOzone's own file with O_DIRECT, in bit/s."""
    path = folder / "iozone.tmp"
    words = [
        iozone,
        "-I",
        "-r",
        "1m",
        "-s",
        f"{FILE_BYTES >> 20}m",
        "-f",
        str(path),
        "-i",
        "0",
        "-i",
        "1",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    figures = next(
        line.split() for line in done.stdout.splitlines()
        if line.split()[:1] == [str(FILE_BYTES >> 10)]
    )  # fmt: skip
    return 8 * 1024 * float(figures[5 if setting.action == "read" else 3])


@dataclass(frozen=True)
class Stated:
    """A file system with what it is told, and the plan that finds it."""

    preset: str
    processes: tuple[int, ...]
    size_bytes: int
    values: dict[str, int]


STATED = (
    Stated("lustre-like", (1, 2, 4, 8), 256 << 20, {}),
    Stated("gpfs-like", (1, 2, 3, 4), 512 << 20, {"total_bps": 3_000_000_000}),
)


def cap_rows() -> Iterator[Row]:
    """Caps as they are fitted beside those that were stated."""
    for one in STATED:
        spec = storage_spec(one.preset, **one.values)
        for action in ("read", "write"):
            fitted = [_fitted(one, action) for _ in range(3)]
            for name in ("process", "total"):
                stated = float(spec[f"{name}_{action}_bps"])  # type: ignore[literal-required]
                found = statistics.median(caps[name] for caps in fitted)
                ratios = sorted(caps[name] / stated for caps in fitted)
                yield Row(
                    f"{one.preset} {name} {action}", found / 1e9, stated / 1e9, "Gb/s",
                    *_over(ALLOWED_CAP, ratios[1], ratios[0], ratios[2]),
                )  # fmt: skip


def _fitted(one: Stated, action: Action) -> dict[str, float]:
    mode: tuple[Mode, ...] = ("direct",)
    wishes = StorageWishes((action,), processes=one.processes, modes=mode, repeats=2)
    with tempfile.TemporaryDirectory(prefix="farline-") as name:
        place = Path(name)
        with mounted_storage(storage_spec(one.preset, **one.values), place):
            request = StorageRequest(place, wishes=wishes, budget_s=20, size_bytes=one.size_bytes)
            result = StorageJob(request).wait()
            result.checked()
    caps = caps_of(result.measured, action)
    if caps is None or caps.process is None or caps.total is None:
        return {"process": 1.0, "total": 1.0}
    return {"process": caps.process.rate_bps, "total": caps.total.rate_bps}


if __name__ == "__main__":
    program(main)
