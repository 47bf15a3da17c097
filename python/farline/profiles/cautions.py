"""Where the coefficients of a profile mislead, in words (docs/design/analytics.md says why)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from farline.profiles.coefficients import uc_weights
from farline.profiles.interpolation import places_within, step_rows

if TYPE_CHECKING:
    from farline.profiles.coefficients import Coefficients
    from farline.profiles.throughput_profile import ThroughputProfile

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
        f"{pooled} round-trip times have one measurement: their standard deviation is "
        "estimated from the others"
    )
