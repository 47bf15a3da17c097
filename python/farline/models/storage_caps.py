"""What one process and all processes together get from a file system, fitted to measurements.

Rao et al. 2018 (section 4.1, Fig. 5) show the rates of file systems over the processes that read or
write: each process is held to a rate of its own, all together to that of the system:

    rate(n) = min(n c, C)

`c` is the cap of a process, `C` that of all, in bit/s, and n the processes. Where the knee between
the two is round, as queues make it, the smooth form has one figure more, the sharpness p:

    rate(n) = ((n c)^-p + C^-p)^(-1/p),    the first form for p → ∞

The form is chosen by Schwarz's criterion over the means at each n; figures are fitted to
logarithms, so that a deviation of 5 % counts the same at any rate. Intervals are parametric
bootstrap: the spread of the repeats, or of the fit where nothing was repeated, drawn anew around
the fitted curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from farline.errors import SpecError
from farline.models.fitting import LogKnee, criterion, descend, fit_log_knee
from farline.models.profile_model import Knots
from farline.models.quantities import positive_finite

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

Form = Literal["hard", "smooth"]

CONFIDENCE = 0.95
DRAWS = 200
SHARPEST = 20.0
"""Sharpness from which the smooth form is the hard one: 3 % below it at the knee."""
BLUNTEST = 0.7
FARTHEST = 2.0
"""A cap beyond this multiple of what was measured nearest to it is not seen but guessed."""
DECLINE = 0.9
"""Beyond the best count, rates below this share of the best one are a decline."""
_SMOOTH_NEEDS = 4
"""Different counts that a fit of three figures needs."""
_STEPS = 60
_LEAST_SPREAD = 1e-3
"""Deviation of logarithms below which repeats tell nothing of how sure a figure is."""


@dataclass(frozen=True, slots=True)
class Cap:
    """A rate in bit/s with its 95 % interval; the upper end is infinite where nothing shows it."""

    rate_bps: float
    low_bps: float
    high_bps: float


@dataclass(frozen=True, slots=True)
class StorageCaps:
    """The caps of one direction.

    `process` is None where one process alone reaches the cap of all: then it is at least that.
    `total` is None where the rate still rose in step with the processes at the most that were
    tried.
    """

    form: Form
    process: Cap | None
    total: Cap | None
    sharpness: float
    """p of the smooth form; infinite for the hard one."""
    spread: float
    """Root mean square of ln(measured / fitted) over the means."""
    most_processes: int
    best_processes: int
    """Processes at which the mean was highest."""
    best_bps: float
    declines_to_bps: float | None
    """Mean at the most processes, where more processes than the best ones lost rate."""

    def rate_bps(self, processes: ArrayLike) -> Floats:
        """The fitted rate of so many processes together."""
        each = math.inf if self.process is None else self.process.rate_bps
        total = math.inf if self.total is None else self.total.rate_bps
        return np.exp(
            _log_curve(np.asarray(processes, dtype=np.float64), each, total, self.sharpness)
        )


def fit_caps(
    processes: Sequence[int], rates_bps: Sequence[float], *, draws: int = DRAWS, seed: int = 0
) -> StorageCaps:
    """Fits to K measurements of total rates, repeats among them, at one or more counts.

    A single count gives its mean as the cap of a process and none of all.

    Raises:
        SpecError: for no measurements, counts below 1, or rates that are not above 0.
    """
    n, y = _checked(processes, rates_bps)
    counts, means, repeats = _means(n, y)
    # Rates beyond the best count say nothing of either cap: they are what more processes lose.
    best = int(np.argmax(means))
    rising = _until_decline(means, best)
    point = _fit(counts[:rising], means[:rising], repeats[:rising])
    kept = np.isin(n, counts[:rising])
    drawn = _drawn(point, n[kept], y[kept], draws, seed)
    fitted = _log_curve(counts[:rising], *point)
    return StorageCaps(
        form="hard" if math.isinf(point[2]) else "smooth",
        process=_cap(point[0], drawn[:, 0]),
        total=_cap(point[1], drawn[:, 1]),
        sharpness=point[2],
        spread=float(np.sqrt(np.mean((means[:rising] - fitted) ** 2))),
        most_processes=int(counts[-1]),
        best_processes=int(counts[best]),
        best_bps=float(np.exp(means[best])),
        declines_to_bps=float(np.exp(means[-1])) if rising < len(means) else None,
    )


def _checked(processes: Sequence[int], rates_bps: Sequence[float]) -> tuple[Floats, Floats]:
    n, rates = positive_finite("processes", processes), positive_finite("rates_bps", rates_bps)
    if n.shape != rates.shape or not n.size or n.ndim != 1:
        raise SpecError(f"processes, rates_bps: {n.size} and {rates.size} values; as many of each")
    if (n < 1).any():
        raise SpecError("processes: allowed: 1 or more")
    return n, np.log(rates)


def _means(n: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Different counts in order, the mean logarithm at each, and how many there were."""
    counts, at = np.unique(n, return_inverse=True)
    repeats = np.bincount(at).astype(np.float64)
    return counts, np.bincount(at, weights=y) / repeats, repeats


def _until_decline(means: Floats, best: int) -> int:
    """How many of the means, in order of their counts, are before rates decline."""
    fallen = np.flatnonzero(means[best:] < means[best] + math.log(DECLINE))
    return best + int(fallen[0]) if fallen.size else len(means)


