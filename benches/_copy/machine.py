"""The machine before and during a run: warm memory, a cold page cache, CPU time of all programs.

A virtual machine gives free memory back to its host, and touching it again may cost seconds per
gigabyte: what a run writes to memory is touched and freed right before it, so that every contender
finds the same. A run of many seconds outlasts that: its memory is kept back by a program that gives
it up piece by piece, shortly before it is written to (`reserve`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SLACK = 1.1
_TOUCH = """
import mmap, sys
left = int(sys.argv[1])
area = mmap.mmap(-1, left, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
view = memoryview(area)
step = 1 << 22
zeros = bytes(step)
for at in range(0, left, step):
    view[at : at + step] = zeros[: left - at]
"""
_KEEP = """
import mmap, sys
area = mmap.mmap(-1, int(sys.argv[1]), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
zeros = bytes(1 << 22)
for at in range(0, len(area), len(zeros)):
    area[at : at + len(zeros)] = zeros[: len(area) - at]
print("kept", flush=True)
given = 0
for line in sys.stdin:
    until = min(int(line) // len(zeros) * len(zeros), len(area))
    if until > given:
        area.madvise(mmap.MADV_DONTNEED, given, until - given)
        given = until
"""
AHEAD_BYTES = 512 << 20
"""Memory that is given up before it is needed: less than what the host takes back meanwhile."""

_JOIN = 'echo $$ >"$1/cgroup.procs" || exit 126; shift; exec "$@"'
_CPUACCT, _UNIFIED = Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup")
_BUSY_FIELDS = (0, 1, 2, 5, 6)


def warm_memory(size: int) -> None:
    """Touches a tenth more memory than `size` bytes and gives it back."""
    subprocess.run([sys.executable, "-c", _TOUCH, str(int(size * SLACK) + 1)], check=True)


@contextmanager
def reserve(size: int) -> Iterator[Callable[[int], None]]:
    """Keeps `size` bytes of warm memory back; to be told how many have been needed so far."""
    words = [sys.executable, "-c", _KEEP, str(size)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stdin is not None and keeper.stdout is not None
        stdin = keeper.stdin
        if keeper.stdout.readline() != "kept\n":
            raise RuntimeError(f"this machine has no {size} bytes of memory to spare")

        def give(needed: int) -> None:
            stdin.write(f"{needed + AHEAD_BYTES}\n")
            stdin.flush()

        try:
            yield give
        finally:
            keeper.kill()


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
