"""The nearest profile that is concave up to one RTT and convex from there.

The shape that Rao et al. 2018 (sections 1 and 5) sees in its measurements, without a formula:
straight lines between the knots, of which only the order of their slopes is asked for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from farline.models.profile_model import Regressor

if TYPE_CHECKING:
    from farline.models.profile_model import Floats, Knots

_BEND = 1e-7
"""A bend below this share of the mean rate over the whole range is rounding, not a bend."""


class ConcaveConvex(Regressor):
    """Slopes that fall, knot by knot, up to a transition and rise after it.

    Written as a straight line and a hinge at every inner knot: bends of one sign before the
    transition, of the other after it, of either at it. For each place of the transition that is a
    least-squares problem with bounds; the place with the least squares wins, of equal ones the one
    at the largest RTT. Squares are of relative deviations. Beyond the ends the last lines go on, no
    lower than 0.

    `transition_rtt_ms_` is half way between the last bend down and the first bend up; the first
    knot where all is convex, the last where all is concave, NaN for a straight line. What it may
    be as well, being between these bends, is `transition_range_ms_`.
    """

    name: ClassVar[str] = "concave-convex"
    knots_ms_: Floats
    levels_bps_: Floats
    transition_rtt_ms_: float
    transition_range_ms_: tuple[float, float]

    @property
    def knots_needed(self) -> int:
        """Three."""
        return 3

    def _learn(self, knots: Knots) -> None:
        span_ms = knots.rtt_ms[-1] - knots.rtt_ms[0]
        x = (knots.rtt_ms - knots.rtt_ms[0]) / span_ms
        scale_bps = float(np.mean(knots.rate_bps))
        basis = np.column_stack([np.ones_like(x), *(np.maximum(0, x - at) for at in x[:-1])])
        best, best_squares = np.zeros(len(x)), math.inf
        for place in range(len(x) - 2, 0, -1):
            found, squares = _bounded(basis, knots, scale_bps, place)
            if squares < best_squares * (1 - 1e-9) - 1e-18:
                best, best_squares = found, squares
        bends = np.where(np.abs(best[2:]) > _BEND, best[2:], 0.0)
        self.knots_ms_ = knots.rtt_ms
        self.levels_bps_ = scale_bps * (basis @ best)
        self.parameters_ = 2 + int(np.count_nonzero(bends))
        self._find_transition(bends)

    def _find_transition(self, bends: Floats) -> None:
        low_ms, high_ms = float(self.knots_ms_[0]), float(self.knots_ms_[-1])
        inner_ms = self.knots_ms_[1:-1]
        down_ms, up_ms = inner_ms[bends < 0], inner_ms[bends > 0]
        if len(down_ms) and len(up_ms):
            self.transition_range_ms_ = (float(down_ms[-1]), float(up_ms[0]))
        elif len(down_ms) or len(up_ms):
            end_ms = high_ms if len(down_ms) else low_ms
            self.transition_range_ms_ = (end_ms, end_ms)
        else:
            self.transition_range_ms_ = (low_ms, high_ms)
        straight = not len(down_ms) and not len(up_ms)
        self.transition_rtt_ms_ = math.nan if straight else sum(self.transition_range_ms_) / 2

    def _curve(self, rtt_ms: Floats) -> Floats:
        at_ms, levels_bps = self.knots_ms_, self.levels_bps_
        inside = np.interp(rtt_ms, at_ms, levels_bps)
        first, last = (np.diff(levels_bps) / np.diff(at_ms))[[0, -1]]
        before = first * np.minimum(0.0, rtt_ms - at_ms[0])
        after = last * np.maximum(0.0, rtt_ms - at_ms[-1])
        return np.asarray(np.maximum(0.0, inside + before + after))

    def _words(self) -> str:
        low_ms, high_ms = self.rtt_range_ms_
        if math.isnan(self.transition_rtt_ms_):
            return "a straight line"
        if self.transition_rtt_ms_ == high_ms:
            return f"concave from {low_ms:.3g} to {high_ms:.3g} ms"
        if self.transition_rtt_ms_ == low_ms:
            return f"convex from {low_ms:.3g} to {high_ms:.3g} ms"
        return f"concave up to {self.transition_rtt_ms_:.3g} ms, then convex"


def _bounded(basis: Floats, knots: Knots, scale_bps: float, place: int) -> tuple[Floats, float]:
    """Least squares with the transition at knot `place`: coefficients and their squares."""
    from scipy.optimize import lsq_linear

    count = len(knots)
    low, high = np.full(count, -np.inf), np.full(count, np.inf)
    # Coefficient 1 + k is the bend at knot k; that of knot 0 is the first slope.
    high[2 : 1 + place] = 0.0
    low[2 + place :] = 0.0
    root = np.sqrt(knots.weight) / (knots.rate_bps / scale_bps)
    found = lsq_linear(
        basis * root[:, np.newaxis],
        root * knots.rate_bps / scale_bps,
        (low, high),
        method="bvls",
        max_iter=50 * count,
    )
    return np.asarray(found.x), 2 * float(found.cost)
