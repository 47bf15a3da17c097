"""Profiles of which only the direction is assumed: never rising, or rising and then falling.

Both are projections in squares: blocks of knots that break the rule are replaced by their weighted
mean (pool adjacent violators). Between knots they are straight, beyond the ends level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from farline.models.profile_model import Regressor

if TYPE_CHECKING:
    from farline.models.profile_model import Floats, Knots


class _Monotone(Regressor):
    """`knots_ms_` and `levels_bps_` are what the curve goes through."""

    knots_ms_: Floats
    levels_bps_: Floats

    def _keep(self, knots: Knots, levels_bps: Floats) -> None:
        self.knots_ms_, self.levels_bps_ = knots.rtt_ms, levels_bps
        self.parameters_ = 1 + int(np.count_nonzero(np.diff(levels_bps)))

    def _curve(self, rtt_ms: Floats) -> Floats:
        return np.asarray(np.interp(rtt_ms, self.knots_ms_, self.levels_bps_))


class Isotonic(_Monotone):
    """Non-increasing in RTT, the nearest to the means in weighted squares.

    What Rao et al. 2018 takes for granted of a network without its hosts (section 3.4).
    """

    name: ClassVar[str] = "isotonic"

    @property
    def knots_needed(self) -> int:
        """Two."""
        return 2

    def _learn(self, knots: Knots) -> None:
        self._keep(knots, _pooled(knots.rate_bps, knots.weight, increasing=False))

    def _words(self) -> str:
        return f"never increasing, {self.parameters_} levels over {len(self.knots_ms_)} RTTs"


class Unimodal(_Monotone):
    """Non-decreasing up to `peak_rtt_ms_` and non-increasing from there.

    The peak is where the weighted squares are least; of equal ones the one at the smallest RTT, so
    that what never rises has its peak at the first knot.
    """

    name: ClassVar[str] = "unimodal"
    peak_rtt_ms_: float

    @property
    def knots_needed(self) -> int:
        """Three."""
        return 3

    def _learn(self, knots: Knots) -> None:
        best_squares, best_bps = np.inf, knots.rate_bps
        for split in range(len(knots)):
            levels_bps = _rising_then_falling(knots, split)
            squares = float(np.sum(knots.weight * (levels_bps - knots.rate_bps) ** 2))
            if squares < best_squares:
                best_squares, best_bps = squares, levels_bps
        self._keep(knots, best_bps)
        self.peak_rtt_ms_ = float(knots.rtt_ms[np.argmax(best_bps)])

    def _words(self) -> str:
        return (
            f"increasing up to {self.peak_rtt_ms_:.3g} ms, then decreasing, {self.parameters_} "
            f"levels over {len(self.knots_ms_)} RTTs"
        )


def _rising_then_falling(knots: Knots, split: int) -> Floats:
    """The first `split` knots made to rise, the others to fall."""
    rising = _pooled(knots.rate_bps[:split], knots.weight[:split], increasing=True)
    falling = _pooled(knots.rate_bps[split:], knots.weight[split:], increasing=False)
    return np.concatenate([rising, falling])


def _pooled(rate_bps: Floats, weight: Floats, increasing: bool) -> Floats:
    from scipy.optimize import isotonic_regression

    if not len(rate_bps):
        return rate_bps
    return np.asarray(isotonic_regression(rate_bps, weights=weight, increasing=increasing).x)
