"""Bootstrap intervals, as a check on the closed formulas of `interpolation` and for ratios.

Measurements are drawn anew at each round-trip time by itself (stratified); drawings come from a
seed, so that the same profile gives the same interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.coefficients import (
    Interval,
    checked_capacity,
    checked_interval,
    uc_weights,
)
from farline.profiles.interpolation import checked_confidence

if TYPE_CHECKING:
    from farline.profiles.throughput_profile import ThroughputProfile

Floats = npt.NDArray[np.float64]


def bootstrap_c_uc(
    profile: ThroughputProfile, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """C_UC with its BCa interval (Efron 1987), from all measurements at the knots.

    Raises:
        SpecError: when a knot lacks its measurements, or has one alone; as `coefficients` besides.
    """
    capacity = checked_capacity(profile)
    checked_interval(profile, None)
    weights = uc_weights(profile.rtt_ms) / capacity
    data = [np.array(points) for points in measurements(profile)]
    if min(map(len, data)) < 2:
        raise SpecError(f"{profile.name}: a bootstrap needs two measurements at each RTT")
    value = float(weights @ profile.mean_bps) + 0.25
    if all(float(np.ptp(points)) == 0.0 for points in data):
        return Interval(value, value, value)

    def statistic(*samples: Floats, axis: int = -1) -> Floats:
        means = np.stack([np.mean(sample, axis=axis) for sample in samples], axis=-1)
        value: Floats = means @ weights + 0.25
        return value

    from scipy.stats import bootstrap

    result = bootstrap(
        data,
        statistic,
        n_resamples=_checked_resamples(resamples),
        confidence_level=checked_confidence(confidence),
        method="BCa",
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
    low, high = result.confidence_interval
    return Interval(value, float(low), float(high))


def measurements(profile: ThroughputProfile) -> tuple[tuple[float, ...], ...]:
    """Every measurement at each knot.

    Raises:
        SpecError: when a knot lacks some of its own.
    """
    points = profile.points_bps
    if profile.derived is not None or points is None:
        raise SpecError(f"{profile.name}: a bootstrap needs the measurements themselves")
    for place, knot in enumerate(points):
        if len(knot) != profile.n[place]:
            raise SpecError(
                f"{profile.name}: only {profile.rtt_ms[place]:g} of {profile.name} measurements "
                f"at {profile.n[place]:g} ms are kept; a bootstrap needs all"
            )
    return points


def drawn_means(profile: ThroughputProfile, resamples: int, random: np.random.Generator) -> Floats:
    """Means (B, K) of measurements drawn anew.

    Where a knot has two or more measurements at hand they are drawn from; elsewhere the mean is
    drawn from the log-normal distribution with this mean and its standard error: no rate is 0 or
    less, however large the error.

    Raises:
        SpecError: for a derived profile, where nothing is known of the deviation, or for a mean
            that is not above 0.
    """
    if profile.derived is not None or not profile.spread.known:
        raise SpecError(
            f"{profile.name}: a bootstrap needs measured means, and two measurements somewhere"
        )
    if not bool(np.all(profile.mean_bps > 0)):
        raise SpecError(f"{profile.name}: a bootstrap needs means above 0 at every RTT")
    error = profile.standard_error_bps
    means = np.empty((_checked_resamples(resamples), len(profile)))
    for place in range(len(profile)):
        if _kept(profile, place):
            points = (profile.points_bps or ())[place]
            drawn = random.choice(np.array(points), size=(resamples, len(points)))
            means[:, place] = drawn.mean(axis=1)
        else:
            variance = np.log1p((error[place] / profile.mean_bps[place]) ** 2)
            normal = random.standard_normal(resamples)
            factors = np.exp(np.sqrt(variance) * normal - variance / 2)
            means[:, place] = profile.mean_bps[place] * factors
    return means


def drawn_from_errors(profile: ThroughputProfile) -> bool:
    """Whether `drawn_means` lacks measurements somewhere and draws from standard errors there."""
    return not all(_kept(profile, place) for place in range(len(profile)))


def _kept(profile: ThroughputProfile, place: int) -> bool:
    """Whether a knot has all its measurements at hand, and more than one."""
    points = profile.points_bps[place] if profile.points_bps else ()
    return len(points) == profile.n[place] and len(points) > 1


def percentile_bounds(values: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Percentile intervals (P,) and (P,) of B drawings (B, P)."""
    tail = (1.0 - checked_confidence(confidence)) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail], axis=0)
    return low, high


def _checked_resamples(resamples: int) -> int:
    if resamples < 100:
        raise SpecError(f"resamples: {resamples} are too few; use 100 or more")
    return resamples
