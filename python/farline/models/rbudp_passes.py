"""How many passes a blast needs when each packet is lost by itself: the whole distribution.

A packet is still missing after k resends when all of its k + 1 transmissions were lost. With n
packets P(N <= k) = (1 - L^(k+1))^n; every figure here follows from that. Computed with log1p and
expm1, so that a billion packets at a loss of 1e-9 keep their digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NEVER = 1e-18
"""A chance this small is none."""


@dataclass(frozen=True, slots=True)
class PassDistribution:
    """Distribution of N, the number of resends of `packets` packets lost with chance `loss`."""

    packets: float
    """How many; a mean may be broken."""
    loss: float

    def cdf(self, resends: int) -> float:
        """P(N <= resends)."""
        if resends < 0:
            return 0.0
        return float(np.exp(self.packets * log_kept(self.loss, np.array([resends + 1.0]))[0]))

    def reach(self) -> Floats:
        """P(N >= k) for k from 0 to where there is no chance left; the first is 1.

        One value per resend, as many as are needed: 1 without loss, some thousands near
        certain loss.
        """
        k = np.arange(1, 1 + self._most(), dtype=np.float64)
        beyond = -np.expm1(self.packets * log_kept(self.loss, k))
        return np.asarray(np.append(1.0, beyond[beyond > _NEVER]), dtype=np.float64)

    def probabilities(self) -> Floats:
        """P(N = k) for k from 0; they sum to 1."""
        reach = self.reach()
        return np.asarray(reach - np.append(reach[1:], 0.0), dtype=np.float64)

    @property
    def mean(self) -> float:
        """E[N]: the sum of P(N >= k) over k >= 1."""
        return math.fsum(self.reach()[1:])

    def quantile(self, share: float) -> int:
        """The smallest k with P(N <= k) >= `share`.

        Raises:
            ValueError: when `share` is not between 0 and 1.
        """
        if not 0 < share < 1:
            raise ValueError(f"share: {share:g} is out of range: allowed: between 0 and 1")
        more = self.reach()[1:]
        return int(np.count_nonzero(more > 1 - share))

    def _most(self) -> int:
        """Resends after which nothing is left to expect."""
        if self.loss == 0:
            return 0
        return math.ceil(
            (math.log(max(self.packets, 1.0)) - math.log(_NEVER)) / -math.log(self.loss)
        )


def log_kept(loss: float, chances: Floats) -> Floats:
    """ln(1 - loss^chances): of a packet that was sent so often, that it came."""
    if loss == 0:
        return np.zeros_like(chances)
    return np.log1p(-np.exp(chances * math.log(loss)))
