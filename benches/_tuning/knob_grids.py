"""Grids of concurrency, streams a file and pipelining that were never run, with production's noise.

What is imitated (docs/design/tuning.md): concurrency counts most and saturates late, streams for a
file count little beside it, pipelining little; a constant of 32 files at once, one stream each, 32
requests ahead loses a tenth in the mean, and the textbook rule two thirds. Seeded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farline.models.transfer_knobs import textbook_knobs
from farline.store.paths import PastTransfer, PathEnds
from farline.tuning.grids import Grid, knob_grid, knob_prior
from farline.tuning.history import KIND, belief_after, evidence_for
from farline.tuning.search import KNOB_LIMITS, KNOWN_KNOB_LIMITS, BeliefSearch, Sample
from farline.tuning.situation import Setting, Situation

Floats = NDArray[np.float64]

GRID = knob_grid()
NOW_S = 1_790_000_000.0
REPEAT_SD = 0.25
BEND, PATH_SHARE = 0.08, 0.7
LENGTHS = np.array([2.0, 2.0, 3.0])


@dataclass(frozen=True, eq=False)
class KnobSweep:
    """One path with one kind of data: its noise-free ln Mbit/s over `GRID`."""

    path: int
    kind: int
    file_bytes: float
    rtt_ms: float
    curve: Floats

    def regret(self, setting: Setting) -> float:
        """What is lost of the best setting."""
        at = GRID.index(setting)
        assert at is not None  # settings of this grid
        return float(1 - np.exp(self.curve[at] - self.curve.max()))

    @property
    def situation(self) -> Situation:
        """What is known before."""
        return Situation(
            ends=PathEnds.between("near", f"site{self.path}"), tool="gridftp", modality="E",
            file_bytes=self.file_bytes, files=256, rtt_ms=self.rtt_ms, capacity_bps=1e10,
            window_bytes=32 << 20, now_s=NOW_S,
        )  # fmt: skip


def make_grids(paths: int, seed: int) -> list[KnobSweep]:
    """Two kinds of data on every path."""
    rng = np.random.default_rng(seed)
    root = _root(GRID)
    found = []
    for path in range(paths):
        level, rtt_ms = rng.normal(7, 0.8), float(np.exp(rng.uniform(0, np.log(100))))
        base = _shape(rng) + BEND * math.sqrt(PATH_SHARE) * (root @ rng.normal(size=len(root)))
        for kind, size in enumerate((2.0**22, 2.0**28)):
            own = BEND * math.sqrt(1 - PATH_SHARE) * (root @ rng.normal(size=len(root)))
            found.append(KnobSweep(path, kind, size, rtt_ms, level + base + own))
    return found


def _shape(rng: np.random.Generator) -> Floats:
    """Concurrency gains up to a knee, streams a file a little, pipelining a little."""
    c, p, q = GRID.points.T
    knee = rng.uniform(2.5, 6.0)
    gain, extra = rng.gamma(9.0, 0.05), rng.normal(0.02, 0.05)
    crowd = rng.gamma(2.0, 0.04) * np.maximum(0.0, c + p - rng.uniform(4.0, 7.0))
    return np.asarray(gain * np.minimum(c, knee) + extra * p + 0.027 * q - crowd)


def _root(grid: Grid) -> Floats:
    apart = (grid.points[:, None, :] - grid.points[None, :, :]) / LENGTHS
    covariance = np.exp(-(apart**2).sum(axis=2) / 2)
    return np.linalg.cholesky(covariance + 1e-6 * np.eye(len(covariance)))


def past_transfers(sweep: KnobSweep, seed: int, runs: int = 200) -> list[PastTransfer]:
    """Runs of earlier days at settings drawn at random."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, len(GRID.settings), runs)
    rates = sweep.curve[places] + rng.normal(0, REPEAT_SD, runs)
    return [
        _row(sweep, GRID.settings[at], 1e6 * float(np.exp(rate)), NOW_S - 4 * 86_400 + 60 * n)
        for n, (at, rate) in enumerate(zip(places, rates, strict=True))
    ]


def _row(sweep: KnobSweep, setting: Setting, rate_bps: float, ended_s: float) -> PastTransfer:
    far, concurrency = f"site{sweep.path}", setting.concurrency or 1
    known: dict[str, Any] = {
        "kind": "ingested", "tool": "gridftp", "source": f"{far}-{sweep.kind}.log",
        "started_s": ended_s - 60, "ended_s": ended_s, "duration_s": 60.0,
        "from_host": "near", "to_host": far, "from_names": ("near",), "to_names": (far,),
        "path": f"near > {far}", "rate_bps": rate_bps, "bytes": round(256 * sweep.file_bytes),
        "files": 256, "concurrency": concurrency, "streams": setting.streams,
        "parallelism": setting.streams // concurrency, "pipelining": setting.pipelining,
        "rtt_ms": sweep.rtt_ms, "capacity_bps": 1e10, "window_bytes": 32 << 20,
        "transport": "tcp",
    }  # fmt: skip
    return PastTransfer(**known)


def by_the_book(sweep: KnobSweep) -> Setting:
    """The published rule, on this grid."""
    knobs = textbook_knobs(1e10, sweep.rtt_ms / 1000, sweep.file_bytes, 256, 32 << 20)
    c, p, q = (
        2 ** min(5, round(math.log2(max(1, value))))
        for value in (knobs.concurrency, knobs.parallelism, knobs.pipelining)
    )
    return Setting(c * p, c, q)


def searched(sweep: KnobSweep, rows: list[PastTransfer], seed: int) -> tuple[Setting, int]:
    """farline's search, and how many samples it took."""
    rng = np.random.default_rng(seed)
    prior = knob_prior(GRID, sweep.situation)
    evidence = evidence_for(rows, sweep.situation, GRID)
    belief = belief_after(prior, evidence)
    anchor = GRID.settings[int(np.argmax(prior.mean))]
    limits = KNOWN_KNOB_LIMITS if evidence.count(KIND) else KNOB_LIMITS
    search = BeliefSearch(GRID, belief, limits, anchor)
    while (setting := search.next()) is not None:
        at = GRID.index(setting)
        assert at is not None  # settings of this grid
        rate_bps = 1e6 * math.exp(sweep.curve[at] + rng.normal(0, REPEAT_SD))
        search.learn(Sample(setting, rate_bps))
    return search.answer, len(search.samples)
