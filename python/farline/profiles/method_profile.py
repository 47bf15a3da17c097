"""What a transfer method makes of network, hosts and file systems (Rao et al. 2018, section 3.4).

The profile of the method is what file transfers reach (Θ_E) over what they could: `strict`, over
the least of TCP (Θ_T), hosts and file systems at each round-trip time; `paper`, by equation 2.2 as
it is printed. That one multiplies the shape of TCP with the limit of hosts and files, so that where
TCP is below the limit it comes out above 1 for a method that loses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.bootstrap import drawn_from_errors, drawn_means, percentile_bounds
from farline.profiles.calculus import combined, common_interval, common_knots
from farline.profiles.coefficients import OVER_CAPACITY, Coefficients, Interval, uc_weights
from farline.profiles.interpolation import line_rows

if TYPE_CHECKING:
    from farline.profiles.throughput_profile import ThroughputProfile

Floats = npt.NDArray[np.float64]

How = Literal["strict", "paper"]

Rule = Callable[[Floats, Floats], tuple[Floats, Floats, Floats]]


@dataclass(frozen=True, eq=False, slots=True)
class MethodProfile:
    """Θ_F over the round-trip times that both profiles cover, with its coefficients.

    `profile` has unit 1 and capacity 1, with errors to first order. `cap_bps` is the least of the
    limits of hosts and file systems, None without any. `low` and `high` are bootstrap intervals at
    the knots and `c_uc_bootstrap` that of C_UC; None where none was asked for or none is possible.
    Nothing is clipped: values above 1 stand, and `warnings` name them.
    """

    profile: ThroughputProfile
    how: How
    cap_bps: float | None
    coefficients: Coefficients | None
    low: Floats | None
    high: Floats | None
    c_uc_bootstrap: Interval | None
    warnings: tuple[str, ...]


def method_profile(
    files: ThroughputProfile,
    network: ThroughputProfile,
    *,
    host_bps: Sequence[float] = (),
    file_bps: Sequence[float] = (),
    how: How = "strict",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> MethodProfile:
    """The method's profile from file transfers (modality E) and memory transfers (T).

    `host_bps` and `file_bps` are what hosts and file systems of the sites can do. `resamples` of
    0 leaves the bootstrap out. Coefficients are None where the profiles touch at one RTT.

    Raises:
        SpecError: when no RTT is covered by both, the network's profile is not above 0 somewhere,
            a limit is not above 0, or `paper` lacks the capacity L.
    """
    if how not in ("strict", "paper"):
        raise SpecError(f"how: {how!r} is not one of strict, paper")
    cap_bps = _least(host_bps, file_bps)
    places = _places(files, network, cap_bps if how == "strict" else None)
    rule = _rule(files, network, cap_bps, how)
    made = replace(
        combined(files, network, places, rule),
        capacity_bps=1.0,
        unit="1",
        modality="F",
        label=f"{files.name} over {network.name}",
    )
    scores = made.coefficients(confidence) if len(made) > 1 else None
    low = high = drawn = None
    said = () if scores is None else scores.warnings
    if resamples and all(one.spread.known and one.derived is None for one in (files, network)):
        said = (*said, *_how_drawn(files, network))
        values = _drawn_values(files, network, places, rule, resamples, seed)
        low, high = percentile_bounds(values, confidence)
        if len(made) > 1:
            drawn = _drawn_c_uc(values, made, confidence)
    return MethodProfile(
        made, how, cap_bps, scores, low, high, drawn, (*said, *_warnings(made, network, how))
    )


def _least(host_bps: Sequence[float], file_bps: Sequence[float]) -> float | None:
    limits = [float(limit) for limit in (*host_bps, *file_bps)]
    for limit in limits:
        if not (limit > 0 and math.isfinite(limit)):
            raise SpecError(f"limit of a host or file system: {limit:g} is not a rate above 0")
    return min(limits, default=None)


def _places(files: ThroughputProfile, network: ThroughputProfile, cap_bps: float | None) -> Floats:
    """The knots of both, and where the network's profile crosses the limit: there it bends."""
    places = common_knots(files, network)
    if cap_bps is None:
        return places
    rates = line_rows(network.rtt_ms, places).of(network.mean_bps) - cap_bps
    crossed = np.flatnonzero(rates[:-1] * rates[1:] < 0)
    share = rates[crossed] / (rates[crossed] - rates[crossed + 1])
    return np.unique(np.concatenate([places, places[crossed] + share * np.diff(places)[crossed]]))


