"""Straight lines between knots, as weights on the knots.

A profile between its knots is linear in its means, and so are its integrals. Written as weights on
the means, values, coefficients and their variances all come from the same few lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
