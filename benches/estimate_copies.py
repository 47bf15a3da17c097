"""Estimates beside real copies over emulated paths, on-line: do intervals hold what they say?

Six paths (1 to 100 ms, 50 to 400 Mbit/s, with and without loss), fifty copies each of four kinds
of data with different settings; half-way the loss of every second path changes. Each copy is
estimated from those before it, then learnt. Needs root. The rates are wall-clock figures of this
machine, its load included, which is what an estimate has to bear. `--short` makes eight copies.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

from _contract import RESULTS, Row, finish
from _program import program
from estimate_coverage import bounded
from farline.estimating import Question, TransferEstimate, estimate_transfer
from farline.estimating.history import finished_of
from farline.store.paths import PastTransfer, PathEnds

COPIES, SHORT_COPIES = 50, 8
KINDS = ((1, 4_000_000), (20, 200_000), (150, 6_000), (3, 3_000_000))
"""Files and bytes of each."""
STREAMS = (1, 2, 4)
LEARNT = 10
"""Copies of a path after which it is a known one."""


@dataclass(frozen=True)
class Path_:
    """One emulated path."""

    rtt: str
    rate: str
    loss: str
    later_loss: str | None = None


PATHS = (
    Path_("1ms", "400Mbit", "0"),
    Path_("5ms", "200Mbit", "0", "0.001"),
    Path_("20ms", "100Mbit", "0.0001"),
    Path_("40ms", "200Mbit", "0", "0.0005"),
    Path_("60ms", "50Mbit", "0"),
    Path_("100ms", "100Mbit", "0.0001", "0"),
)


def work(ticket: str, count: int, seed: int, folder: Path) -> None:
    """Makes copies on a host of a testbed; prints each as a row of its path's history."""
    from farline.copying import CopyJob, CopyRequest
    from farline.store.paths import transfer_of

    draw = random.Random(seed)
    for number in range(count):
        if number % 4 == 0:
            kind = draw.randrange(len(KINDS))
        spec = {"streams": draw.choice(STREAMS), "copy": {}}
        request = CopyRequest.between(
            f"{folder}/{kind}/", f"{ticket}#{seed}-{number}", spec=spec, keep=False
        )
        result = CopyJob(request).wait().checked()
        assert result.record is not None
        if (row := transfer_of(result.record)) is not None:
            known = (row.started_s, row.ended_s, row.duration_s, row.rate_bps, row.bytes)
            print(json.dumps([*known, row.files, row.streams]), flush=True)


def fill(folder: Path) -> None:
    """The data: a folder for each kind."""
    for number, (files, size) in enumerate(KINDS):
        (folder / str(number)).mkdir()
        for name in range(files):
            (folder / str(number) / str(name)).write_bytes(os.urandom(size))


def copies(path: Path_, number: int, count: int, folder: Path) -> Iterator[list[float]]:
    """The copies over one path, in order."""
    from farline.testbeds import Testbed, load
    from farline.testbeds.serving import serving

    settings = {"rtt_s": path.rtt, "rate_bps": path.rate, "loss": path.loss}
    with (
        tempfile.TemporaryDirectory(dir=folder) as root,
        Testbed.up(load("back-to-back", **settings)) as bed,
    ):
        sender, receiver = bed.hosts.values()
        with serving(receiver, receiver.address, write=root) as (_, ticket):
            for half, loss in enumerate((path.loss, path.later_loss or path.loss)):
                bed.change(loss=loss)
                done = sender.run(
                    [
                        sys.executable, __file__, "--worker", ticket.partition("#")[0],
                        str(count // 2), str(2 * number + half), str(folder),
                    ],
                    check=True, stdout=subprocess.PIPE, text=True,
                )  # fmt: skip
                yield from map(json.loads, done.stdout.splitlines())


@dataclass(frozen=True)
class Judged:
    """What was estimated of one copy, and whether it held."""

    number: int
    estimate: TransferEstimate
    took_s: float

    def held(self, cover: float) -> bool:
        """Whether the interval holds it."""
        one = self.estimate.interval(cover)
        return one.duration_low_s <= self.took_s <= one.duration_high_s


def judge(rows: list[list[float]], path: Path_, name: str) -> list[Judged]:
    """Goes through the copies of a path: each is estimated from those before it."""
    known: list[PastTransfer] = []
    ends, found = PathEnds.between("a", name), []
    for number, one in enumerate(rows):
        row = _row(one, path, name)
        assert row.started_s is not None
        question = Question(row.bytes or 0, row.files or 1, row.started_s, streams=row.streams)
        made = estimate_transfer(question, known, ends)
        if (done := finished_of(row)) is None:
            continue
        found.append(Judged(number, made, done.duration_s))
        rate = done.log_rate
        score, residual = made.prediction.score(rate), made.prediction.residual(rate)
        known.append(replace(row, estimate={"score": score, "residual": residual}))
    return found


def _row(one: list[float], path: Path_, name: str) -> PastTransfer:
    from farline.spec.units import parse_rate, parse_rtt_ms

    started_s, ended_s, duration_s, rate_bps, size, files, streams = one
    return PastTransfer(
        "copy", "farline", f"{name}-{started_s}", started_s, ended_s, duration_s, "a", name,
        f"a > {name}", rate_bps, bytes=int(size), files=int(files), streams=int(streams),
        rtt_ms=parse_rtt_ms(path.rtt), capacity_bps=parse_rate(path.rate),
    )  # fmt: skip


def table(paths: list[list[Judged]]) -> Iterator[Row]:
    """The figures that are asked for."""
    for cover, bounds in ((0.5, (45.0, 58.0)), (0.8, (77.0, 86.0)), (0.95, (92.0, 98.0))):
        macro = mean(100 * mean(one.held(cover) for one in path) for path in paths)
        yield bounded(f"all, {100 * cover:.0f} % interval holds", "%", macro, *bounds)
    worst = min(100 * mean(one.held(0.8) for one in path) for path in paths)
    yield bounded("worst path, 80 % interval holds", "%", worst, 70.0, None)
    everything = [one for path in paths for one in path]
    known = [one for one in everything if one.number >= LEARNT and not one.estimate.is_new_kind]
    widths = [one.estimate.interval(0.8).duration_high_s / one.estimate.duration_s for one in known]
    if widths:
        yield bounded("known path and kind, half-width", "x", median(widths), None, 1.35)
    kept = 100 * mean(one.took_s <= one.estimate.sure_duration_s for one in everything)
    yield bounded("deadlines reserved at 90 % kept", "%", kept, 85.0, 96.0)


def main() -> int:
    """The bench."""
    count = SHORT_COPIES if "--short" in sys.argv or os.environ.get("SHORT") else COPIES
    with tempfile.TemporaryDirectory(prefix="farline-estimate-") as name:
        folder = Path(name)
        fill(folder)
        paths, kept = [], []
        for number, path in enumerate(PATHS):
            rows = list(copies(path, number, count, folder))
            kept.append([vars(path), rows])
            print(f"path {number}: {path.rtt} {path.rate}, {len(rows)} copies", flush=True)
            paths.append(judge(rows, path, f"path-{number}"))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "estimate-copies-rows.json").write_text(json.dumps(kept), encoding="utf-8")
    return finish("estimate-copies", table(paths))


if __name__ == "__main__":
    if "--worker" in sys.argv:
        ticket, count, seed, folder = sys.argv[sys.argv.index("--worker") + 1 :]
        work(ticket, int(count), int(seed), Path(folder))
    else:
        program(main, any_build=True)
