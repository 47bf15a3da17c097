"""A transfer that has ended: what it was, how fast it went, and how well that had been foreseen."""

from __future__ import annotations

import math
from dataclasses import dataclass

from farline.estimating.workload import Workload


@dataclass(frozen=True, slots=True)
class Finished:
    """One transfer of the past, as the estimator learns from it.

    `score` and `residual` are those of the estimate that was made *before* it ran, if one was kept:
    the calibration of an estimator that is made anew from the history rests on them.
    """

    workload: Workload
    ended_s: float
    """When it ended: seconds of any clock that all transfers share."""
    rate_bps: float
    """Payload over the whole time; of tiny files the volume that they count as."""
    score: float | None = None
    """|log rate - estimated log rate| over the estimate's standard deviation."""
    residual: float | None = None
    """Log rate minus what was estimated without the load of the moment."""

    @property
    def log_rate(self) -> float:
        """Natural logarithm of the rate in Mbit/s."""
        return math.log(self.rate_bps / 1e6)

    @property
    def duration_s(self) -> float:
        """How long it took."""
        return 8 * self.workload.volume_bytes / self.rate_bps
