"""Ours: a server that takes and gives files, `farline copy` as a person types it, what it says."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _copy.peers import Commands, Contender
from _copy.place import Place, ending, first_line
from _iperf3 import FARLINE

PLAIN = ("--cipher", "none", "--verify", "none")


@dataclass(frozen=True)
class Serving:
    """A server at a place, whose tickets lead to any folder there."""

    place: Place
    write: str
    read: str
    profile: str
    state: Path
    pid: int

    def push(self, source: object, target: Path, *options: object) -> list[str]:
        """A command line that sends `source` (a slash at its end: what is in it) to `target`."""
        return self._copy(f"{source}", f"{self.write}#{target}", *options)

    def pull(self, source: object, target: object, *options: object) -> list[str]:
        """A command line that fetches `source` to `target`."""
        return self._copy(f"{self.read}#{source}", f"{target}", *options)

    def probe(self, *options: object) -> list[str]:
        """A command line that measures the path."""
        words = ("probe", self.profile, "--no-store", "--json", *options)
        return self._in([str(FARLINE), *map(str, words)])

    def contender(self, name: str, *options: object) -> Contender:
        """Ours in a row: a push of what is in the source folder."""
        command: Commands = lambda source, target: self.push(f"{source}/", target, *options)  # noqa: E731
        return Contender(name, command)

    def _copy(self, *words: object) -> list[str]:
        return self._in([str(FARLINE), "copy", "--no-progress", *map(str, words)])

    def _in(self, command: Sequence[str]) -> list[str]:
        return self.place.call(["env", *_folders(self.state), *command])


def _folders(state: Path) -> list[str]:
    """Settings, records and keys of a bench's own; compiled modules are kept, as everywhere."""
    names = {"CONFIG": "config", "STATE": "state", "DATA": "data"}
    own = [f"XDG_{kind}_HOME={state / name}" for kind, name in names.items()]
    return ["-u", "PYTHONDONTWRITEBYTECODE", *own]


@contextmanager
def serving(place: Place, *options: str) -> Iterator[Serving]:
    """`farline serve` at a place."""
    with tempfile.TemporaryDirectory(prefix="farline-bench-") as folder:
        state = Path(folder)
        roots = ["--write", "/", "--read", "/", *options]
        where = ["-B", place.address, "-p", "0", "--state-dir", str(state / "server")]
        argv = ["env", *_folders(state), str(FARLINE), "serve", "--json", *where, *roots]
        with ending(place.start(argv)) as server, _unread(server) as ready:
            tickets = ready["tickets"]
            yield Serving(
                place, tickets["write"], tickets["read"], ready["ticket"], state, server.pid
            )


@contextmanager
def _unread(server: subprocess.Popen[str]) -> Iterator[Mapping[str, Any]]:
    """What the server says first; what it says later is thrown away, so that it never waits."""
    import threading

    line = first_line(server)
    if not line:
        raise RuntimeError(f"farline serve ended at once with {server.wait()}")
    stream = server.stdout
    assert stream is not None
    threading.Thread(target=lambda: [None for _ in stream], daemon=True).start()
    yield json.loads(line)


@dataclass(frozen=True)
class Told:
    """A copy with everything it told on its way."""

    record: Mapping[str, Any]
    progress: Sequence[Mapping[str, int]]
    first_byte_s: float | None
    """Seconds from the start of the program until it said that a byte had moved."""

    seconds: float
    exit_code: int

    @property
    def report(self) -> Mapping[str, Any]:
        """The copy's part of the record."""
        found: Mapping[str, Any] = self.record["copy"]
        return found

    def steady_bps(self, omit_s: float) -> float:
        """Payload rate from `omit_s` after the start of the data until nine tenths are over."""
        return steady_bps(self.progress, omit_s)


def steady_bps(progress: Sequence[Mapping[str, int]], omit_s: float) -> float:
    """Slope of what had settled at the destination, between two moments.

    Raises:
        ValueError: when the copy was too short to have a steady part.
    """
    last = progress[-1]["settled_bytes"] * 0.9
    begin_us = next(one["elapsed_us"] for one in progress if one["settled_bytes"] > 0)
    part = [
        one
        for one in progress
        if one["elapsed_us"] >= begin_us + omit_s * 1e6 and one["settled_bytes"] <= last
    ]
    if len(part) < 5 or part[-1]["elapsed_us"] - part[0]["elapsed_us"] < 1e6:
        raise ValueError(f"the copy has no second that is steady after {omit_s:g} s")
    moved = part[-1]["settled_bytes"] - part[0]["settled_bytes"]
    return 8e6 * moved / (part[-1]["elapsed_us"] - part[0]["elapsed_us"])


def told(
    command: Sequence[str],
    limit_s: float,
    watch: Callable[[Mapping[str, int], subprocess.Popen[str]], None] | None = None,
) -> Told:
    """Runs a copy with `--json-stream` and keeps what it tells; `watch` may act on each progress.

    Raises:
        RuntimeError: when it ends by itself and without a record, or not within `limit_s`.
    """
    import threading
    import time

    since = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--json-stream"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(limit_s, give_up)
    timer.start()
    progress: list[Mapping[str, int]] = []
    record: Mapping[str, Any] | None = None
    first_s = None
    try:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "progress":
                progress.append(event["data"])
                if first_s is None and event["data"]["moved_bytes"] > 0:
                    first_s = time.perf_counter() - since
                if watch is not None:
                    watch(event["data"], process)
            elif event["event"] == "end":
                record = event["data"].get("farline", event["data"])
        _, complaint = process.communicate()
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    seconds = time.perf_counter() - since
    if is_late.is_set():
        last = progress[-1] if progress else None
        raise RuntimeError(f"farline copy: not over after {limit_s:g} s, at {last}")
    if record is None and process.returncode >= 0:
        raise RuntimeError(f"farline copy: {complaint.strip()[-400:]}")
    return Told(record or {}, progress, first_s, seconds, process.returncode)
