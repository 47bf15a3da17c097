"""The machine before and during a run: warm memory, a cold page cache, CPU time of all programs.

A virtual machine gives free memory back to its host, at once and from a gigabyte on, and touching
it again costs up to three seconds per gigabyte: a run that writes to memory would measure that. So
a program of its own touches and keeps as much as a run needs, and gives it up piece by piece just
before it is written to (`reserve`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_KEEP = """
import mmap, os, sys, time
folder, size, ahead = sys.argv[1], *map(int, sys.argv[2:])
step = 1 << 22
zeros = bytes(step)

def touched(size):
    area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size, step):
        area[at : at + step] = zeros[: size - at]
    return area

def used():
    seen = os.statvfs(folder)
    return (seen.f_blocks - seen.f_bfree) * seen.f_frsize

def give(until):
    global given
    until = min(until // step * step, size)
    if until > given:
        area.madvise(mmap.MADV_DONTNEED, given, until - given)
        given = until

bench = os.getppid()
area, given, before = touched(size), 0, used()
give(ahead)
plug = touched(ahead)
print("kept", flush=True)
while os.getppid() == bench:
    give(used() - before + 2 * ahead)
    time.sleep(0.005)
"""
AHEAD_BYTES = 1 << 30
"""Memory that is given up before it is needed, at most: no more than the host leaves alone. As much
is taken right after the first was given up, and kept: with it goes what the kernel gives out before
that memory, and nobody has touched."""

MARGIN_BYTES = 1 << 30
"""Memory for all else."""

_JOIN = 'echo $$ >"$1/cgroup.procs" || exit 126; shift; exec "$@"'
_CPUACCT, _UNIFIED = Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup")
_BUSY_FIELDS = (0, 1, 2, 5, 6)


@contextmanager
def reserve(size: int, folder: Path) -> Iterator[None]:
    """Warm memory for `size` bytes that are written to the file system of `folder` meanwhile.

    Raises:
        RuntimeError: when there is not so much; with less, files in memory would make the machine
            look for more until it kills a program.
    """
    ahead = min(AHEAD_BYTES, size)
    have, kept = _available_bytes(), size + 2 * ahead
    if have < kept + MARGIN_BYTES:
        left = " and ".join(str(path) for path in sorted(Path("/dev/shm").glob("farline-bench-*")))
        raise RuntimeError(
            f"{kept + MARGIN_BYTES >> 20} MiB of memory are needed, {have >> 20} MiB are free"
            f" (files in memory now: {left or 'none of a bench'})"
        )
    words = [sys.executable, "-c", _KEEP, str(folder), str(kept), str(ahead)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        if keeper.stdout.readline() != "kept\n":
            raise RuntimeError(f"the program that keeps {kept} bytes of memory ended")
        try:
            yield
        finally:
            keeper.kill()


def _available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    (kib,) = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(kib) * 1024


def evict(folder: Path) -> None:
    """Takes the files below a folder out of the page cache."""
    for parent, _, names in os.walk(folder):
        for name in names:
            number = os.open(Path(parent, name), os.O_RDONLY)
            try:
                os.fsync(number)
                os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(number)


@dataclass(frozen=True)
class Meter:
    """Counts CPU time of every program started through it, and of what those start."""

    group: Path

    def command(self, argv: Sequence[str]) -> list[str]:
        """A command that runs `argv` in the group, as the same process."""
        return ["sh", "-c", _JOIN, "farline-bench", str(self.group), *argv]

    def cpu_s(self) -> float:
        """CPU seconds of all of them so far."""
        usage = self.group / "cpuacct.usage"
        if usage.exists():
            return int(usage.read_text(encoding="ascii")) / 1e9
        lines = (self.group / "cpu.stat").read_text(encoding="ascii").splitlines()
        (microseconds,) = [line.split()[1] for line in lines if line.startswith("usage_usec ")]
        return int(microseconds) / 1e6


@contextmanager
def metered() -> Iterator[Meter]:
    """A control group of this process's own, removed afterwards."""
    root = _CPUACCT if (_CPUACCT / "cpuacct.usage").exists() else _UNIFIED
    group = root / f"farline-bench-{os.getpid()}"
    group.mkdir()
    try:
        yield Meter(group)
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """Removes a group as soon as its last program has ended."""
    for _ in range(100):
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{group}: programs of a bench are still running")


def busy_s() -> float:
    """CPU seconds that the whole machine has worked since it started."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    return sum(int(fields[number]) for number in _BUSY_FIELDS) / float(os.sysconf("SC_CLK_TCK"))
