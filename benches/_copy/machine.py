"""The machine before and during a run: warm memory, a cold page cache, CPU time of all programs.

A virtual machine gives free memory back to its host within two seconds, and touching it again costs
up to three seconds per gigabyte: a run that writes to memory would measure that. What it gives back
are free pieces of two megabytes; so a bench touches as much as its runs need and frees all but one
page of each megabyte of it, and what is written there stays warm from run to run (`warm`).
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PIN_BYTES = 1 << 20
"""Of so much memory one page is kept: fewer of them side by side the kernel does not give back."""

PLUG_BYTES = 1 << 28
"""Memory that is taken again afterwards: with it goes what the kernel gives out first, pieces of
before that may be cold."""

OTHERS_BYTES = 1 << 30
"""Warm memory for sockets, queues and programs meanwhile."""

MARGIN_BYTES = 1 << 30
"""Memory for all else."""

_JOIN = 'echo $$ >"$1/cgroup.procs" || exit 126; shift; exec "$@"'
_CPUACCT, _UNIFIED = Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup")
_LARGE_PAGES, _LARGE_PAGE_BYTES = Path("/proc/sys/vm/nr_hugepages"), 2 << 20
_BUSY_FIELDS = (0, 1, 2, 5, 6)


@contextmanager
def warm(size: int) -> Iterator[None]:
    """Free memory that was touched and stays so, for `size` bytes of files that come and go.

    Raises:
        RuntimeError: when there is not so much; with less, files in memory would make the machine
            look for more until it kills a program.
    """
    have, wanted = _available_bytes(), _whole(size) + PLUG_BYTES + OTHERS_BYTES
    if have < wanted + MARGIN_BYTES:
        left = " and ".join(str(path) for path in sorted(Path("/dev/shm").glob("farline-bench-*")))
        raise RuntimeError(
            f"{wanted + MARGIN_BYTES >> 20} MiB of memory are needed, {have >> 20} MiB are free"
            f" (files in memory now: {left or 'none of a bench'})"
        )
    with _touched(wanted) as area:
        for at in range(0, wanted, PIN_BYTES):
            area.madvise(mmap.MADV_DONTNEED, at + mmap.PAGESIZE, PIN_BYTES - mmap.PAGESIZE)
        with _touched(PLUG_BYTES):
            yield


@contextmanager
def large_pages(size: int) -> Iterator[None]:
    """Memory set aside in large pages, which programs ask for by name; given back afterwards.

    Raises:
        RuntimeError: when the kernel has not so much in one piece.
    """
    before = int(_LARGE_PAGES.read_text(encoding="ascii"))
    wanted = before + -(-size // _LARGE_PAGE_BYTES)
    _LARGE_PAGES.write_text(str(wanted), encoding="ascii")
    try:
        have = int(_LARGE_PAGES.read_text(encoding="ascii"))
        if have < wanted:
            raise RuntimeError(f"{_LARGE_PAGES}: {wanted} were asked for, there are {have}")
        yield
    finally:
        _LARGE_PAGES.write_text(str(before), encoding="ascii")


def _whole(size: int) -> int:
    return -(-size // PIN_BYTES) * PIN_BYTES


def _touched(size: int) -> mmap.mmap:
    """Memory of one's own that was written to, in small pages: of large ones none goes alone."""
    area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    zeros = bytes(1 << 22)
    for at in range(0, size, len(zeros)):
        area[at : at + len(zeros)] = zeros[: size - at]
    return area


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
    """Removes a group as soon as its last program has ended; those that do not end soon are killed.

    Raises:
        RuntimeError: when one is there even so.
    """
    for number in range(600):
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.05)
        if number >= 20:
            _kill(group)
    raise RuntimeError(f"{group}: programs of a bench are still running")


def _kill(group: Path) -> None:
    for pid in (group / "cgroup.procs").read_text(encoding="ascii").split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def busy_s() -> float:
    """CPU seconds that the whole machine has worked since it started."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    return sum(int(fields[number]) for number in _BUSY_FIELDS) / float(os.sysconf("SC_CLK_TCK"))
