"""Processes: which live, which are inside a host, and their end."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

TERM_GRACE_S = 2.0
"""Time between asking a program inside a host to end and ending it."""

_PROC = Path("/proc")


def boot_id() -> str:
    """Which boot of the machine this is: process numbers mean nothing across one."""
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None if it is not there or a zombie.

    With the process number this names one process for the whole of a boot (proc(5), field 22).
    """
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def is_alive(pid: int, ticks: int) -> bool:
    """Whether the process that started at `ticks` still runs."""
    return start_ticks(pid) == ticks


class Process:
    """One process, held by a descriptor: never another that is given its number later."""

    def __init__(self, descriptor: int) -> None:
        """Takes over a pidfd; see `hold`."""
        self._descriptor = descriptor

    @classmethod
    def hold(cls, pid: int, ticks: int | None = None) -> Process | None:
        """The process `pid` that started at `ticks`, if stated; None when it is not there."""
        try:
            held = cls(os.pidfd_open(pid))
        except ProcessLookupError:
            return None
        # Only now is the number the held process's own: one that has ended has no ticks.
        if ticks is not None and start_ticks(pid) != ticks:
            held.close()
            return None
        return held

    def wait(self, timeout_s: float) -> bool:
        """Waits until it has ended; says whether it has. A child is reaped."""
        if self._descriptor < 0:
            return True
        waiter = select.poll()
        waiter.register(self._descriptor, select.POLLIN)
        if not waiter.poll(timeout_s * 1000):
            return False
        with suppress(ChildProcessError):  # it may be somebody else's child
            os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED)
        return True

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, unless it has ended or may not be sent one."""
        if self._descriptor >= 0:
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._descriptor, number)

    def end(self) -> bool:
        """Ends it by force and waits until it is gone; says whether it is."""
        self.send(signal.SIGKILL)
        return self.wait(TERM_GRACE_S)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of it; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def wait_for_end(pid: int, timeout_s: float) -> bool:
    """Waits until a child of this process has ended; says whether it has."""
    held = Process.hold(pid)
    if held is None:
        return True
    try:
        return held.wait(timeout_s)
    finally:
        held.close()


def namespace_number(pid: int, kind: str) -> int | None:
    """Number of a process's namespace, as `ls -i` shows it; None if that cannot be seen."""
    try:
        return (_PROC / str(pid) / "ns" / kind).stat().st_ino
    except OSError:
        return None


def inside(networks: Collection[int], proof: str | None) -> list[int]:
    """Processes inside the hosts with these network namespaces.

    The kernel gives the number of a namespace that is gone to the next one made. Unless the
    caller holds the namespaces open, a number counts only if a process that has it also sees a
    file named `proof` mounted, the hosts file of that bed and of no other.
    """
    found = {pid: namespace_number(pid, "net") for pid in _pids()}
    if proof is None:
        return sorted(pid for pid, number in found.items() if number in networks)
    marked = {pid for pid in found if _has_mount(pid, proof)}
    ours = {found[pid] for pid in marked} & set(networks)
    return sorted(pid for pid, number in found.items() if number in ours or pid in marked)


def _pids() -> Iterator[int]:
    own = os.getpid()
    for path in _PROC.iterdir():
        if path.name.isdigit() and int(path.name) != own:
            yield int(path.name)


def _has_mount(pid: int, file_name: str) -> bool:
    """Whether the process sees a file of that name mounted at some place (proc(5), mountinfo)."""
    try:
        text = (_PROC / str(pid) / "mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return file_name in text


def end_inside(networks: Collection[int], proof: str | None) -> list[int]:
    """Ends every process inside the hosts: asked first, then forced; see `inside`.

    Gives those that have not ended all the same: they wait in the kernel, for a disk say.
    """
    deadline = time.monotonic() + TERM_GRACE_S
    asked: set[int] = set()
    while left := inside(networks, proof):
        forced = time.monotonic() > deadline
        if time.monotonic() > deadline + TERM_GRACE_S:
            return left
        for pid in left:
            if forced or pid not in asked:
                _send(pid, signal.SIGKILL if forced else signal.SIGTERM)
                asked.add(pid)
        time.sleep(0.02)
    return []


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
        if number is signal.SIGTERM:
            os.kill(pid, signal.SIGCONT)
    except (ProcessLookupError, PermissionError):
        pass  # ended meanwhile


def end(pid: int) -> None:
    """Ends a child of this process that has not been waited for, and waits until it is gone."""
    _send(pid, signal.SIGKILL)
    wait_for_end(pid, TERM_GRACE_S)


def end_if(pid: int, is_meant: Callable[[], bool]) -> None:
    """Ends the process with this number if, once it is held, it is still the one that is meant."""
    held = Process.hold(pid)
    if held is None:
        return
    try:
        if is_meant():
            held.send(signal.SIGKILL)
    finally:
        held.close()
