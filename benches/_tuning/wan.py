"""Paths of a modelled wide area: what streams bring where loss, windows, disks and others bind.

60 settings drawn at random, of round-trip time 1 to 366 ms, 0.1 to 10 Gb/s, loss 0 to 1e-3, caps
of a process and of a disk, buffers, competing flows. Formulas are those of `farline.models`: a
stream reaches CUBIC's rate at that loss, no more than its window; all of them share the line with
the others by count; a disk falls beyond the number of processes that it likes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farline.models.stream_curves import CUBIC_BETA, altman_share
from farline.models.tcp_steady import cubic_bps
from farline.tuning.situation import Situation

COUNTS = (1, 2, 4, 8, 16, 32, 64)
NOISE_SD = 0.05
"""Of samples on an emulated path that has no load but the one that is modelled."""


@dataclass(frozen=True)
class Wan:
    """One path."""

    rtt_ms: float
    capacity_bps: float
    loss: float
    buffer_bytes: int
    process_bps: float
    disk_bps: float
    disk_likes: int
    others: int

    def rate_bps(self, streams: int) -> float:
        """What so many streams reach together."""
        window_bps = self.buffer_bytes / 2 * 8000 / self.rtt_ms
        one = min(window_bps, self.process_bps, self.capacity_bps)
        if self.loss > 0:
            one = min(one, float(cubic_bps(self.rtt_ms, self.loss)))
        fair = self.capacity_bps * streams / (streams + self.others)
        if self.loss == 0 and self.others == 0 and window_bps * streams > self.capacity_bps:
            # What fills the line loses at its end, and several fill it better than one.
            fair *= float(altman_share(streams, CUBIC_BETA))
        crowd = max(0.0, streams / self.disk_likes - 1)
        return min(streams * one, fair, self.disk_bps / (1 + 0.1 * crowd))

    @property
    def best_bps(self) -> float:
        """That of the best count."""
        return max(map(self.rate_bps, COUNTS))

    def regret(self, streams: int) -> float:
        """What is lost of the best count."""
        return 1 - self.rate_bps(streams) / self.best_bps

    @property
    def situation(self) -> Situation:
        """What a search knows: the round-trip time, its buffers, its own interface."""
        return Situation(
            rtt_ms=self.rtt_ms, capacity_bps=1e10, nic_bps=1e10, window_bytes=self.buffer_bytes
        )


def make_wans(count: int, seed: int) -> list[Wan]:
    """Settings drawn at random."""
    rng = np.random.default_rng(seed)

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    return [
        Wan(
            rtt_ms=between(1, 366),
            capacity_bps=between(1e8, 1e10),
            loss=0.0 if rng.random() < 0.4 else between(1e-7, 1e-3),
            buffer_bytes=int(between(1 << 20, 128 << 20)),
            process_bps=between(5e8, 1e10),
            disk_bps=float("inf") if rng.random() < 0.5 else between(5e8, 1e10),
            disk_likes=int(rng.choice([4, 8, 16, 32])),
            others=int(rng.choice([0, 0, 0, 2, 8])),
        )
        for _ in range(count)
    ]
