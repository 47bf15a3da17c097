"""How sure the means of a profile are, and what is computed from them by weights.

Every mean is of independent runs, so the variance of a weighted sum of means is closed:
Var(sum w_k m_k) = sum w_k² s_k² / n_k. Derived profiles (differences, ratios, parts) keep the
weights by which they follow from measured means, so the same formula holds for them, to first
order.

Rules:

- A knot with one run has no deviation of its own. It takes the pooled one, the root of
  sum (n_k − 1) s_k² / sum (n_k − 1) over knots with two or more runs.
- Where no knot has two runs nothing is known, and there is no interval.
- Intervals are Student's t with the degrees of freedom of Welch and Satterthwaite,
  (sum c_k)² / sum (c_k² / (n_k − 1)), with c_k = w_k² s_k² / n_k and, where the deviation is
  pooled, sum (n_k − 1) in place of n_k − 1. With many runs that is the normal interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.interpolation import WeightRows

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Spread:
    """Variance (S,) and degrees of freedom (S,) of S independent means.

    `weights` (K, S) say how K knots follow from them; None: K = S, each knot is one of the means.
    `pooled` is how many of the means took the pooled deviation.
    """

    variance: Floats
    freedom: Floats
    weights: Floats | None = None
    pooled: int = 0

    @property
    def known(self) -> bool:
        """Whether anything is known: somewhere two runs were made alike."""
        return not bool(np.isnan(self.variance).any())

    def onward(self, rows: WeightRows) -> Spread:
        """Spread of P values that follow from the K knots by `rows`."""
        if self.weights is None:
            return Spread(self.variance, self.freedom, rows.dense(len(self.variance)), self.pooled)
        whole = rows.of(self.weights.T).T
        return Spread(self.variance, self.freedom, whole, self.pooled)

    def standard_error(self, rows: WeightRows) -> Floats:
        """Standard errors (R,) of R weighted sums of the knots; NaN where none is known."""
        error: Floats = np.sqrt(self._parts(rows)[0].sum(axis=1))
        return error

    def half_width(self, rows: WeightRows, confidence: float) -> Floats:
        """Half of the confidence intervals (R,) of R weighted sums; NaN where none is known."""
        from scipy.special import stdtrit

        parts, parts_freedom = self._parts(rows)
        variance = parts.sum(axis=1)
        squares = (parts**2 / parts_freedom).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            # No variance at all: any number of degrees of freedom gives the same interval.
            freedom = np.where(squares > 0, variance**2 / squares, 1.0)
        critical = stdtrit(freedom, 0.5 + checked_confidence(confidence) / 2)
        half: Floats = critical * np.sqrt(variance)
        return half

    def _parts(self, rows: WeightRows) -> tuple[Floats, Floats]:
        """What single means add to the variance of each sum, and their degrees of freedom."""
        if self.weights is None:
            return rows.weights**2 * self.variance[rows.places], self.freedom[rows.places]
        return rows.of(self.weights.T).T ** 2 * self.variance, self.freedom


def together(first: Spread, second: Spread, by_first: WeightRows, by_second: WeightRows) -> Spread:
    """Spread of P values that follow from the knots of two independent spreads."""
    one, other = first.onward(by_first), second.onward(by_second)
    assert one.weights is not None and other.weights is not None
    return Spread(
        np.concatenate([one.variance, other.variance]),
        np.concatenate([one.freedom, other.freedom]),
        np.hstack([one.weights, other.weights]),
        one.pooled + other.pooled,
    )


def spread_of(sd: Floats, n: Floats) -> Spread:
    """Spread of means of `n` runs (K,) with sample standard deviations `sd` (K,), NaN if unknown.

    Knots with an unknown deviation take the pooled one; with none known, all is NaN.
    """
    own = (n > 1) & ~np.isnan(sd)
    if not own.any():
        return Spread(np.full(len(n), np.nan), np.full(len(n), np.nan))
    freedom = n[own] - 1
    pooled = float((freedom * sd[own] ** 2).sum() / freedom.sum())
    squares = np.where(own, sd, 0.0) ** 2
    return Spread(
        np.where(own, squares, pooled) / n,
        np.where(own, n - 1, freedom.sum()),
        pooled=int((~own).sum()),
    )


def checked_confidence(confidence: float) -> float:
    """The confidence itself.

    Raises:
        SpecError: when it is not between 0 and 1.
    """
    if not 0.0 < confidence < 1.0:
        raise SpecError(f"confidence: {confidence} is not between 0 and 1")
    return confidence
