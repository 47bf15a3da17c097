"""The coefficients of a throughput profile: utilisation, concavity, and both in one number.

Rao et al. 2018, section 3.3. Every coefficient is a weighted sum of the means at the knots plus a
constant, so its estimate is unbiased and its variance closed (`spread`). What the paper misprints,
and where a coefficient misleads, is in docs/design/analytics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.interpolation import full_rows, line_rows, mean_weights, places_within
from farline.profiles.spread import checked_confidence

if TYPE_CHECKING:
    from farline.profiles.throughput_profile import ThroughputProfile

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval; `low`, `high` None where n does not allow one."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def half_width(self) -> float | None:
        """Half of the interval's width; None where there is none."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Rao et al. 2018, section 3.3; facts and corrections in docs/design/analytics.md.

    Normalised: rates over L, round-trip times from [left_ms, right_ms] to [0, 1]. `left` and
    `right` are the rates at the ends over L. `mean` is m, `chord` is M, the value of the chord at
    mid RTT. `c_u` = 1 − m, `c_cc` = m − M, `c_uc` = m − M/2 + 1/4. `area_u` and `area_cc` are the
    unnormalised integrals in bit/s × ms; `area_cc_printed` is with the chord as the paper prints
    it. `warnings` say where a number misleads.
    """

    left_ms: float
    right_ms: float
    capacity_bps: float
    left: float
    right: float
    mean: Interval
    chord: Interval
    c_u: Interval
    c_cc: Interval
    c_uc: Interval
    area_u: float
    area_cc: float
    area_cc_printed: float
    confidence: float
    warnings: tuple[str, ...] = ()


def coefficients(
    profile: ThroughputProfile,
    confidence: float = 0.95,
    interval: tuple[float, float] | None = None,
) -> Coefficients:
    """The coefficients of a profile, or of its part over `interval`, from RTT to RTT in ms.

    Raises:
        SpecError: when the capacity is unknown, there is one round-trip time alone, or the
            interval is not inside the profile.
    """
    from farline.profiles.cautions import cautions_of

    capacity = checked_capacity(profile)
    left_ms, right_ms = checked_interval(profile, interval)
    places = places_within(profile.rtt_ms, left_ms, right_ms)
    lines = line_rows(profile.rtt_ms, places)
    of_mean, of_chord = mean_weights(places), _chord_weights(places)
    rows = lines.onto_knots(
        np.stack([of_mean, of_chord, of_mean - of_chord, uc_weights(places)]), len(profile)
    )
    values = rows @ profile.mean_bps / capacity + [0.0, 0.0, 0.0, 0.25]
    halves = profile.spread.half_width(full_rows(rows), confidence) / capacity
    mean, chord, c_cc, c_uc = map(_interval, values.tolist(), halves.tolist())
    ends_bps = lines.of(profile.mean_bps)[[0, -1]]
    found = Coefficients(
        left_ms=left_ms,
        right_ms=right_ms,
        capacity_bps=capacity,
        left=float(ends_bps[0] / capacity),
        right=float(ends_bps[1] / capacity),
        mean=mean,
        chord=chord,
        c_u=_interval(1.0 - mean.value, float(halves[0])),
        c_cc=c_cc,
        c_uc=c_uc,
        area_u=(1.0 - mean.value) * capacity * (right_ms - left_ms),
        area_cc=c_cc.value * capacity * (right_ms - left_ms),
        area_cc_printed=_printed_area(mean.value * capacity, ends_bps, left_ms, right_ms),
        confidence=confidence,
    )
    return replace(found, warnings=cautions_of(profile, found))


def uc_weights(places: Floats) -> Floats:
    """Weights (P,) of the values at P places in C_UC, which is 1/4 more than their sum.

    The trapezoid weights of the mean, less 1/4 at the first and the last place: half of the chord.
    The weight of the first is mostly negative. Of one place the weight is 1/2, the limit.
    """
    return mean_weights(places) - _chord_weights(places) / 2.0


def _chord_weights(places: Floats) -> Floats:
    weights = np.zeros(len(places))
    weights[0] += 0.5
    weights[-1] += 0.5
    return weights


def hoeffding_half_width(
    profile: ThroughputProfile,
    confidence: float = 0.95,
    interval: tuple[float, float] | None = None,
) -> float:
    """Half-width of an interval for C_UC that supposes nothing but rates between 0 and L.

    Hoeffding's inequality for independent runs: √(½ ln(2/δ) Σ w_k²/n_k), with δ = 1 − confidence.
    It holds whatever the distribution, and is far wider than the interval by Student's t.

    Raises:
        SpecError: as `coefficients`, and for a profile that is not made of measurements.
    """
    checked_capacity(profile)
    if profile.derived is not None:
        raise SpecError(
            f"{profile.name}: Hoeffding's bound is for measured rates, not for derived profiles"
        )
    left_ms, right_ms = checked_interval(profile, interval)
    places = places_within(profile.rtt_ms, left_ms, right_ms)
    lines = line_rows(profile.rtt_ms, places)
    weights = lines.onto_knots(uc_weights(places)[np.newaxis], len(profile))[0]
    delta = 1.0 - checked_confidence(confidence)
    return math.sqrt(math.log(2.0 / delta) / 2.0 * float((weights**2 / profile.n).sum()))


def _printed_area(mean_bps: float, ends_bps: Floats, left_ms: float, right_ms: float) -> float:
    """c_CC with the chord as printed: its slope times τ instead of τ − τ_L, in bit/s × ms."""
    first, last = ends_bps.tolist()
    slope = (last - first) / (right_ms - left_ms)
    under_chord = first * (right_ms - left_ms) + slope * (right_ms**2 - left_ms**2) / 2.0
    return float(mean_bps * (right_ms - left_ms) - under_chord)


def _interval(value: float, half: float) -> Interval:
    if math.isnan(half):
        return Interval(value)
    return Interval(value, value - half, value + half)


def checked_capacity(profile: ThroughputProfile) -> float:
    """L of a profile in bit/s.

    Raises:
        SpecError: when it is unknown.
    """
    if profile.capacity_bps is None:
        raise SpecError(
            f"{profile.name}: its capacity is unknown, and coefficients are of rates over the "
            "capacity; state capacity_bps"
        )
    return profile.capacity_bps


def checked_interval(
    profile: ThroughputProfile, interval: tuple[float, float] | None
) -> tuple[float, float]:
    """The interval, or all of the profile, from RTT to RTT in ms.

    Raises:
        SpecError: when it spans nothing, or is not inside the profile.
    """
    first, last = float(profile.rtt_ms[0]), float(profile.rtt_ms[-1])
    if interval is None and first == last:
        raise SpecError(
            f"{profile.name}: one round-trip time alone, {first:g} ms; coefficients need two"
        )
    left, right = (first, last) if interval is None else (float(interval[0]), float(interval[1]))
    if not first <= left < right <= last:
        raise SpecError(
            f"{profile.name}: interval {left:g} to {right:g} ms; allowed is one inside "
            f"{first:g} to {last:g} ms"
        )
    return left, right
