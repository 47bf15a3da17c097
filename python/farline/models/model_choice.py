"""Which model of a profile predicts best what it has not seen, and how few RTTs are enough.

Knots are left out one at a time and predicted from the others. The first and the last are never
left out: a profile ends there (Rao et al. 2018, section 3.1), so no model is asked beyond what it
was shown, and those that cannot go beyond are compared on the same knots as those that can.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from farline.errors import SpecError
from farline.models.profile_model import Knots, knots_of, twin

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from farline.models.profile_model import Floats, ProfileModel

    Truths = NDArray[np.bool_]

MOST_SINGLES, PARTS = 30, 10
"""Knots up to which each is left out alone; more are left out in so many parts, as leaving out
each would take time that grows with the square of their number."""

KNOTS_NEEDED = 4
"""Two inner knots: with one there is no telling how far its error is chance."""

_STANDARD_ERRORS = 2
"""Among nine models on some ten knots the least mean square is low by chance: one is too few."""

_MARGIN = 0.01
"""Errors up to one per cent of the rate above the least are as good to whoever asks."""

_ALIKE = 1.1
"""Errors up to a tenth above the least are no reason to pass over a simpler name."""

_EXACT = 1e-6
"""Errors that differ by less are the same: what is left of a profile without noise is rounding."""


@dataclass(frozen=True)
class Candidate:
    """One model, and its error on round-trip times that it was not shown.

    `error` is the root of the mean square of (predicted − measured) / measured, over knots left
    out one at a time; None where the model could not be fitted, and `why_not` says why. The mean is
    weighted as the knots are. `error_above` is the same root of the mean square and two standard
    errors of it. `model` is fitted to all knots, to which it has `parameters`.
    """

    model: ProfileModel
    error: float | None
    why_not: str = ""
    parameters: int = 0
    error_above: float | None = None


@dataclass(frozen=True)
class Choice:
    """The candidates, best first, and the chosen one fitted to all knots; `rule` in words."""

    candidates: tuple[Candidate, ...]
    chosen: ProfileModel
    rule: str


@dataclass(frozen=True, slots=True)
class Subset:
    """Some of a profile's RTTs, and how well they predict the others.

    `worst_gap` is the largest |predicted − measured| / measured over the others, 0 where there are
    none; it is at `worst_rtt_ms`.
    """

    rtt_ms: tuple[float, ...]
    worst_gap: float
    worst_rtt_ms: float | None


def choose(
    rtt_ms: ArrayLike,
    rate_bps: ArrayLike,
    weight: ArrayLike | None = None,
    models: Sequence[ProfileModel] | None = None,
    folds: Literal["leave-one-out"] | int | None = None,
) -> Choice:
    """Compares models by cross-validation and takes the simplest of those that are as good.

    `weight` is how many measurements each mean stands for. `models` are by default one of each
    (`profile_models.MODELS`); none is changed. `folds` may be a number of parts, of which each is
    left out once: inner knots in turn. Without it every inner knot is left out alone, above 30
    knots in ten parts, and `rule` says so. The rule is that of Breiman et al. (1984), with
    two standard errors instead of one: fewest parameters among those with a mean square within two
    of the least, or with an error at most 0.01 above it; of those with as few, the first in
    `models` whose error is no more than a tenth above the least of them.

    Raises:
        SpecError: for fewer than four different RTTs, values out of range, `folds` below 2, or
            when no model can be fitted.
    """
    from farline.models.profile_models import MODELS

    knots = knots_of(rtt_ms, rate_bps, weight, "choice of a model")
    if len(knots) < KNOTS_NEEDED:
        raise SpecError(
            f"choice of a model: {len(knots)} different RTTs are too few: at least {KNOTS_NEEDED} "
            "are needed"
        )
    if folds is None:
        folds = "leave-one-out" if len(knots) <= MOST_SINGLES else PARTS
    parts = _parts(len(knots), folds)
    kinds = [kind() for kind in MODELS.values()] if models is None else list(models)
    candidates = [_candidate(model, knots, parts) for model in kinds]
    ranked = sorted(candidates, key=lambda own: math.inf if own.error is None else own.error)
    if not ranked or ranked[0].error is None:
        why = "; ".join(own.why_not for own in ranked) or "no model was given"
        raise SpecError(f"choice of a model: no model can be fitted: {why}")
    chosen, rule = _simplest(candidates, ranked[0])
    if len(parts) < len(knots) - 2:
        rule += f"; RTTs were held out in {len(parts)} parts"
    return Choice(tuple(ranked), chosen.model, rule)


def predict_from(
    rtt_ms: ArrayLike,
    rate_bps: ArrayLike,
    shown_rtt_ms: ArrayLike,
    model: ProfileModel | None = None,
) -> Subset:
    """How well the knots at `shown_rtt_ms` predict the other knots.

    `model` is straight lines by default, as in Rao et al. 2018, Fig. 8; it is not changed.

    Raises:
        SpecError: for an RTT that is not among the knots, or too few for the model.
    """
    from farline.models.profile_models import PiecewiseLinear

    knots = knots_of(rtt_ms, rate_bps, None, "prediction from some RTTs")
    wanted_ms = np.unique(np.asarray(shown_rtt_ms, dtype=np.float64))
    missing = wanted_ms[~np.isin(wanted_ms, knots.rtt_ms)]
    if len(missing):
        raise SpecError(f"shown_rtt_ms: {missing[0]:g} ms is not one of the measured RTTs")
    shown = np.isin(knots.rtt_ms, wanted_ms)
    fitted = _fitted(PiecewiseLinear() if model is None else model, knots.only(shown))
    gaps = np.abs(_relative(fitted, knots))
    gaps[shown] = 0.0
    return _subset(knots, shown, gaps)


def best_subset(rtt_ms: ArrayLike, rate_bps: ArrayLike, size: int) -> Subset:
    """The `size` RTTs, ends among them, from which straight lines predict the others best.

    Best is the smallest worst gap; it is found exactly, by building chains of lines from the left.
    Of equal subsets the one with the smaller RTTs.

    Raises:
        SpecError: for a size below 2 or above the number of different RTTs.
    """
    knots = knots_of(rtt_ms, rate_bps, None, "choice of RTTs")
    count = len(knots)
    if not 2 <= size <= count:
        raise SpecError(f"size: {size} is out of range; allowed: 2 to {count} RTTs")
    cost = _line_gaps(knots)
    worst, came_from = cost[0], []
    for _ in range(size - 2):
        through = np.maximum(worst[:, np.newaxis], cost)
        came_from.append(np.argmin(through, axis=0))
        worst = through.min(axis=0)
    chain = [count - 1]
    for step in reversed(came_from):
        chain.append(int(step[chain[-1]]))
    return predict_from(knots.rtt_ms, knots.rate_bps, knots.rtt_ms[[0, *chain]])


def _parts(count: int, folds: Literal["leave-one-out"] | int) -> list[Truths]:
    """For each part, which knots are left out; never the ends."""
    inner = count - 2
    number = inner if folds == "leave-one-out" else folds
    if isinstance(number, bool) or not isinstance(number, int) or number < 2:
        raise SpecError(f"folds: {folds!r} is not allowed: use leave-one-out, or 2 or more")
    number = min(number, inner)
    turn = np.full(count, -1)
    turn[1:-1] = np.arange(inner) % number
    return [turn == part for part in range(number)]


def _candidate(model: ProfileModel, knots: Knots, parts: Sequence[Truths]) -> Candidate:
    """A model with its error over the parts."""
    squares = np.full(len(knots), np.nan)
    try:
        for out in parts:
            shown = _fitted(model, knots.only(~out))
            squares[out] = _relative(shown, knots.only(out)) ** 2
        whole = _fitted(model, knots)
    except SpecError as error:
        why = error.message.removeprefix(f"{model.name}: ")
        if getattr(model, "knots_needed", None) == len(knots):
            why += f", and one of the {len(knots)} is held out at a time"
        return Candidate(twin(model), None, why)
    mean, standard_error = _weighted_mean(squares[1:-1], knots.weight[1:-1])
    return Candidate(
        whole,
        math.sqrt(mean),
        parameters=whole.parameters_,
        error_above=math.sqrt(mean + _STANDARD_ERRORS * standard_error),
    )


def _simplest(candidates: Sequence[Candidate], best: Candidate) -> tuple[Candidate, str]:
    """The rule, and what it came to. `candidates` in the order in which they were given."""
    limit = max(best.error_above or 0.0, (best.error or 0.0) + _MARGIN)
    good = [(own, own.error) for own in candidates if own.error is not None and own.error <= limit]
    fewest = min(own.parameters for own, _ in good)
    simple = [(own, error) for own, error in good if own.parameters == fewest]
    alike = _ALIKE * min(error for _, error in simple) + _EXACT
    chosen, error = next(pair for pair in simple if pair[1] <= alike)
    rule = (
        f"{chosen.model.name}: fewest parameters ({chosen.parameters}) within two standard errors "
        f"or 1 % of the smallest error on held-out RTTs; its error is {_percent(error)}"
    )
    if chosen is not best:
        rule += f", the smallest is {_percent(best.error or 0)} ({best.model.name})"
    return chosen, rule


def _percent(error: float) -> str:
    if error < 1e-4:
        return "below 0.01 %"
    return f"{100 * error:.0f} %" if error >= 0.0995 else f"{100 * error:.2g} %"


def _fitted(model: ProfileModel, knots: Knots) -> ProfileModel:
    return twin(model).fit(knots.rtt_ms, knots.rate_bps, knots.weight)


def _relative(model: ProfileModel, knots: Knots) -> Floats:
    return np.asarray(model.predict(knots.rtt_ms) / knots.rate_bps - 1)


def _weighted_mean(values: Floats, weight: Floats) -> tuple[float, float]:
    """A weighted mean and its standard error."""
    share = weight / weight.sum()
    mean = float(np.sum(share * values))
    count = len(values)
    variance = float(np.sum((share * (values - mean)) ** 2)) * count / (count - 1)
    return mean, math.sqrt(variance)


def _line_gaps(knots: Knots) -> Floats:
    """Entry i, j: the worst gap between knots i and j of the straight line through them.

    Infinite where j is not after i.
    """
    count = len(knots)
    cost = np.full((count, count), np.inf)
    for first in range(count):
        for last in range(first + 1, count):
            ends = [first, last]
            line = np.interp(knots.rtt_ms[first:last], knots.rtt_ms[ends], knots.rate_bps[ends])
            cost[first, last] = np.abs(line / knots.rate_bps[first:last] - 1).max()
    return cost


def _subset(knots: Knots, shown: Truths, gaps: Floats) -> Subset:
    worst = int(np.argmax(gaps))
    return Subset(
        tuple(knots.rtt_ms[shown].tolist()),
        float(gaps[worst]),
        None if shown.all() else float(knots.rtt_ms[worst]),
    )