Point = tuple[float, float, float]
"""Cap of a process, cap of all, sharpness; what does not bind is infinite."""


def _fit(counts: Floats, means: Floats, repeats: Floats) -> Point:
    if len(counts) == 1:
        return float(np.exp(means[0]) / counts[0]), math.inf, math.inf
    hard, knee = _fit_hard(counts, means, repeats)
    if len(counts) < _SMOOTH_NEEDS:
        return hard
    smooth, squares = _fit_smooth(counts, means, repeats / repeats.mean())
    far = smooth[0] * counts[0] > FARTHEST * np.exp(means[0])
    if far or smooth[2] >= SHARPEST or smooth[1] > FARTHEST * np.exp(means.max()):
        return hard
    own, other = (criterion(fit, len(counts)) for fit in (knee, _Squares(squares, 3)))
    return smooth if other < own else hard


def _fit_hard(counts: Floats, means: Floats, repeats: Floats) -> tuple[Point, LogKnee]:
    # With 1/n for the round-trip time, n c is a fall with slope 1 and C the level before it.
    order = np.argsort(1.0 / counts)
    knots = Knots((1.0 / counts)[order], np.exp(means)[order], repeats[order] / repeats.mean())
    knee = fit_log_knee(knots, 1.0, None)
    # numpy's exponential of infinity is infinite, where math's fails.
    return (float(np.exp(knee.start)), float(np.exp(knee.level)), math.inf), knee


@dataclass(frozen=True, slots=True)
class _Squares:
    squares: float
    parameters: int


def _fit_smooth(counts: Floats, means: Floats, weight: Floats) -> tuple[Point, float]:
    """c, C and p of the smooth form by least squares on logarithms."""
    start = np.array([means[0] - math.log(counts[0]), means.max(), math.log(4.0)])

    def deviations(points: Floats) -> Floats:
        each, total, power = np.moveaxis(points, -1, 0)[..., np.newaxis]
        power = np.exp(np.clip(power, math.log(BLUNTEST), math.log(2 * SHARPEST)))
        rising = np.log(counts) + each
        curve = np.minimum(rising, total) - _rounding(np.abs(rising - total), power)
        return np.asarray(np.sqrt(weight) * (curve - means))

    point, squares = descend(deviations, start, _STEPS)
    each, total, sharpness = (float(value) for value in np.exp(np.clip(point, -700.0, 700.0)))
    return (each, total, max(sharpness, BLUNTEST)), squares


def _rounding(apart: Floats, sharpness: Floats | float) -> Floats:
    """How far the logarithm lies below the lower of two lines that are so far apart."""
    return np.asarray(np.log1p(np.exp(-sharpness * apart)) / sharpness)


def _log_curve(n: Floats, each: float, total: float, sharpness: float) -> Floats:
    """ln rate of n processes."""
    rising = np.log(n) + math.log(each) if math.isfinite(each) else np.full_like(n, math.inf)
    level = math.log(total) if math.isfinite(total) else math.inf
    least = np.minimum(rising, level)
    if math.isinf(sharpness) or not (math.isfinite(each) and math.isfinite(total)):
        return np.asarray(least)
    # ln((e^-pr + e^-pl)^(-1/p)) without powers that overflow.
    return np.asarray(least - _rounding(np.abs(rising - level), sharpness))


def _drawn(point: Point, n: Floats, y: Floats, draws: int, seed: int) -> Floats:
    """Caps (draws, 2) of measurements drawn anew around the curve."""
    random = np.random.default_rng(seed)
    curve = _log_curve(n, *point)
    spread, degrees = _spread(n, y, curve, sum(math.isfinite(value) for value in point))
    out = np.empty((draws, 2))
    for draw in range(draws):
        scale = spread * math.sqrt(degrees / random.chisquare(degrees))
        again = curve + random.normal(0.0, scale, len(n))
        out[draw] = _again(point, n, again)
    return out


def _again(point: Point, n: Floats, y: Floats) -> tuple[float, float]:
    """The same form once more."""
    counts, means, repeats = _means(n, y)
    if len(counts) == 1:
        return _fit(counts, means, repeats)[:2]
    if math.isinf(point[2]):
        return _fit_hard(counts, means, repeats)[0][:2]
    return _fit_smooth(counts, means, repeats / repeats.mean())[0][:2]


def _spread(n: Floats, y: Floats, curve: Floats, figures: int) -> tuple[float, float]:
    """Deviation of one measurement in logarithms, and its degrees of freedom.

    From repeats where there are any; what the curve misses of the means is no noise, but counts
    where it is more.
    """
    counts, means, _ = _means(n, y)
    within = float(len(n) - len(counts))
    around = max(float(len(n) - figures), 1.0)
    missed = float(np.sum((y - curve) ** 2)) / around
    if within < 1:
        return max(math.sqrt(missed), _LEAST_SPREAD), around
    own = float(np.sum((y - means[np.searchsorted(counts, n)]) ** 2)) / within
    return max(math.sqrt(max(own, missed)), _LEAST_SPREAD), within


def _cap(rate_bps: float, drawn: Floats) -> Cap | None:
    if not math.isfinite(rate_bps):
        return None
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method="nearest")
    return Cap(rate_bps, min(float(low), rate_bps), max(float(high), rate_bps))
