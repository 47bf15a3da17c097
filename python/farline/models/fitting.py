"""Fitting: a curve and its knee in logarithms, descent, and how many parameters are worth it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from farline.models.quantities import positive_finite

if TYPE_CHECKING:
    from farline.models.profile_model import Floats, Knots

_EXACT = 1e-9
"""Relative deviation below which a fit counts as exact: there is nothing left to compare."""


class Fit(Protocol):
    """One form of a model, fitted: its weighted squares of log residuals, and its parameters."""

    @property
    def squares(self) -> float:
        """Sum over knots of weight times (ln predicted − ln measured)²."""
        ...

    @property
    def parameters(self) -> int:
        """How many figures were taken from the data."""
        ...


F = TypeVar("F", bound=Fit)


def criterion(fit: Fit, knots: int) -> float:
    """Schwarz's criterion of a fit to so many knots: K ln(squares/K) + p ln K; less is better."""
    squares = max(fit.squares / knots, _EXACT**2)
    return knots * math.log(squares) + fit.parameters * math.log(knots)


def thriftiest(fits: Sequence[F], knots: int) -> F:
    """The fit with the least criterion; of equal ones the first.

    A form with as many parameters as there are knots meets them whatever they are, and is only
    taken where there is no other.
    """
    tested = [fit for fit in fits if fit.parameters < knots]
    return min(tested or fits, key=lambda fit: criterion(fit, knots))


_TOLERANCE = 1e-9
_STEP = 1e-6
"""Half the width over which a slope is taken, where a figure is about 1."""


def descend(
    deviations: Callable[[Floats], Floats], start: Floats, steps: int
) -> tuple[Floats, float]:
    """The point it ends at after at most `steps`, and the sum of squares there.

    `deviations` turns a point into a row, and rows of points into rows. There must be no fewer
    deviations than figures in a point. Deviations that do not change with a figure are no error: it
    then stays as it is. The squares are never more than at the start.
    """
    from scipy.optimize import leastsq

    def slopes(point: Floats) -> Floats:
        """One row for each figure; all of them from one call, which is what makes this fast."""
        widths = np.diag(_STEP * (1 + np.abs(point)))
        rows = deviations(np.concatenate([point + widths, point - widths]))
        count = len(point)
        return np.asarray((rows[:count] - rows[count:]) / (2 * np.diag(widths)[:, np.newaxis]))

    found = leastsq(
        deviations,
        start,
        Dfun=slopes,
        col_deriv=True,
        full_output=True,
        ftol=_TOLERANCE,
        xtol=_TOLERANCE,
        maxfev=steps,
    )
    point = np.asarray(found[0], dtype=np.float64)
    squares, before = (float(np.sum(deviations(at) ** 2)) for at in (point, start))
    return (point, squares) if squares < before else (start, before)


@dataclass(frozen=True, slots=True)
class LogKnee:
    """ln rate = min(level, start − slope · ln RTT); an infinite part does not bind anywhere."""

    level: float
    start: float
    slope: float
    parameters: int
    squares: float = math.inf

    def log_rate(self, log_rtt: Floats) -> Floats:
        """The curve; at an RTT of 0 (minus infinity) the level."""
        # 0 · inf is no number: a fall without slope is a level of its own.
        fall = (
            self.start - self.slope * log_rtt if self.slope else np.full_like(log_rtt, self.start)
        )
        return np.asarray(np.minimum(self.level, fall))

    @property
    def knee_log_rtt(self) -> float:
        """Where the level ends: minus infinity without a level, infinity without a fall."""
        if not math.isfinite(self.level):
            return -math.inf
        return (self.start - self.level) / self.slope if self.slope else math.inf


def fit_log_knee(knots: Knots, slope: float | None, level: float | None) -> LogKnee:
    """The thriftiest of a level, a fall, and a level with a fall; `slope` and `level` may be given.

    A free slope is at least 0. Knots at an RTT of 0 lie on the level.
    """
    with np.errstate(divide="ignore"):
        x, y = np.log(knots.rtt_ms), np.log(knots.rate_bps)
    forms: dict[int, LogKnee] = {}
    for form in _forms(x, y, knots.weight, slope, level):
        own = replace(form, squares=float(np.sum(knots.weight * (form.log_rate(x) - y) ** 2)))
        best = forms.setdefault(own.parameters, own)
        if own.squares < best.squares:
            forms[own.parameters] = own
    return thriftiest([forms[count] for count in sorted(forms)], len(knots))


def log_given(name: str, value: float | None) -> float | None:
    """The logarithm of what was given, if anything was. Raises `SpecError` for what has none."""
    return None if value is None else float(np.log(positive_finite(name, value)))


def _forms(
    x: Floats, y: Floats, weight: Floats, slope: float | None, level: float | None
) -> Iterator[LogKnee]:
    """Every form that may be the best, by how many knots lie on the level, then by its knee."""
    free_level, free_slope = int(level is None), int(slope is None)
    for count in range(int(np.isneginf(x).sum()), len(x) + 1):
        own_level = level
        if own_level is None:
            own_level = _mean(y[:count], weight[:count]) if count else math.inf
        used = free_level if count else 0
        if count == len(x):
            yield LogKnee(own_level, math.inf, slope or 0.0, used)
        elif slope is not None:
            start = _mean(y[count:] + slope * x[count:], weight[count:])
            yield LogKnee(own_level, start, slope, used + 1)
        elif count < len(x) - 1:
            start, own_slope = _falling_line(x[count:], y[count:], weight[count:])
            yield LogKnee(own_level, start, own_slope, used + 2)
    for knee in x[np.isfinite(x)][:-1]:
        beyond = np.maximum(0.0, x - knee)
        own_level, own_slope = _hinge(beyond, y, weight, slope, level)
        start = own_level + own_slope * knee
        yield LogKnee(own_level, start, own_slope, free_level + 1 + free_slope)


def _hinge(
    beyond: Floats, y: Floats, weight: Floats, slope: float | None, level: float | None
) -> tuple[float, float]:
    """Level and slope of y = level − slope · beyond; either may be given."""
    if slope is not None:
        return (_mean(y + slope * beyond, weight) if level is None else level), slope
    if level is None:
        return _falling_line(beyond, y, weight)
    below = float(np.sum(weight * beyond * (level - y)))
    return level, max(0.0, below / float(np.sum(weight * beyond**2)))


def _falling_line(x: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    """Start and slope of y = start − slope · x with a slope of at least 0."""
    middle, height = _mean(x, weight), _mean(y, weight)
    spread = float(np.sum(weight * (x - middle) ** 2))
    slope = -float(np.sum(weight * (x - middle) * (y - height))) / spread
    slope = max(0.0, slope)
    return height + slope * middle, slope


def _mean(values: Floats, weight: Floats) -> float:
    return float(np.average(values, weights=weight))
