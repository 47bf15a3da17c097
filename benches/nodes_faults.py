"""Copies by two nodes a side, one of which is killed, cut off or suspended on the way.

Cases are drawn from a seed: what happens (each a third of them), to which of the four nodes, and
when, between 1 s and 5 s after data have begun to flow. A case ended right if the copy says so, all
files are there, and nothing is left beside them. Rows: cases that ended right / cases, in all and
by what happened; and what was lost in rate: the bytes that were missing when it happened over the
time that they took, beside the share of the other node (half the rate of an undisturbed copy).
`--runs` (RUNS=30), `--seed` (SEED=1), `--short` (SHORT=1) for three cases. Needs root; the whole
takes about a quarter of an hour.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from _contract import Row, finish
from _copy import trees
from _program import program
from farline.testbeds import Testbed, load

KINDS = ("killed", "cut", "suspended")
HOSTS = ("source-1", "source-2", "sink-1", "sink-2")
RATE_BPS = 80_000_000
LARGE_BYTES = 80 << 20
LIMIT_S = 180
STALL_S = 5


@dataclass(frozen=True)
class Case:
    """What happens."""

    number: int
    kind: str
    host: str
    after_s: float


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    case: Case
    problem: str | None
    left_bytes: int
    """What was missing when it happened."""
    took_s: float
    """From then to the end."""


def cases(seed: int, count: int) -> list[Case]:
    """The cases of a seed."""
    draw = random.Random(seed)
    return [
        Case(number, KINDS[number % len(KINDS)], draw.choice(HOSTS), draw.uniform(1, 5))
        for number in range(count)
    ]


def processes_of(bed: Testbed, host: str) -> list[int]:
    """Of farline on a host: what has orders or serves there."""
    net = Path(bed.hosts[host].namespaces["net"]).stat().st_ino
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            is_there = entry.name.isdigit() and (entry / "ns" / "net").stat().st_ino == net
            words = (entry / "cmdline").read_bytes().split(b"\0") if is_there else []
            if b"--order" in words or b"--copy-session" in words:
                found.append(int(entry.name))
    return found


def received(bed: Testbed) -> int:
    """Bytes that have come to the sinks: partial files have their room before their bytes."""
    found = 0
    for host in HOSTS[2:]:
        lines = bed.hosts[host].run(["cat", "/proc/net/dev"]).stdout.splitlines()
        found += sum(int(line.split(":")[1].split()[0]) for line in lines if ":" in line)
    return found


def begin(bed: Testbed, source: Path, target: Path) -> subprocess.Popen[str]:
    """The copy, once data flow."""
    pool = f"testbed:{bed.name}"
    copy = subprocess.Popen(
        [sys.executable, "-m", "farline", "copy", "--no-store", "-q",
         "--stall-timeout", f"{STALL_S}s", f"{pool}:source-[1-2]{source}/",
         f"{pool}:sink-[1-2]{target}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + LIMIT_S
    while received(bed) < 1 << 20 and copy.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    return copy


def disturb(bed: Testbed, case: Case) -> list[int]:
    """Lets it happen; the processes that it happened to."""
    if case.kind == "cut":
        bed.cut(case.host)
        return []
    hurt = processes_of(bed, case.host)
    for process in hurt:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL if case.kind == "killed" else signal.SIGSTOP)
    return hurt


def run(case: Case, source: Path, target: Path, whole: int) -> Outcome:
    """One case on a bed of its own."""
    with Testbed.up(load("nodes", k=2, rtt_s="4ms", rate_bps=RATE_BPS)) as bed:
        copy = begin(bed, source, target)
        time.sleep(case.after_s)
        left = max(0, whole - received(bed))
        began_s = time.monotonic()
        hurt = disturb(bed, case)
        try:
            _, said = copy.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            said = f"still running after {LIMIT_S} s"
        finally:
            copy.kill()
            copy.wait()
            for process in hurt:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        took_s = time.monotonic() - began_s
    return Outcome(case, _problem(copy.returncode, said, source, target), left, took_s)


def _problem(code: int, said: str, source: Path, target: Path) -> str | None:
    if code != 0:
        return f"exit code {code}: {(said.strip().splitlines() or ['nothing said'])[-1]}"
    same = subprocess.run(["diff", "-rq", source, target], capture_output=True, check=False)
    if same.returncode != 0:
        return same.stdout.decode(errors="replace")[:200]
    return "left something" if (target / ".farline-partial").exists() else None


def rows(outcomes: Sequence[Outcome], whole_bps: float) -> Iterator[Row]:
    """Rows of cases that ended right, and of what each kind cost."""
    yield _right("all", outcomes)
    for kind in KINDS:
        of_it = [one for one in outcomes if one.case.kind == kind]
        if of_it:
            yield _right(kind, of_it)
    for kind in KINDS:
        rates = [
            8 * one.left_bytes / one.took_s
            for one in outcomes
            if one.case.kind == kind and one.left_bytes and one.problem is None
        ]
        if rates:
            ours, share = statistics.median(rates), whole_bps / 2
            low, high = min(rates) / share, max(rates) / share
            # It is told of, and bears on nothing: what is left may be less than a start costs.
            yield Row(f"{kind}: rate of the rest", ours / 1e6, share / 1e6, "Mb/s", ours / share,
                      low, high, must=0.0)  # fmt: skip


def _right(name: str, outcomes: Sequence[Outcome]) -> Row:
    right = sum(one.problem is None for one in outcomes)
    ratio = right / len(outcomes)
    return Row(name, right, len(outcomes), "cases", ratio, ratio, ratio)


def undisturbed(source: Path, target: Path, whole: int) -> float:
    """Bit/s of a copy to which nothing happens, from when data flow."""
    with Testbed.up(load("nodes", k=2, rtt_s="4ms", rate_bps=RATE_BPS)) as bed:
        copy = begin(bed, source, target)
        left, began_s = whole - received(bed), time.monotonic()
        _, said = copy.communicate(timeout=LIMIT_S)
    if copy.returncode != 0:
        raise SystemExit(f"nodes-faults: {said.strip().splitlines()[-1]}")
    return 8 * left / (time.monotonic() - began_s)


def main() -> int:
    """Runs the cases; prints and keeps what came of them."""
    options = _parse()
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="farline-node-faults-") as top:
        source = Path(top) / "source"
        trees.small_files(source, 60, 5000, folders=3)
        with (source / "large").open("wb") as file:
            for _ in range(LARGE_BYTES >> 20):
                file.write(os.urandom(1 << 20))
        whole = LARGE_BYTES + 60 * 5000
        whole_bps = undisturbed(source, Path(top) / "undisturbed", whole)
        for case in cases(options.seed, 3 if options.short else options.runs):
            one = run(case, source, Path(top) / f"target-{case.number}", whole)
            outcomes.append(one)
            word = "right" if one.problem is None else f"WRONG: {one.problem}"
            print(f"{case.number} {case.host} {case.kind} {case.after_s:.1f} s after data flowed: "
                  f"{one.took_s:.1f} s for {one.left_bytes >> 20} MiB: {word}",
                  file=sys.stderr, flush=True)  # fmt: skip
    return finish("nodes-faults", rows(outcomes, whole_bps))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    env = os.environ.get
    parser.add_argument("--runs", type=int, default=int(env("RUNS", "30")), help="[$RUNS]")
    parser.add_argument("--seed", type=int, default=int(env("SEED", "1")), help="[$SEED]")
    parser.add_argument("--short", action="store_true", default=bool(env("SHORT")), help="[$SHORT]")
    return parser.parse_args()


if __name__ == "__main__":
    program(main, any_build=True)
