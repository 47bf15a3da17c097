"""Recorded sweeps that were never recorded: paths, kinds of data and noise as production has them.

What is imitated are figures of 79,900 real GridFTP transfers (docs/design/tuning.md): the mean and
90th percentile of what constant numbers of streams lose, the spread of repeats, the memory of load.
A path's curve over streams is a multiple of the usual one, with a bend of its own; kinds of data
on it bend a little more. Seeded: the same number gives the same sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farline.store.paths import PastTransfer

Floats = NDArray[np.float64]

COUNTS = (1, 2, 4, 8, 16, 32)
USUAL = np.array([-0.48, -0.23, -0.10, 0.0, 0.02, 0.03])
BEND, BEND_LENGTH = 0.15, 1.5
"""Standard deviation of a path's own bend, octaves over which it is one."""
PATH_SHARE = 0.7
"""Share of that variance which belongs to the path; the rest to the kind of data."""
STEEPNESS = (2.0, 0.5)
"""Gamma distribution of what the usual curve is multiplied by."""
REPEAT_SD, LOAD_SD, LOAD_MEMORY = 0.20, 0.15, 0.8
"""Of repeats that follow each other, of the path's load, and how much of that lasts to the next."""
KINDS = (22.0, 26.0, 30.0)
"""log2 of the mean file size of each kind of data."""
DAY_S = 86_400.0


@dataclass(frozen=True, eq=False)
class Sweep:
    """One path with one kind of data: its noise-free ln Mbit/s at `COUNTS`."""

    path: int
    kind: int
    curve: Floats
    rtt_ms: float

    def regret(self, streams: int) -> float:
        """What is lost of the best setting."""
        return float(1 - np.exp(self.curve[COUNTS.index(streams)] - self.curve.max()))


def make_sweeps(paths: int, seed: int) -> list[Sweep]:
    """Every kind of data on every path."""
    rng = np.random.default_rng(seed)
    octaves = np.arange(6.0)
    apart = (octaves[:, None] - octaves) / BEND_LENGTH
    root = np.linalg.cholesky(np.exp(-(apart**2) / 2) + 1e-9 * np.eye(6))
    found = []
    for path in range(paths):
        level = rng.normal(7.0, 0.8)
        own = rng.gamma(*STEEPNESS) * USUAL
        own = own + BEND * np.sqrt(PATH_SHARE) * (root @ rng.normal(size=6))
        rtt_ms = float(np.exp(rng.uniform(np.log(1.0), np.log(100.0))))
        for kind in range(len(KINDS)):
            bend = BEND * np.sqrt(1 - PATH_SHARE) * (root @ rng.normal(size=6))
            found.append(Sweep(path, kind, level + rng.normal(0, 0.3) + own + bend, rtt_ms))
    return found


class Load:
    """What a path reaches, run after run: repeats with a heavy tail on a load that lasts."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._load = float(self._rng.normal(0, LOAD_SD))

    def log_rate(self, sweep: Sweep, streams: int) -> float:
        """ln Mbit/s of the next run."""
        fresh = self._rng.normal(0, LOAD_SD * np.sqrt(1 - LOAD_MEMORY**2))
        self._load = LOAD_MEMORY * self._load + float(fresh)
        # Student's t with five degrees of freedom has a kurtosis of nine.
        noise = REPEAT_SD * float(self._rng.standard_t(5)) * np.sqrt(3 / 5)
        return float(sweep.curve[COUNTS.index(streams)] + self._load + noise)


def past_transfers(sweep: Sweep, now_s: float, seed: int, repeats: int = 2) -> list[PastTransfer]:
    """A sweep as it was run before: every count `repeats` times, a few days ago."""
    load = Load(seed)
    ended_s = now_s - 3 * DAY_S
    rows: list[PastTransfer] = []
    for repeat in range(repeats):
        for streams in COUNTS:
            rate_bps = 1e6 * float(np.exp(load.log_rate(sweep, streams)))
            rows.append(_row(sweep, streams, rate_bps, ended_s + 60 * len(rows), f"{repeat}"))
    return rows


def _row(sweep: Sweep, streams: int, rate_bps: float, ended_s: float, name: str) -> PastTransfer:
    far = f"site{sweep.path}"
    files = 64
    known: dict[str, Any] = {
        "kind": "ingested", "tool": "gridftp", "source": f"{far}-{sweep.kind}.log",
        "started_s": ended_s - 60, "ended_s": ended_s, "duration_s": 60.0,
        "from_host": "near", "to_host": far, "from_names": ("near",), "to_names": (far,),
        "path": f"near > {far}", "rate_bps": rate_bps,
        "bytes": round(files * 2.0 ** KINDS[sweep.kind]), "files": files, "concurrency": 4,
        "pipelining": 4, "streams": 4 * streams, "parallelism": streams,
        "rtt_ms": sweep.rtt_ms, "capacity_bps": 1e10, "window_bytes": 32 << 20,
        "transport": "tcp", "congestion_control": name[:0] or None,
    }  # fmt: skip
    return PastTransfer(**known)
