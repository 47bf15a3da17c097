"""The full second-order curve fitted to any number of noisy samples: it always gives a curve.

Three samples give coefficients that are no curve in a quarter of real sweeps. Written as

    Th(n) = n / √( n²/P² + c (1 − n/n*)² )

every P > 0, c > 0 and n* > 1 is one, with its peak P at n*. The three logarithms are fitted by
bounded, robust least squares on the logarithm of throughput. The curve is for drawing, explaining
and interpolating; a choice rests on samples and history (see docs/design/tuning.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farline.errors import SpecError
from farline.models.quantities import positive
from farline.models.stream_curves import FullSecondOrder

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

MOST_PEAK_STREAMS = 4096.0
"""A peak beyond this is none that samples can show: the curve rises all the way."""

_OUTLIER = 0.2
"""Deviation in logarithms from which a sample counts less: that of repeated transfers, 19 %."""

_HOLD = 1e-3
"""Weight of the start values, against which a direction that no sample shows stays in place."""


@dataclass(frozen=True, slots=True)
class StreamFit:
    """A fitted curve: its peak, where that is, its curvature c; how far samples are from it."""

    peak: float
    peak_streams: float
    c: float
    spread: float
    """Root mean square of ln(sample / curve)."""

    @property
    def curve(self) -> FullSecondOrder:
        """The same as coefficients of Q."""
        peak, at, c = self.peak, self.peak_streams, self.c
        return FullSecondOrder(1 / peak**2 + c / at**2, -2 * c / at, c)

    def rate(self, streams: ArrayLike) -> Floats:
        """Throughput of so many streams together."""
        return np.exp(_log_rate(np.log(positive("streams", streams)), *self._logs))

    @property
    def _logs(self) -> tuple[float, float, float]:
        return math.log(self.peak), math.log(self.peak_streams), math.log(self.c)


def fit_streams(streams: Sequence[float], rates: Sequence[float]) -> StreamFit:
    """Fits the curve to samples, repeats among them, at two or more different counts.

    Raises:
        SpecError: for fewer, or for counts below 1 or rates that are not positive.
    """
    from scipy.optimize import least_squares

    n, y = positive("streams", streams), np.log(positive("rates", rates))
    if n.shape != y.shape or n.ndim != 1 or len(np.unique(n)) < 2:
        raise SpecError("a curve over streams takes samples at two or more different counts")
    if n.min() < 1:
        raise SpecError(f"streams: {n.min():g} is out of range; allowed: 1 or more")
    x = np.log(n)
    low = np.array([y.min() - 1.0, math.log(1.01), -2 * y.max() - 10.0])
    high = np.array([y.max() + 3.0, math.log(MOST_PEAK_STREAMS), -2 * y.min() + 2 * x.max() + 10.0])

    def fitted_from(start: Floats) -> tuple[float, Floats]:
        def deviations(point: Floats) -> Floats:
            return np.concatenate([_log_rate(x, *point) - y, _HOLD * (point - start)])

        found = least_squares(
            deviations, start, bounds=(low, high), loss="soft_l1", f_scale=_OUTLIER
        )
        return float(found.cost), np.asarray(found.x, dtype=np.float64)

    starts = [np.clip(start, low + 1e-6, high - 1e-6) for start in _starts(x, y)]
    _, best = min(map(fitted_from, starts), key=lambda fit: fit[0])
    spread = float(np.sqrt(np.mean((_log_rate(x, *best) - y) ** 2)))
    peak, at, c = (float(value) for value in np.exp(best))
    return StreamFit(peak, at, c, spread)


def _starts(x: Floats, y: Floats) -> list[Floats]:
    """A peak at the best sample, beyond it, and far beyond."""
    top = x[np.argmax(y)]
    first = y[np.argmin(x)] - x.min()
    found = []
    for at in (max(top, 0.3), top + 0.7, x.max() + 2.0):
        c = -2 * first - 2 * math.log(max(1 - math.exp(x.min() - at), 0.05))
        found.append(np.array([y.max(), at, c]))
    return found


def _log_rate(x: Floats, peak: float, at: float, c: float) -> Floats:
    """ln Th over ln n and the logarithms of P, n* and c; sums of exponents do not overflow."""
    bend = np.log(np.maximum(np.abs(-np.expm1(x - at)), 1e-150))
    return np.asarray(x - 0.5 * np.logaddexp(2 * x - 2 * peak, c + 2 * bend))
