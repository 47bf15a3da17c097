"""Faults while they happen: begun when a copy has come far enough, ended after their time."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from _copy.faults.ground import ROOMY_BYTES, Ground
from _copy.faults.plan import Case, Fault
from _copy.faults.tree import Source, alter

FULL_PATIENCE_S = 3.0
"""Time that a full disk stays full for a client that waits."""

CORRUPT_SHARES = (0.00002, 0.0005)


@dataclass
class Actors:
    """All faults of a case: which have not begun, and what is to be mended when."""

    ground: Ground
    source: Source
    case: Case
    waiting: list[Fault] = field(default_factory=list)
    met: list[str] = field(default_factory=list)
    """Kinds of faults that met a copy under way."""

    _due: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    _full: Fault | None = None
    _full_since: float | None = None

    def __post_init__(self) -> None:
        """Small disks are small from the start."""
        self.waiting = [fault for fault in self.case.faults if fault.kind != "disk-full"]
        for fault in self.case.faults:
            if fault.kind == "disk-full":
                self._full = fault
                self.ground.resize(int(self.source.total_bytes * fault.at_share))

    def tick(self, share: float, client: subprocess.Popen[bytes]) -> None:
        """Begins what is to begin at this share of the bytes, and mends what is to be mended."""
        while self.waiting and share >= self.waiting[0].at_share:
            self._begin(self.waiting.pop(0), client)
        now = time.monotonic()
        for entry in [entry for entry in self._due if entry[0] <= now]:
            self._due.remove(entry)
            entry[1]()
        self._look_at_disk(now)

    def mend(self) -> None:
        """Ends everything that still goes on, and begins nothing more."""
        for _, action in self._due:
            action()
        self._due.clear()
        self.waiting.clear()
        self.grow_disk()

    def after_attempt(self) -> None:
        """The user comes back after a command failed: makes room, waits for the rest."""
        self.grow_disk()
        for moment, action in sorted(self._due, key=lambda entry: entry[0]):
            time.sleep(max(0.0, moment - time.monotonic()))
            action()
        self._due.clear()

    def grow_disk(self) -> None:
        """Makes room."""
        if self._full is not None:
            if self.ground.used_up() or self._full_since is not None:
                self.met.append("disk-full")
            self._full = None
            self.ground.resize(ROOMY_BYTES)

    def _look_at_disk(self, now: float) -> None:
        if self._full is None or not self.ground.used_up():
            return
        if self._full_since is None:
            self._full_since = now
        elif now - self._full_since > FULL_PATIENCE_S:
            self.grow_disk()

    def _begin(self, fault: Fault, client: subprocess.Popen[bytes]) -> None:
        act = _ACTS.get(fault.kind)
        if act is not None:
            mended = act(self, fault, client)
            if mended is not None:
                self._due.append((time.monotonic() + fault.seconds, mended))
        elif alter(self.source, fault) is None:
            return
        self.met.append(fault.kind)


def _kill_client(
    _: Actors, _fault: Fault, client: subprocess.Popen[bytes]
) -> Callable[[], None] | None:
    client.kill()
    return None


def _kill_server(actors: Actors, _fault: Fault, _client: object) -> Callable[[], None]:
    actors.ground.server.kill()
    return actors.ground.server.start


def _cut(actors: Actors, _fault: Fault, _client: object) -> Callable[[], None]:
    actors.ground.change(up=False)
    return lambda: actors.ground.change(up=True)


def _corrupt(actors: Actors, fault: Fault, _client: object) -> Callable[[], None]:
    least, most = CORRUPT_SHARES
    actors.ground.change(corrupt=least * (most / least) ** fault.amount)
    return lambda: actors.ground.change(corrupt=0.0)


def _stop_client(_: Actors, _fault: Fault, client: subprocess.Popen[bytes]) -> Callable[[], None]:
    client.send_signal(signal.SIGSTOP)
    return lambda: client.send_signal(signal.SIGCONT)


def _stop_server(actors: Actors, _fault: Fault, _client: object) -> Callable[[], None]:
    actors.ground.server.send(signal.SIGSTOP)
    return lambda: actors.ground.server.send(signal.SIGCONT)


_ACTS: dict[str, Callable[[Actors, Fault, subprocess.Popen[bytes]], Callable[[], None] | None]] = {
    "kill-client": _kill_client,
    "kill-server": _kill_server,
    "cut": _cut,
    "corrupt": _corrupt,
    "stop-client": _stop_client,
    "stop-server": _stop_server,
}
