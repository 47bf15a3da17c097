"""How wide an interval must be to hold as often as it says: from the scores of earlier estimates.

A score is how far off an estimate was, in its own standard deviations. The interval for a share of
all transfers reaches as far as that share of the last scores (split conformal prediction, Vovk et
al. 2005), so tails need no assumption: they are heavy here. Twenty start scores stand where there
are none yet, and fade once the path has its own: most paths are steadier than the start scores say.
The share that is aimed at follows what was missed (Gibbs and Candès 2021), in large steps at first
(Angelopoulos, Barber and Bates 2024), so that a path that changes is followed.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from itertools import accumulate

START_SCORES = (
    0.061232, 0.122718, 0.184718, 0.247507, 0.311382,
    0.376673, 0.443756, 0.513067, 0.585127, 0.660575,
    0.740213, 0.825076, 0.916547, 1.016545, 1.127855,
    1.254769, 1.404446, 1.590274, 1.842307, 2.256894,
)  # fmt: skip
"""Quantiles 1/21 to 20/21 of |t| with 10 degrees of freedom, to six digits."""

WINDOW = 300
"""Scores of a path that count."""

OWN_FROM, OWN_ALONE = 12, 32
"""Scores of a path from which on start scores fade and the share aimed at adapts, and from which on
start scores count no more. Kept for good, they held 63, 88 and 97 % at 50, 80 and 95 over the first
fifty transfers of a path, in made-up histories and in real copies alike."""

ADAPT_STEP = 0.01
"""Least step by which the share aimed at follows a miss; 1/n after the first n scores."""
_LEAST_MISS, _MOST_MISS = 0.002, 0.998
_ROUNDING = 1e-9

BEYOND = 1.25
"""Where more is asked for than there are scores: so many times the largest."""


def smallest_holding(scores: list[float], cover: float) -> float:
    """The score that `cover` of sorted `scores` and one to come stay within."""
    rank = math.ceil((len(scores) + 1) * cover)
    return scores[max(rank, 1) - 1] if rank <= len(scores) else BEYOND * scores[-1]


def start_quantile(cover: float) -> float:
    """Standard deviations that hold `cover` of all transfers of a path without history."""
    return smallest_holding(list(START_SCORES), cover)


class Calibration:
    """Scores of one path, oldest first, and what follows from them for any share."""

    def __init__(self, covers: Iterable[float], scores: Iterable[float] = ()) -> None:
        """Follows these shares from the first score on."""
        self.count = 0
        """Scores so far, those that no longer count included."""
        self._sorted: list[float] = []
        self._recent: deque[float] = deque()
        self._misses = {cover: 1.0 - cover for cover in covers}
        for score in scores:
            self.add(score)

    def add(self, score: float) -> None:
        """A transfer has ended this far off."""
        self.count += 1
        if self.count > OWN_FROM:
            step = max(ADAPT_STEP, 1 / self.count)
            for cover, aim in self._misses.items():
                missed = score > self._quantile(1.0 - aim)
                moved = aim + step * ((1.0 - cover) - missed)
                self._misses[cover] = min(max(moved, _LEAST_MISS), _MOST_MISS)
        insort(self._sorted, score)
        self._recent.append(score)
        if len(self._recent) > WINDOW:
            del self._sorted[bisect_left(self._sorted, self._recent.popleft())]

    def quantile(self, cover: float, is_new_kind: bool = False) -> float:
        """Standard deviations that hold `cover` of the transfers to come.

        Scores of kinds that were seen say too little of one that was not: for it, at least those
        of a path without history.

        Raises:
            KeyError: when that share is not followed.
        """
        own = self._quantile(1.0 - self._misses[cover])
        return max(own, start_quantile(cover)) if is_new_kind else own

    def _quantile(self, cover: float) -> float:
        count = len(self._sorted)
        weight = (OWN_ALONE - count) / (OWN_ALONE - OWN_FROM)
        if weight <= 0:
            return smallest_holding(self._sorted, cover)
        return _holding_with_start(self._sorted, min(weight, 1.0), cover)


def _holding_with_start(scores: list[float], weight: float, cover: float) -> float:
    """`smallest_holding` where each start score counts for `weight` of a real one."""
    both = sorted([(score, 1.0) for score in scores] + [(one, weight) for one in START_SCORES])
    wanted = (len(scores) + weight * len(START_SCORES) + 1) * cover - _ROUNDING
    held = accumulate(weight for _, weight in both)
    found = (score for (score, _), share in zip(both, held, strict=True) if share >= wanted)
    return next(found, BEYOND * both[-1][0])
