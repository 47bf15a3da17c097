"""The coefficients of a throughput profile: utilisation, concavity, and both in one number.

Rao et al. 2018, section 3.3. Every coefficient is a weighted sum of the means at the knots plus a
constant, so its estimate is unbiased and its variance closed (`interpolation.Spread`). What the
paper misprints, and where a coefficient misleads, is in docs/design/analytics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.interpolation import (
    WeightRows,
    bend_rows,
    checked_confidence,
    full_rows,
    line_rows,
    mean_weights,
    places_within,
    step_rows,
)
from farline.spec.units import counted

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
            f"{profile.name}: its capacity is unknown, and coefficients need rates relative to "
            "the capacity; give capacity_bps"
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
            f"{profile.name}: only one round-trip time, {first:g} ms; coefficients need two"
        )
    left, right = (first, last) if interval is None else (float(interval[0]), float(interval[1]))
    if not first <= left < right <= last:
        raise SpecError(
            f"{profile.name}: interval {left:g} to {right:g} ms; it must lie within {first:g} to "
            f"{last:g} ms"
        )
    return left, right


FEW_KNOTS = 5
"""Knots up to which straight lines may miss a curve by several hundredths of C_UC."""

LIGHT_WEIGHT = 0.02
"""Weight in C_UC below which what is measured at the largest RTT hardly counts."""

SLIGHT = 0.005
"""Size of C_CC up to which a profile is as good as straight."""

OVER_CAPACITY = 1.02
"""Rates over L above this are a fault of the data or of L, not noise."""


def cautions_of(profile: ThroughputProfile, found: Coefficients) -> tuple[str, ...]:
    """One line for each thing that makes the coefficients mislead here."""
    lines = [
        _over_capacity(profile, found),
        _rising(profile, found),
        _not_convexity(found),
        _not_concavity(found),
        _light_end(profile, found),
        _few_knots(profile, found),
        _single_runs(profile),
    ]
    return tuple(line for line in (*profile.notes, *lines) if line)


def _within(profile: ThroughputProfile, found: Coefficients) -> list[int]:
    """Places of the knots inside the interval."""
    inside = (profile.rtt_ms >= found.left_ms) & (profile.rtt_ms <= found.right_ms)
    return [int(place) for place in np.flatnonzero(inside)]


def _over_capacity(profile: ThroughputProfile, found: Coefficients) -> str:
    shares = [
        float(profile.mean_bps[place]) / found.capacity_bps for place in _within(profile, found)
    ]
    most = max(shares, default=0.0)
    # A ratio above 1 is no fault by itself.
    if most <= OVER_CAPACITY or profile.unit == "1":
        return ""
    return f"a mean is {most:.2f} of the capacity: the capacity or a measurement is wrong"


def _rising(profile: ThroughputProfile, found: Coefficients) -> str:
    """Only of non-increasing profiles C_UC is sure to be in [0, 1]."""
    steps = step_rows(len(profile))
    rises = steps.of(profile.mean_bps)
    # Where nothing is known of the noise, every rise counts.
    noise = np.nan_to_num(profile.spread.half_width(steps, found.confidence))
    inside = (profile.rtt_ms[:-1] >= found.left_ms) & (profile.rtt_ms[1:] <= found.right_ms)
    counted = np.where(inside & (rises > noise), rises, 0.0)
    at = int(np.argmax(counted)) if len(counted) else 0
    if not counted.any():
        return ""
    return (
        f"the profile rises from {profile.rtt_ms[at]:g} to {profile.rtt_ms[at + 1]:g} ms: C_UC is "
        "guaranteed to be between 0 and 1 only where it does not"
    )


def _not_convexity(found: Coefficients) -> str:
    if found.c_uc.value >= 0.5 or _surely_convex(found):
        return ""
    return (
        f"C_UC below 0.5 does not mean convex here: C_CC is {found.c_cc.value:+.3f}, and the mean "
        f"is {found.mean.value:.2f} of the capacity"
    )


def _not_concavity(found: Coefficients) -> str:
    if found.c_uc.value <= 0.5 or not _surely_convex(found):
        return ""
    return f"C_UC above 0.5 does not mean concave here: C_CC is {found.c_cc.value:+.3f}"


def _surely_convex(found: Coefficients) -> bool:
    """Whether C_CC is below nothing by more than a trifle, with its interval where there is one."""
    bound = found.c_cc.value if found.c_cc.high is None else found.c_cc.high
    return bound < -SLIGHT


def _light_end(profile: ThroughputProfile, found: Coefficients) -> str:
    places = places_within(profile.rtt_ms, found.left_ms, found.right_ms)
    weight = float(uc_weights(places)[-1])
    if abs(weight) >= LIGHT_WEIGHT:
        return ""
    return (
        f"the measurements at {found.right_ms:g} ms hardly count in C_UC: their weight is "
        f"{weight:.4f}"
    )


def _few_knots(profile: ThroughputProfile, found: Coefficients) -> str:
    count = len(_within(profile, found))
    if count > FEW_KNOTS:
        return ""
    return (
        f"straight lines through only {count} round-trip times miss the curve between them: C_UC "
        "may be off by several hundredths"
    )


def _single_runs(profile: ThroughputProfile) -> str:
    if not profile.spread.known:
        return "no intervals: no round-trip time has two measurements"
    pooled = profile.spread.pooled
    if not pooled:
        return ""
    return (
        f"{counted(pooled, 'round-trip time has', 'round-trip times have')} one measurement: the "
        "standard deviation there is estimated from the others"
    )


@dataclass(frozen=True, eq=False, slots=True)
class Running:
    """C_UC of the part of a profile from its first RTT up to each of `rtt_ms`, arrays (P,).

    `low` and `high` bound its confidence interval, NaN where there is none. `mean` is the mean of
    that part over L, `c_cc` its concavity. At the first RTT the part is a point, and C_UC is the
    limit Θ̃/2 + 1/4.
    """

    rtt_ms: Floats
    c_uc: Floats
    low: Floats
    high: Floats
    mean: Floats
    c_cc: Floats
    confidence: float


def running(
    profile: ThroughputProfile, confidence: float = 0.95, at_ms: npt.ArrayLike | None = None
) -> Running:
    """C_UC over RTT, at the knots or at `at_ms`.

    Raises:
        SpecError: when the capacity is unknown, or an RTT is outside the profile.
    """
    capacity = checked_capacity(profile)
    ends = profile.rtt_ms if at_ms is None else profile.checked_inside(at_ms)
    parts = [places_within(profile.rtt_ms, profile.rtt_ms[0], end) for end in ends]
    of_uc, of_mean = (
        np.vstack([_on_knots(profile, part, weights(part)) for part in parts])
        for weights in (uc_weights, mean_weights)
    )
    c_uc = of_uc @ profile.mean_bps / capacity + 0.25
    mean = of_mean @ profile.mean_bps / capacity
    half = profile.spread.half_width(full_rows(of_uc), confidence) / capacity
    return Running(
        rtt_ms=np.array(ends),
        c_uc=c_uc,
        low=c_uc - half,
        high=c_uc + half,
        mean=mean,
        # C_UC = (m + 1/2 + C_CC) / 2, turned round.
        c_cc=2.0 * c_uc - mean - 0.5,
        confidence=confidence,
    )


def _on_knots(profile: ThroughputProfile, places: Floats, weights: Floats) -> Floats:
    """Weights (1, K) on the knots that weights (P,) on values at `places` come to."""
    rows = line_rows(profile.rtt_ms, places)
    return rows.onto_knots(weights[np.newaxis], len(profile))


Shape = Literal["concave", "convex", "straight"]

_ROUNDING = 1e-9
"""Change of slope, against the slopes themselves, that is nothing but rounding."""


@dataclass(frozen=True, slots=True)
class Region:
    """Neighbouring knots that bend alike; regions cover the profile without a gap.

    A knot stands for the RTTs up to the middles between it and its neighbours. "straight" is where
    the bend is not told from none. `sure` is whether repeated measurements told: without them the
    bend of the means is taken as it is.
    """

    left_ms: float
    right_ms: float
    shape: Shape
    sure: bool


def regions(profile: ThroughputProfile, confidence: float = 0.95) -> tuple[Region, ...]:
    """Regions by the change of slope at every inner knot, each judged at `confidence` by itself.

    A profile of one or two knots is straight, and of that no measurement can be sure.
    """
    rtt_ms = profile.rtt_ms
    if len(rtt_ms) < 3:
        return (Region(float(rtt_ms[0]), float(rtt_ms[-1]), "straight", False),)
    rows = bend_rows(rtt_ms)
    bends = rows.of(profile.mean_bps)
    half = profile.spread.half_width(rows, confidence)
    sure = not bool(np.isnan(half).any())
    slopes = WeightRows(rows.places, np.abs(rows.weights)).of(np.abs(profile.mean_bps))
    noise = np.fmax(half, _ROUNDING * slopes)
    shapes = [_shape(bend, limit) for bend, limit in zip(bends, noise, strict=True)]
    middles = (rtt_ms[1:] + rtt_ms[:-1]) / 2.0
    edges = np.concatenate([[rtt_ms[0]], middles[1:-1], [rtt_ms[-1]]]).tolist()
    found = []
    for shape, places in groupby(range(len(shapes)), key=shapes.__getitem__):
        run = list(places)
        found.append(Region(edges[run[0]], edges[run[-1] + 1], shape, sure))
    return tuple(found)


def _shape(bend: float, noise: float) -> Shape:
    if abs(bend) <= noise:
        return "straight"
    return "concave" if bend < 0 else "convex"
