"""Least squares for the smallest of several bounds.

Which bound holds in which row is not known beforehand: it is guessed, the numbers are fitted by
weighted linear least squares, and the guess is made again with them, until it stays. Several
first guesses guard against poor ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from farline.findings.bound_terms import FULL, Bools, Floats, PairTable, Term

_ROUNDS = 12
_KEEP = 1e-9
"""Weight with which a number that no row tells stays as it was."""


@dataclass(frozen=True)
class Fit:
    """Terms and their numbers; `misfit` is the weighted sum of squares that is left."""

    terms: tuple[Term, ...]
    theta: tuple[float, ...]
    misfit: float

    def log_rate(self, table: PairTable, without: Iterable[Term] = ()) -> Floats:
        """Predicted logarithm of each row's rate, also of rows that were not fitted.

        `without` leaves terms out: what rates would be if these were mended. Capacities stay.
        """
        left = [
            (term, theta)
            for term, theta in zip(self.terms, self.theta, strict=True)
            if term not in set(without)
        ]
        predicted = _full(table)
        for term, theta in left:
            if term.is_bound:
                predicted = np.minimum(predicted, theta + term.offset(table))
        for term, theta in left:
            if not term.is_bound:
                predicted = predicted + np.where(term.mask(table), theta, 0.0)
        return predicted

    def holds(self, table: PairTable, term: Term) -> Bools:
        """Rows in which a bound is the smallest, or which a share touches."""
        index = self.terms.index(term)
        if not term.is_bound:
            return term.mask(table)
        own = self.theta[index] + term.offset(table)
        others = _full(table)
        for other, theta in zip(self.terms, self.theta, strict=True):
            if other.is_bound and other != term:
                others = np.minimum(others, theta + other.offset(table))
        return np.isfinite(own) & (own < others)

    def number(self, term: Term) -> float:
        """θ of a term."""
        return self.theta[self.terms.index(term)]


def _full(table: PairTable) -> Floats:
    """Bounds that are known: capacities, where paths differ in them."""
    capacity = table.capacity_bps
    if np.all(capacity == capacity[0]):
        return np.full(len(table), np.inf)
    return np.asarray(np.log(FULL * capacity))


def fit(table: PairTable, terms: Sequence[Term], starts: Iterable[Sequence[float]]) -> Fit:
    """The best fit of `terms`, from first guesses of every θ."""
    bounds = [term for term in terms if term.is_bound]
    shares = [term for term in terms if not term.is_bound]
    ordered = [*bounds, *shares]
    offsets = np.vstack([term.offset(table) for term in bounds] + [_full(table)])
    touched = np.array([term.mask(table) for term in shares], dtype=np.float64)
    touched = touched.reshape(len(shares), len(table))
    best: tuple[float, Floats] | None = None
    for start in starts:
        given = dict(zip(terms, start, strict=True))
        theta = np.array([given[term] for term in ordered])
        found = _improve(table, offsets, touched, theta)
        if best is None or found[0] < best[0]:
            best = found
    if best is None:
        raise ValueError("a fit needs a first guess")
    numbers = dict(zip(ordered, best[1].tolist(), strict=True))
    return Fit(tuple(terms), tuple(numbers[term] for term in terms), best[0])


def _improve(
    table: PairTable, offsets: Floats, touched: Floats, theta: Floats
) -> tuple[float, Floats]:
    """Misfit and numbers after rounds of guessing the bounds and fitting."""
    count, rows = len(offsets) - 1, np.arange(len(table))
    weight, target = table.weight, table.log_rate
    best_misfit, best_theta = np.inf, theta
    held_before: NDArrayInt | None = None
    for _ in range(_ROUNDS):
        values = offsets.copy()
        values[:count] += theta[:count, None]
        held = np.argmin(values, axis=0)
        shared = theta[count:] @ touched
        left = target - values[held, rows] - shared
        misfit = float(weight @ left**2)
        if misfit < best_misfit:
            best_misfit, best_theta = misfit, theta
        if held_before is not None and np.array_equal(held, held_before):
            break
        held_before = held
        design = np.zeros((len(rows), len(theta)))
        free = held < count
        design[rows[free], held[free]] = 1.0
        design[:, count:] = touched.T
        scaled = design * weight[:, None]
        normal = design.T @ scaled
        normal[np.diag_indices(len(theta))] += _KEEP
        wanted = scaled.T @ (target - offsets[held, rows]) + _KEEP * theta
        theta = np.linalg.solve(normal, wanted)
    return best_misfit, best_theta


NDArrayInt = np.ndarray[tuple[int, ...], np.dtype[np.intp]]