def _rule(
    files: ThroughputProfile, network: ThroughputProfile, cap_bps: float | None, how: How
) -> Rule:
    """Θ_F from Θ_E and Θ_T, with its derivatives by both."""
    if how == "strict" or cap_bps is None:
        return _strict(math.inf if cap_bps is None else cap_bps)
    left_ms, _ = common_interval(files, network)
    if cap_bps >= float(network(left_ms)):
        return _strict(math.inf)
    return _printed(_capacity(files, network) / cap_bps)


def _strict(cap_bps: float) -> Rule:
    def rule(files: Floats, network: Floats) -> tuple[Floats, Floats, Floats]:
        _check_above_zero(network)
        least = np.minimum(network, cap_bps)
        return files / least, 1.0 / least, np.where(network < cap_bps, -files / least**2, 0.0)

    return rule


def _printed(factor: float) -> Rule:
    def rule(files: Floats, network: Floats) -> tuple[Floats, Floats, Floats]:
        _check_above_zero(network)
        return factor * files / network, factor / network, -factor * files / network**2

    return rule


def _check_above_zero(network: Floats) -> None:
    if not bool(np.all(network > 0)):
        raise SpecError("method profile: the network's profile is not above 0 at every RTT")


def _capacity(files: ThroughputProfile, network: ThroughputProfile) -> float:
    known = {one.capacity_bps for one in (files, network)} - {None}
    if len(known) != 1:
        listed = ", ".join(f"{one:g}" for one in sorted(c for c in known if c is not None))
        raise SpecError(f"equation 2.2 needs one capacity L; the profiles have {listed or 'none'}")
    return float(known.pop() or 0.0)


def _drawn_values(
    files: ThroughputProfile,
    network: ThroughputProfile,
    places: Floats,
    rule: Rule,
    resamples: int,
    seed: int,
) -> Floats:
    """Θ_F (B, P) of measurements drawn anew."""
    random = np.random.default_rng(seed)
    drawn = [
        line_rows(one.rtt_ms, places).of(drawn_means(one, resamples, random))
        for one in (files, network)
    ]
    return rule(*drawn)[0]


def _how_drawn(files: ThroughputProfile, network: ThroughputProfile) -> tuple[str, ...]:
    """Says it where intervals do not come from the measurements themselves."""
    names = [one.name for one in (files, network) if drawn_from_errors(one)]
    if not names:
        return ()
    return (
        f"bootstrap intervals of {' and '.join(names)} use the standard errors where not all "
        "measurements are kept",
    )


def _drawn_c_uc(values: Floats, made: ThroughputProfile, confidence: float) -> Interval:
    weights = uc_weights(made.rtt_ms)
    low, high = percentile_bounds(values @ weights + 0.25, confidence)
    return Interval(float(weights @ made.mean_bps) + 0.25, float(low), float(high))


def _warnings(made: ThroughputProfile, network: ThroughputProfile, how: How) -> tuple[str, ...]:
    lines = []
    at = int(np.argmax(made.mean_bps))
    if made.mean_bps[at] > OVER_CAPACITY:
        why = "a limit or a measurement is wrong"
        if how == "paper":
            why = "equation 2.2 as printed does that where TCP is below the limits; see strict"
        lines.append(
            f"the method reaches {made.mean_bps[at]:.2f} of its limit at {made.rtt_ms[at]:g} ms: "
            f"{why}"
        )
    if bool(np.any(np.diff(network.mean_bps) > 0)):
        lines.append("the network's profile rises somewhere; Rao et al. 2018 assume it does not")
    return tuple(lines)
