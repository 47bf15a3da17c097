"""What the transfers of a path say of a kind of data: a ridge regression, weighted by kernel.

One formula from no transfer to thousands: without any, the penalties alone stand, which are the
spread of levels and slopes that paths have around the prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farline.estimating.features import SCALE

if TYPE_CHECKING:
    from farline.estimating.features import Floats

WIDTHS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 16.0)
"""Widths of the kernel, tried from the narrowest on."""

ENOUGH = 12.0
"""Sum of weights with which a width is taken."""

FORGET = 1000.0
"""Transfers after which one weighs less by e."""

NOISE = 0.30
"""Standard deviation of the log rate of equal transfers, until the path has shown its own."""

_NOISE_COUNT = 4.0
"""Transfers that the assumed noise counts as."""

_LEAST_NOISE = 0.03
_OUTLIER = 4.0
"""Standard deviations beyond which a transfer is an outlier: its tail belongs to the interval,
which rests on scores, not to the middle."""
_TO_SD = 1.4826
"""Median of absolute differences to standard deviation, of normal noise."""
_LEVEL, _SLOPE = 0.75, 0.15
"""Standard deviations of a path's level and of its slopes around the prior."""

_PENALTIES: Floats = np.diag([(NOISE / _LEVEL) ** 2, *[(NOISE / _SLOPE) ** 2] * len(SCALE)])


@dataclass(frozen=True, slots=True)
class LocalFit:
    """The level of a path at one place, beside the prior."""

    level: float
    """Log rate beside the prior."""
    noise: float
    """Standard deviation of one transfer around the level."""
    variance: float
    """Variance of the level itself, in units of the noise."""
    width: float
    """Width of the kernel; infinite without transfers."""
    nearest: float
    """Squared distance of the nearest transfer, in kinds; infinite without any."""

    @property
    def effective_count(self) -> float:
        """How many equal transfers would tell as much."""
        return 1.0 / self.variance


def fit(x: Floats, known: Floats, residuals: Floats, weights: Floats) -> LocalFit:
    """The fit at `x` from `known` features (n, 7), oldest first, and residuals of the prior (n).

    `weights` (n) are factors beside those of distance and age.
    """
    if not len(known):
        return LocalFit(0.0, NOISE, 1.0 / float(_PENALTIES[0, 0]), np.inf, np.inf)
    away = known - x
    distance = np.sum((away / SCALE) ** 2, axis=1)
    aged = weights * np.exp(-np.arange(len(known), 0, -1) / FORGET)
    width, weight = _weights(distance, aged)
    design = np.hstack([np.ones((len(known), 1)), away])
    weighted = design * weight[:, None]
    covariance = np.linalg.inv(weighted.T @ design + _PENALTIES)
    coefficients = covariance @ (weighted.T @ residuals)
    errors = residuals - design @ coefficients
    reach = _reach(errors, weight)
    if np.abs(errors).max() > reach:
        # A transfer that stalled for a day says so once, not with the square of its distance.
        near = design @ coefficients + np.clip(errors, -reach, reach)
        coefficients = covariance @ (weighted.T @ near)
        errors = np.clip(residuals - design @ coefficients, -reach, reach)
    squares = float(weight @ errors**2) + _NOISE_COUNT * NOISE**2
    noise = max(np.sqrt(squares / (float(weight.sum()) + _NOISE_COUNT)), _LEAST_NOISE)
    return LocalFit(
        float(coefficients[0]), float(noise), float(covariance[0, 0]), width, float(distance.min())
    )


def _reach(errors: Floats, weight: Floats) -> float:
    """How far from the fit a transfer may lie: beyond it counts as just there."""
    size = np.abs(errors)
    order = np.argsort(size)
    held = np.cumsum(weight[order])
    middle = size[order][np.searchsorted(held, held[-1] / 2)]
    return max(_OUTLIER * _TO_SD * float(middle), _OUTLIER * NOISE)


def _weights(distance: Floats, aged: Floats) -> tuple[float, Floats]:
    """The narrowest kernel that has enough in it, and the weights under it."""
    weight = aged
    for width in WIDTHS:
        weight = aged * np.exp(-distance / (2 * width**2))
        if weight.sum() >= ENOUGH:
            return width, weight
    return WIDTHS[-1], weight
