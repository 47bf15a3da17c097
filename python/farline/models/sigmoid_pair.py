"""Two sigmoids joined at a transition: concave before, convex after (Rao et al. 2018, [19, 30]).

g(τ) = 1 − 1/(1 + e^(−a(τ − τ₀))) falls from 1 to 0 with a > 0, concave before its inflection τ₀
and convex after it. The first branch is used before its inflection, the second after its own, so
τ₂ ≤ τ_T ≤ τ₁. The transition τ_T is one of the knots: the first where all is convex, the last
where all is concave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from farline.models.fitting import descend, log_given, thriftiest
from farline.models.profile_model import Regressor
from farline.spec.units import rate_human

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from farline.models.profile_model import Floats, Knots

_OUTLIER = 0.1
"""Relative deviation from which a knot counts by its deviation rather than by its square."""

_STEEPNESS = (1.0, 4.0, 16.0, 64.0)
_SHIFT_ROOTS = (0.1, 0.3, 0.6, 1.2)
"""The grid of starts: a times the range of RTTs, and the root of |τ₀ − τ_T| as a share of it."""

_LOG_STEEPNESS = (-7.0, 9.0)
_SHIFT_MAX = 10.0
"""What is looked at of both: from a straight level to a step, and ten ranges away."""

_TRIED, _TRIAL_STEPS = 5, 12
"""Starts, each at a transition of its own, that are followed for a while; the best then go on."""

_REFINED, _STEPS = 2, 60


class SigmoidPair(Regressor):
    """The pair, fitted to logarithms so that a far-off knot does not decide (soft L1 beyond 10 %).

    With `capacity_bps` as published: both branches are C·g and need not meet; `jump_bps_` is by how
    much the rate falls at the transition. Such a concave branch cannot begin below C/2. Without it
    (the default) the height is fitted too and the branches meet. One branch alone is kept where the
    second does not earn its place.

    `transition_rtt_ms_` is τ_T; `steepness_per_ms_` a₁ and a₂ and `inflection_ms_` τ₁ and τ₂, NaN
    for a branch that is not there; `height_bps_` is what multiplies the first branch that is there.
    """

    name: ClassVar[str] = "sigmoids"
    transition_rtt_ms_: float
    steepness_per_ms_: tuple[float, float]
    inflection_ms_: tuple[float, float]
    height_bps_: float
    jump_bps_: float
    _best: _Fitted
    _scale: tuple[float, float]

    def __init__(self, capacity_bps: float | None = None) -> None:
        """Keeps C where the published form is wanted; it is not looked at before `fit`."""
        self.capacity_bps = capacity_bps

    @property
    def knots_needed(self) -> int:
        """One more than a branch alone has parameters: four, three with a capacity."""
        return 4 if self.capacity_bps is None else 3

    def _learn(self, knots: Knots) -> None:
        height = log_given("capacity_bps", self.capacity_bps)
        low_ms, span_ms = float(knots.rtt_ms[0]), float(np.ptp(knots.rtt_ms))
        x = (knots.rtt_ms - low_ms) / span_ms
        data = _Data(x, np.log(knots.rate_bps), knots.weight)
        # Each branch of a pair has two knots at least: the transition is the first one's last.
        pairs = [_Form(float(at), True, True, height) for at in x[1:-2]]
        concave, convex = _Form(1.0, True, False, height), _Form(0.0, False, True, height)
        kinds = [[concave], [convex], [pair for pair in pairs if pair.parameters < len(x)]]
        whole = [_best_of(forms, data) for forms in kinds if forms]
        self._best, self._scale = thriftiest(whole, len(knots)), (low_ms, span_ms)
        self._name_parts()

    def _name_parts(self) -> None:
        """What was found, in ms and bit/s."""
        form, point = self._best.form, self._best.point
        low_ms, span_ms = self._scale
        parts = [(float(a[0]) / span_ms, low_ms + span_ms * float(at[0]))
                 for a, at in form.branches(point)]  # fmt: skip
        absent = (math.nan, math.nan)
        first, second = (
            ([] if form.concave else [absent]) + parts + ([] if form.convex else [absent])
        )
        self.parameters_ = self._best.parameters
        self.transition_rtt_ms_ = low_ms + span_ms * form.at
        self.steepness_per_ms_ = (first[0], second[0])
        self.inflection_ms_ = (first[1], second[1])
        self.height_bps_ = float(np.exp(form.height(point)[0]))
        before, after = np.exp(form.log_rate(point, np.array([form.at, np.nextafter(form.at, 2)])))
        self.jump_bps_ = float(before - after)

    def _curve(self, rtt_ms: Floats) -> Floats:
        low_ms, span_ms = self._scale
        return np.exp(self._best.form.log_rate(self._best.point, (rtt_ms - low_ms) / span_ms))

    def _words(self) -> str:
        form, (low_ms, high_ms) = self._best.form, self.rtt_range_ms_
        if not form.convex:
            shape = f"concave from {low_ms:.3g} to {high_ms:.3g} ms"
        elif not form.concave:
            shape = f"convex from {low_ms:.3g} to {high_ms:.3g} ms"
        else:
            shape = f"concave up to {self.transition_rtt_ms_:.3g} ms, then convex"
        return f"{shape}, from {rate_human(float(self._curve(np.array([low_ms]))[0]))}"


@dataclass(frozen=True, eq=False, slots=True)
class _Data:
    """RTTs from 0 to 1, logarithms of rates, weights."""

    x: Floats
    y: Floats
    weight: Floats


@dataclass(frozen=True, slots=True)
class _Form:
    """Which branches there are, where they meet (0 to 1), and the logarithm of a given height.

    A point is: the height unless given, then for each branch ln a and the root of its shift from
    `at`, so that any number is allowed.
    """

    at: float
    concave: bool
    convex: bool
    given_height: float | None

    @property
    def parameters(self) -> int:
        """Free figures, the place of the transition among them."""
        both = self.concave and self.convex
        return (self.given_height is None) + 2 * (self.concave + self.convex) + both

    def height(self, points: Floats) -> Floats:
        """ln of what multiplies the first branch, one for each point in a column."""
        if self.given_height is None:
            return points[..., 0, np.newaxis]
        return np.asarray([self.given_height])

    def branches(self, points: Floats) -> list[tuple[Floats, Floats]]:
        """Steepness and inflection of the branches that are there, in columns as well."""
        own = points if self.given_height is not None else points[..., 1:]
        signs = [1.0] * self.concave + [-1.0] * self.convex
        return [
            (
                np.exp(_within(own[..., 2 * place, np.newaxis], *_LOG_STEEPNESS)),
                self.at + sign * np.minimum(own[..., 2 * place + 1, np.newaxis] ** 2, _SHIFT_MAX),
            )
            for place, sign in enumerate(signs)
        ]

    def log_rate(self, points: Floats, x: Floats) -> Floats:
        """The curve: the first branch up to `at`, at it too, the second beyond.

        One point has one curve, rows of points have rows of curves.
        """
        branches, height = self.branches(points), self.height(points)
        left = _log_sigmoid(x, *branches[0])
        if len(branches) == 1:
            return np.asarray(height + left)
        right = _log_sigmoid(x, *branches[1])
        if self.given_height is None:
            at = np.array([self.at])
            right = right + _log_sigmoid(at, *branches[0]) - _log_sigmoid(at, *branches[1])
        return np.asarray(height + np.where(x <= self.at, left, right))

    def starts(self, data: _Data) -> Floats:
        """Points of a grid in rows, the height as the data have it."""
        branch = list(product(np.log(_STEEPNESS), _SHIFT_ROOTS))
        shapes = product(branch, repeat=self.concave + self.convex)
        points = np.array(list(shapes)).reshape(-1, 2 * (self.concave + self.convex))
        if self.given_height is None:
            points = np.column_stack([np.zeros(len(points)), points])
            gaps = data.y - self.log_rate(points, data.x)
            points[:, 0] = np.average(gaps, axis=1, weights=data.weight)
        return points


@dataclass(frozen=True, eq=False, slots=True)
class _Fitted:
    form: _Form
    point: Floats
    squares: float

    @property
    def parameters(self) -> int:
        """Those of the form."""
        return self.form.parameters


def sigmoid(rtt_ms: ArrayLike, steepness_per_ms: ArrayLike, inflection_ms: ArrayLike) -> Floats:
    """g(τ) = 1 − 1/(1 + e^(−a(τ − τ₀))): half at the inflection, without a unit."""
    rtts_ms, inflections_ms = np.asarray(rtt_ms, float), np.asarray(inflection_ms, float)
    return np.exp(_log_sigmoid(rtts_ms, np.asarray(steepness_per_ms, float), inflections_ms))


def _best_of(forms: list[_Form], data: _Data) -> _Fitted:
    """The best fit over forms: from each one's best start, a while from some, on from the best."""
    fits = [_best_start(form, data) for form in forms]
    for kept, steps in ((_TRIED, _TRIAL_STEPS), (_REFINED, _STEPS)):
        fits = sorted(fits, key=lambda fit: fit.squares)[:kept]
        fits = [_refined(fit, data, steps) for fit in fits]
    return min(fits, key=lambda fit: fit.squares)


