"""The running utilisation-concavity coefficient: C_UC of [τ_L, τ] (Rao et al. 2018, Fig. 10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from farline.profiles.coefficients import checked_capacity, uc_weights
from farline.profiles.interpolation import full_rows, line_rows, mean_weights, places_within

if TYPE_CHECKING:
    from farline.profiles.throughput_profile import ThroughputProfile

Floats = npt.NDArray[np.float64]


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
