"""Straight lines between knots, as weights on the knots.

A profile between its knots is linear in its means, and so are its integrals. Written as weights on
the means, values, coefficients and their variances all come from the same few lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class WeightRows:
    """R weighted sums of K values, each of at most M of them: which (R, M), and weights (R, M).

    A value that is named twice in a row has weight 0 in one of them.
    """

    places: Whole
    weights: Floats

    def of(self, values: Floats) -> Floats:
        """The sums (R,) of values (K,), or (B, R) of (B, K)."""
        total: Floats = (self.weights * values[..., self.places]).sum(axis=-1)
        return total

    def dense(self, count: int) -> Floats:
        """The same as a matrix (R, K)."""
        matrix = np.zeros((len(self.places), count))
        np.add.at(matrix, (np.arange(len(matrix))[:, np.newaxis], self.places), self.weights)
        return matrix

    def times(self, factors: Floats) -> WeightRows:
        """Each row times a factor (R,)."""
        return WeightRows(self.places, self.weights * factors[:, np.newaxis])

    def onto_knots(self, weights: Floats, count: int) -> Floats:
        """Weights (F, K) on the K values that weights (F, R) on these sums come to."""
        total = np.zeros((len(weights), count))
        for onto, row in zip(total, weights, strict=True):
            parts = self.weights * row[:, np.newaxis]
            onto += np.bincount(self.places.ravel(), weights=parts.ravel(), minlength=count)
        return total


def line_rows(knots: Floats, at: Floats) -> WeightRows:
    """How P values on the lines between follow from those at `knots`, which increase strictly.

    Places before the first or after the last knot continue the first or last line; who must not
    have that asks for no such place.
    """
    if len(knots) == 1:
        return WeightRows(np.zeros((len(at), 1), dtype=np.int64), np.ones((len(at), 1)))
    left = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 2)
    share = (at - knots[left]) / (knots[left + 1] - knots[left])
    return WeightRows(np.stack([left, left + 1], axis=1), np.stack([1.0 - share, share], axis=1))


def knot_rows(count: int) -> WeightRows:
    """Every one of K values by itself."""
    return WeightRows(np.arange(count)[:, np.newaxis], np.ones((count, 1)))


def step_rows(count: int) -> WeightRows:
    """What each of K values has more than the one before it, K − 1 rows."""
    after = np.arange(1, count)
    places = np.stack([after, after - 1], axis=1)
    return WeightRows(places, np.tile([1.0, -1.0], (count - 1, 1)))


def bend_rows(knots: Floats) -> WeightRows:
    """The change of slope at every inner knot, K − 2 rows, in values over the unit of `knots`."""
    inner = np.arange(1, len(knots) - 1)
    before, after = 1.0 / np.diff(knots)[:-1], 1.0 / np.diff(knots)[1:]
    return WeightRows(
        np.stack([inner - 1, inner, inner + 1], axis=1),
        np.stack([before, -before - after, after], axis=1),
    )


def full_rows(weights: Floats) -> WeightRows:
    """Rows that name every value: weights (R, K)."""
    return WeightRows(np.tile(np.arange(weights.shape[1]), (len(weights), 1)), weights)


def mean_weights(places: Floats) -> Floats:
    """Weights (P,) by which values at P places give the mean of the lines through them.

    This is the trapezoid rule on the places as they lie, divided by what they span; exact for
    straight lines between them. One place has weight 1.
    """
    if len(places) == 1:
        return np.ones(1)
    half = np.diff(places) / (places[-1] - places[0]) / 2.0
    weights = np.zeros(len(places))
    weights[:-1] += half
    weights[1:] += half
    return weights


def places_within(knots: Floats, left: float, right: float) -> Floats:
    """`left`, the knots strictly between, and `right`; one of them if they are the same."""
    inner = knots[(knots > left) & (knots < right)]
    return np.concatenate([[left], inner, [right]] if right > left else [[left]])


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
