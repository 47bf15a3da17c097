"""Copies that are tuned while they run, over emulated paths that change, beside constant numbers.

Each case is copied once with every constant number of streams and once tuned, interleaved, with the
same change at the same moments. `ours` is the time of the tuned copy that begins with the number of
the first constant one, `peer` that of the best constant number, which nobody knows beforehand; the
ratio allows 15 %. Needs root, iperf3, and a minute for each of four copies of a case; `SHORT=1`
takes one case, `--repeat N` does all of it N times. Times are wall-clock figures of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _contract import Row, finish
from _program import program
from farline.testbeds import Testbed, load
from farline.testbeds.serving import serving

NOWHERE = subprocess.DEVNULL
ALLOWED = 1.15
MOST_S = 400.0
FLOWS = 6
"""Flows of a competitor."""

Act = Callable[[Testbed], None]


@dataclass(frozen=True)
class Case:
    """A copy over a path, and what happens to it at which second."""

    name: str
    rtt: str
    rate: str
    loss: str
    size_bytes: int
    events: tuple[tuple[float, str, Any], ...] = ()
    """Second, what (`loss`, `rate_bps`, `flows`), value."""


CASES = (
    Case("1ms link cut, restored", "1ms", "80Mbit", "0", 280_000_000,
         ((12, "rate_bps", "30Mbit"), (30, "rate_bps", "80Mbit"))),
    Case("50ms loss step", "50ms", "80Mbit", "0", 280_000_000, ((12, "loss", "0.0004"),)),
    Case("20ms competitor comes, goes", "20ms", "80Mbit", "0", 240_000_000,
         ((10, "flows", FLOWS), (30, "flows", 0))),
    Case("200ms loss from the start", "200ms", "60Mbit", "0.0002", 180_000_000),
    Case("100ms nothing changes", "100ms", "60Mbit", "0", 220_000_000),
)  # fmt: skip


class Others:
    """Flows of others from the background's host."""

    def __init__(self, bed: Testbed) -> None:
        """None yet."""
        self._bed = bed
        self._running: list[subprocess.Popen[str]] = []

    def set(self, flows: int) -> None:
        """So many from now on."""
        for one in self._running:
            one.kill()
            one.wait()
        self._running = []
        if not flows:
            return
        hosts = self._bed.hosts
        self._running.append(
            hosts["background-sink"].popen(["iperf3", "-s", "-1"], stdout=NOWHERE, stderr=NOWHERE)
        )
        time.sleep(0.5)
        to = self._bed.address("background-sink", "background-source")
        words = ["iperf3", "-c", to, "-P", str(flows), "-t", "600", "-C", "cubic"]
        self._running.append(
            hosts["background-source"].popen(words, stdout=NOWHERE, stderr=NOWHERE)
        )


def happen(bed: Testbed, others: Others, what: str, value: Any) -> None:
    """One event of a case."""
    if what == "flows":
        others.set(value)
    else:
        bed.change(**{what: value})


@contextmanager
def place(case: Case, folder: Path) -> Iterator[tuple[Testbed, str]]:
    """The path of a case and a ticket of the server at its other end."""
    settings = {"rtt_s": case.rtt, "rate_bps": case.rate, "loss": case.loss}
    with ExitStack() as stack:
        bed = stack.enter_context(Testbed.up(load("dumbbell", **settings)))
        to = bed.address("sink", "source")
        there = serving(bed.hosts["sink"], to, write=str(folder))
        _, ticket = stack.enter_context(there)
        yield bed, ticket.partition("#")[0]


def copied(case: Case, source: Path, folder: Path, words: list[str]) -> dict[str, Any]:
    """One copy: its record."""
    with place(case, folder) as (bed, ticket):
        others = Others(bed)
        # Every server is another one at the same address: nothing is remembered of the last.
        home = folder / f"home-{time.time_ns()}"
        places = {name: str(home / name) for name in ("state", "config", "data")}
        env = {**os.environ, **{f"XDG_{name.upper()}_HOME": at for name, at in places.items()}}
        command = [
            *(sys.executable, "-m", "farline", "copy", "--json", "--no-store", *words),
            *("--write-engine", "null", str(source), f"{ticket}#copy-{time.time_ns()}"),
        ]
        copy = bed.hosts["source"].popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            begun_s = time.monotonic()
            for at_s, what, value in case.events:
                time.sleep(max(0.0, begun_s + at_s - time.monotonic()))
                if copy.poll() is None:
                    happen(bed, others, what, value)
            out, _ = copy.communicate(timeout=MOST_S)
        finally:
            others.set(0)
            copy.kill()
        record: dict[str, Any] = json.loads(out)
        if record["status"] != "complete":
            raise RuntimeError(f"{case.name}: a copy failed: {record.get('error')}")
        return record


def row(case: Case, source: Path, folder: Path) -> Row:
    """Every constant number, and the tuned copy in the middle of them."""
    with source.open("wb") as file:
        for _ in range(case.size_bytes // 1_000_000):
            file.write(os.urandom(1_000_000))
    times: dict[str, float] = {}
    for name, words in (
        ("fixed 4", ["--streams", "4"]), ("fixed 8", ["--streams", "8"]),
        ("tuned", ["--streams", "4", "--tune", "auto"]), ("fixed 16", ["--streams", "16"]),
    ):  # fmt: skip
        record = copied(case, source, folder, words)
        times[name] = record["run_s"]
        if name == "tuned":
            changes = [
                f"{one['at_us'] / 1e6:.0f} s: {one.get('after')}"
                for one in record.get("adjustments") or []
            ]
            print(f"  {case.name}: {', '.join(changes) or 'no change'}", flush=True)
    told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in times.items())
    print(f"  {case.name}: {told}", flush=True)
    tuned = times.pop("tuned")
    ratio = ALLOWED * min(times.values()) / tuned
    return Row(case.name, tuned, min(times.values()), "s", ratio, ratio, ratio)


def main() -> int:
    """The bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=1)
    asked = parser.parse_args()
    cases = CASES[1:2] if os.environ.get("SHORT") else CASES
    with tempfile.TemporaryDirectory(prefix="farline-tune-paths-", dir="/dev/shm") as name:
        folder = Path(name)
        rows = (row(one, folder / "source", folder) for _ in range(asked.repeat) for one in cases)
        return finish("tune-paths", rows)


if __name__ == "__main__":
    program(main, any_build=True)