def _best_start(form: _Form, data: _Data) -> _Fitted:
    points = form.starts(data)
    squares = np.sum(_softened(_deviations(form, points, data)) ** 2, axis=1)
    best = int(np.argmin(squares))
    return _Fitted(form, points[best], float(squares[best]))


def _refined(start: _Fitted, data: _Data, steps: int) -> _Fitted:
    def deviations(point: Floats) -> Floats:
        return _softened(_deviations(start.form, point, data))

    return _Fitted(start.form, *descend(deviations, start.point, steps))


def _deviations(form: _Form, points: Floats, data: _Data) -> Floats:
    return np.asarray(np.sqrt(data.weight) * (form.log_rate(points, data.x) - data.y))


def _softened(deviations: Floats) -> Floats:
    """Deviations whose squares are soft L1: as they are when small, their roots when large."""
    ratios = (deviations / _OUTLIER) ** 2
    # Square root of 2 (√(1 + r) − 1), without the difference of nearly equal numbers.
    return np.asarray(deviations * np.sqrt(2 / (1 + np.sqrt(1 + ratios))))


def _within(values: Floats, low: float, high: float) -> Floats:
    """What np.clip does, in a third of its time."""
    return np.asarray(np.minimum(np.maximum(values, low), high))


def _log_sigmoid(x: Floats, steepness: Floats, inflection: Floats) -> Floats:
    """ln g: −ln(1 + e^(a(x − x₀)))."""
    return np.asarray(-np.logaddexp(0.0, steepness * (x - inflection)))
