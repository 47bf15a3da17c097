"""What logs cost: an event that nobody wants, and runs that are logged at `debug`.

Events (an example of `crates/logs`): allowed ns of CPU time / ns. Runs: the same probe and copies
with FARLINE_LOG=debug into a file (ours) and without logs (peer), at both ends. Without logs an
event is one comparison, and streams have a handful of events each: no run can show that.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from _contract import Row, finish, interleave, row
from _program import program

ROOT = Path(__file__).resolve().parents[1]
FARLINE = Path(sys.executable).with_name("farline")
UNWANTED_NS = 5.0
WRITTEN_NS = 20_000.0
RUN_MUST = 0.97
SMALL_MUST = 0.7

Measured = Callable[[bool], float]


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    events: int
    large_bytes: int
    small_files: int
    pairs: int
    profile: str


FULL = Size(100_000_000, 1 << 30, 5_000, 9, "release")
SHORT = Size(10_000_000, 64 << 20, 500, 5, "dev")


def event_costs(size: Size) -> dict[str, float]:
    """Nanoseconds of an event: off, of another room, written."""
    command = ["cargo", "run", "--quiet", "--locked", "--profile", size.profile]
    command += ["-p", "farline-logs", "--example", "event_cost", str(size.events)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    costs: dict[str, float] = json.loads(done.stdout)
    return costs


def event_rows(size: Size) -> Iterator[Row]:
    """What an event costs beside what it may."""
    found = [event_costs(size) for _ in range(5)]
    limits = {"off_ns": UNWANTED_NS, "other_room_ns": UNWANTED_NS, "written_ns": WRITTEN_NS}
    for name, most in limits.items():
        pairs = [(one[name], most) for one in found]
        yield row(f"event {name.removesuffix('_ns')}", "ns", pairs, less_is_better=True)


def environment(folder: Path, logged: bool) -> Mapping[str, str]:
    """Where farline keeps what it remembers, and whether it logs."""
    own = {name: str(folder / name) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    return {**os.environ, **own, **({"FARLINE_LOG": "debug"} if logged else {})}


@contextmanager
def serving(folder: Path, logged: bool) -> Iterator[str]:
    """A server; gives a ticket to it."""
    command = [str(FARLINE), "serve", "--json", "-B", "127.0.0.1", "-p", "0"]
    command += ["--log-file", str(folder / "server.log")] if logged else []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(folder, logged)
    ) as server:
        try:
            assert server.stdout is not None
            yield str(json.loads(server.stdout.readline())["ticket"])
        finally:
            server.kill()


def record_of(folder: Path, logged: bool, *words: str) -> dict[str, Any]:
    """The record of one run."""
    command = [str(FARLINE), *words, "--json", "--no-store"]
    command += ["--log-file", str(folder / "client.log")] if logged else []
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment(folder, logged)
    )
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def probe_gbps(folder: Path, logged: bool) -> float:
    """Gb/s of a probe of two seconds."""
    with serving(folder, logged) as ticket:
        record = record_of(folder, logged, "probe", ticket, "-t", "2s", "-P", "2")
    return float(record["summary"]["forward"]["total_bps"]) / 1e9


def copy_s(folder: Path, source: Path, logged: bool) -> float:
    """Seconds that a copy moved data for, on one host."""
    with tempfile.TemporaryDirectory(dir=folder) as into:
        return float(record_of(folder, logged, "copy", f"{source}/", f"{into}/to")["run_s"])


def run_rows(folder: Path, size: Size) -> Iterator[Row]:
    """Runs with and without logs."""
    large, small = folder / "large", folder / "small"
    large.mkdir()
    small.mkdir()
    (large / "file").write_bytes(os.urandom(1 << 20) * (size.large_bytes >> 20))
    for number in range(size.small_files):
        (small / f"file-{number}").write_bytes(b"x" * 4096)
    probes = both(partial(probe_gbps, folder), size.pairs)
    yield row("probe lo 2str debug / off", "Gb/s", probes, must=RUN_MUST)
    for name, source, must in (("large", large, RUN_MUST), ("small", small, SMALL_MUST)):
        copies = both(partial(copy_s, folder, source), size.pairs)
        yield row(f"copy {name} debug / off", "s", copies, less_is_better=True, must=must)


def both(measured: Measured, pairs: int) -> list[tuple[float, float]]:
    """Pairs with and without logs; the first of each is nobody's: it warms caches up."""
    measured(False)
    return interleave(lambda: measured(True), lambda: measured(False), pairs)


def main() -> int:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="see only that the bench works")
    options = parser.parse_args()
    size = SHORT if options.short else FULL
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        rows = itertools.chain(event_rows(size), run_rows(Path(folder), size))
        return finish("log-overhead", rows)


if __name__ == "__main__":
    program(main)
