"""A profile at other round-trip times, as values and as a profile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.interpolation import WeightRows, knot_rows, line_rows
from farline.profiles.spread import Spread

if TYPE_CHECKING:
    from farline.profiles.throughput_profile import Evaluated, Outside, ThroughputProfile

Floats = npt.NDArray[np.float64]


def evaluated(
    profile: ThroughputProfile, rtt_ms: npt.ArrayLike, outside: Outside = "raise"
) -> Evaluated:
    """Rates of a profile at RTTs (P,), with standard errors and a mark on what is extrapolated.

    Raises:
        SpecError: for an RTT outside the profile with "raise", or that is not from 0 up.
    """
    from farline.profiles.throughput_profile import Evaluated

    if outside not in ("raise", "mark", "flat"):
        raise SpecError(f"outside: {outside!r} is not one of raise, mark, flat")
    wanted = _row(profile, rtt_ms) if outside != "raise" else checked_inside(profile, rtt_ms)
    first, last = profile.rtt_ms[0], profile.rtt_ms[-1]
    beyond = (wanted < first) | (wanted > last)
    lines = line_rows(profile.rtt_ms, np.clip(wanted, first, last))
    rates = lines.of(profile.mean_bps)
    if outside == "mark":
        # What a window allows: a constant number of bytes each round trip.
        right = wanted > last
        rates[right] *= last / wanted[right]
    error = profile.spread.standard_error(lines)
    return Evaluated(wanted, rates, np.where(beyond, np.nan, error), beyond)


def checked_inside(profile: ThroughputProfile, rtt_ms: npt.ArrayLike) -> Floats:
    """RTTs as an array (P,).

    Raises:
        SpecError: for one outside the profile.
    """
    wanted = _row(profile, rtt_ms)
    first, last = profile.rtt_ms[0], profile.rtt_ms[-1]
    wrong = wanted[(wanted < first) | (wanted > last)]
    if len(wrong):
        raise SpecError(
            f"{profile.name}: {wrong[0]:g} ms is outside the measured range, {first:g} to "
            f"{last:g} ms; request marked extrapolation if that is intended"
        )
    return wanted


def _row(profile: ThroughputProfile, rtt_ms: npt.ArrayLike) -> Floats:
    wanted = np.atleast_1d(np.asarray(rtt_ms, dtype=np.float64))
    if wanted.ndim != 1 or not bool(np.all(np.isfinite(wanted) & (wanted >= 0))):
        raise SpecError(f"{profile.name}: round-trip times must be numbers of 0 or more")
    return wanted


def at_places(profile: ThroughputProfile, places: Floats) -> ThroughputProfile:
    """A profile with knots at other RTTs (P,) inside, strictly increasing.

    What is between knots of the first is on its lines; its `n` is the smaller of the two beside.
    """
    lines = line_rows(profile.rtt_ms, places)
    return of_spread(
        profile,
        rtt_ms=places,
        mean=lines.of(profile.mean_bps),
        n=fewest(profile, lines),
        spread=profile.spread.onward(lines),
    )


def fewest(profile: ThroughputProfile, lines: WeightRows) -> Floats:
    """The smallest n among the knots that count in each of P rows."""
    smallest: Floats = np.where(lines.weights != 0, profile.n[lines.places], np.inf).min(axis=1)
    return smallest


def of_spread(
    profile: ThroughputProfile, rtt_ms: Floats, mean: Floats, n: Floats, spread: Spread
) -> ThroughputProfile:
    """A derived profile: deviations are what gives its standard errors with its n.

    Quantiles, ends and points belong to measurements and are left behind.
    """
    error = spread.standard_error(knot_rows(len(rtt_ms)))
    return replace(
        profile,
        rtt_ms=rtt_ms,
        mean_bps=mean,
        sd_bps=error * np.sqrt(n),
        n=n,
        low_bps=None,
        high_bps=None,
        quantiles={},
        points_bps=None,
        derived=spread,
    )


def scaled(profile: ThroughputProfile) -> ThroughputProfile:
    """Rates over L, with capacity 1.

    Raises:
        SpecError: when the capacity is unknown.
    """
    from farline.profiles.coefficients import checked_capacity

    capacity = checked_capacity(profile)
    spread = profile.derived
    over = knot_rows(len(profile)).times(np.full(len(profile), 1.0 / capacity))
    points = profile.points_bps
    return replace(
        profile,
        mean_bps=profile.mean_bps / capacity,
        sd_bps=profile.sd_bps / capacity,
        capacity_bps=1.0,
        low_bps=None if profile.low_bps is None else profile.low_bps / capacity,
        high_bps=None if profile.high_bps is None else profile.high_bps / capacity,
        quantiles={share: values / capacity for share, values in profile.quantiles.items()},
        points_bps=points and tuple(tuple(rate / capacity for rate in knot) for knot in points),
        unit="L",
        derived=None if spread is None else spread.onward(over),
    )
