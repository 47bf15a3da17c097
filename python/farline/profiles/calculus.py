"""The calculus of profiles (Rao et al. 2018, section 3.2): projection, difference, ratio.

The paper's projection R is two operations. `evaluate` asks a profile at other round-trip times, as
for a site that does not exist yet. `restrict` keeps the measurements of some sites, of which a
profile is then made anew; profiles of single sites differ, so they cannot come from the whole.

Every comparison is over the RTTs that both profiles cover, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.cell import Cell
from farline.profiles.coefficients import Coefficients, checked_capacity
from farline.profiles.interpolation import Spread, WeightRows, knot_rows, line_rows, together

if TYPE_CHECKING:
    from farline.profiles.throughput_profile import ThroughputProfile

Floats = npt.NDArray[np.float64]

Outside = Literal["raise", "mark", "flat"]
"""What is done about RTTs outside a profile: an error, flat to the left and W/τ to the right, or
flat on both sides; the last two are marked."""


@dataclass(frozen=True, eq=False, slots=True)
class Evaluated:
    """A profile at P round-trip times: rates (P,) and their standard errors (P,), NaN if unknown.

    `extrapolated` (P,) marks what is outside the profile, where there is no standard error.
    """

    rtt_ms: Floats
    rate_bps: Floats
    standard_error_bps: Floats
    extrapolated: npt.NDArray[np.bool_]


def evaluated(
    profile: ThroughputProfile, rtt_ms: npt.ArrayLike, outside: Outside = "raise"
) -> Evaluated:
    """Rates of a profile at RTTs (P,), with standard errors and a mark on what is extrapolated.

    Raises:
        SpecError: for an RTT outside the profile with "raise", or that is not from 0 up.
    """

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


def evaluate(profile: ThroughputProfile, rtt_ms: npt.ArrayLike) -> ThroughputProfile:
    """The projection by RTT: a profile with knots at `rtt_ms`, in any order, on the lines between.

    Doing it again at the same RTTs changes nothing.

    Raises:
        SpecError: for an RTT outside the profile, or none.
    """
    return at_places(profile, np.unique(profile.checked_inside(rtt_ms)))


def restrict(
    cells: Iterable[Cell],
    sites: Sequence[str] | None = None,
    at_site: str | None = None,
) -> list[Cell]:
    """The projection by site: cells with both ends in `sites`, or with at least one end `at_site`.

    With both, what fits both.

    Raises:
        SpecError: when cells do not say their sites, or a site is in none of them.
    """
    several = list(cells)
    known = set()
    for cell in several:
        if not {"from_site", "to_site"} <= set(cell.keys):
            raise SpecError(
                "restrict: cells have no sites; group by from_site and to_site, not by "
                f"{', '.join(cell.keys) or 'nothing'}"
            )
        known |= {cell.keys["from_site"], cell.keys["to_site"]}
    for site in (*(sites or ()), *(() if at_site is None else (at_site,))):
        if site not in known:
            listed = ", ".join(sorted(str(one) for one in known if one is not None))
            raise SpecError(f"site {site!r}: it has no measurements; known sites: {listed}")
    return [cell for cell in several if _fits(cell, sites, at_site)]


def _fits(cell: Cell, sites: Sequence[str] | None, at_site: str | None) -> bool:
    ends = (cell.keys["from_site"], cell.keys["to_site"])
    inside = sites is None or all(end in sites for end in ends)
    return inside and (at_site is None or at_site in ends)


def common_interval(*profiles: ThroughputProfile) -> tuple[float, float]:
    """The RTTs in ms, from and to, that all profiles cover; one alone if they touch there.

    Raises:
        SpecError: when there is none, or no profile.
    """
    if not profiles:
        raise SpecError("common interval: no profile given; at least one is needed")
    left = max(float(profile.rtt_ms[0]) for profile in profiles)
    right = min(float(profile.rtt_ms[-1]) for profile in profiles)
    if left > right:
        spans = ", ".join(
            f"{one.name} {one.rtt_ms[0]:g} to {one.rtt_ms[-1]:g} ms" for one in profiles
        )
        raise SpecError(f"no round-trip time is covered by all profiles: {spans}")
    return left, right


def common_knots(*profiles: ThroughputProfile) -> Floats:
    """The knots of all profiles over the RTTs that all cover, ends included."""
    left, right = common_interval(*profiles)
    knots = np.concatenate([[left, right], *(profile.rtt_ms for profile in profiles)])
    return np.unique(knots[(knots >= left) & (knots <= right)])


def difference(first: ThroughputProfile, second: ThroughputProfile) -> ThroughputProfile:
    """(Θ1 ⊖ Θ2)(τ) = Θ1(τ) − Θ2(τ), on the knots of both over the RTTs both cover.

    Standard errors suppose measurements of their own; of profiles that share some they come out
    too large.

    Raises:
        SpecError: when no RTT is covered by both, or units or capacities differ.
    """
    if first.unit != second.unit:
        raise SpecError(
            f"difference: {first.name} is in {first.unit}, {second.name} in {second.unit}"
        )
    result = combined(first, second, common_knots(first, second), _subtracted)
    return replace(
        result,
        capacity_bps=_one_capacity(first, second),
        label=f"{first.name} − {second.name}",
        modality=_modality(first, second, "−"),
    )


def ratio(first: ThroughputProfile, second: ThroughputProfile) -> ThroughputProfile:
    """Θ1(τ) / Θ2(τ) on the knots of both over the RTTs both cover, unit 1, capacity 1.

    Between knots it is taken for straight. Standard errors are to first order, and suppose
    measurements of their own.

    Raises:
        SpecError: when no RTT is covered by both, or the second is not above 0 somewhere.
    """
    if first.unit != second.unit:
        raise SpecError(f"ratio: {first.name} is in {first.unit}, {second.name} in {second.unit}")
    result = combined(first, second, common_knots(first, second), _divided)
    return replace(
        result,
        capacity_bps=1.0,
        unit="1",
        label=f"{first.name} / {second.name}",
        modality=_modality(first, second, "/"),
    )


Combine = Callable[[Floats, Floats], tuple[Floats, Floats, Floats]]
"""From values (P,) of two profiles: what comes out (P,), and its derivatives by each (P,)."""


def combined(
    first: ThroughputProfile, second: ThroughputProfile, places: Floats, combine: Combine
) -> ThroughputProfile:
    """What `combine` makes of two profiles at RTTs that both cover, errors to first order."""
    lines = [line_rows(profile.rtt_ms, places) for profile in (first, second)]
    values, by_first, by_second = combine(lines[0].of(first.mean_bps), lines[1].of(second.mean_bps))
    spread = together(
        first.spread,
        second.spread,
        lines[0].times(by_first),
        lines[1].times(by_second),
    )
    n = np.minimum(fewest(first, lines[0]), fewest(second, lines[1]))
    result = of_spread(first, places, values, n, spread)
    return replace(
        result,
        failed=first.failed + second.failed,
        unplaced=first.unplaced + second.unplaced,
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
    )


def _subtracted(first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    return first - second, np.ones(len(first)), -np.ones(len(first))


def _divided(first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    if not bool(np.all(second > 0)):
        raise SpecError("ratio: the divisor is not above 0 at every round-trip time")
    return first / second, 1.0 / second, -first / second**2


def _one_capacity(first: ThroughputProfile, second: ThroughputProfile) -> float | None:
    known = {one.capacity_bps for one in (first, second)} - {None}
    if len(known) > 1:
        raise SpecError(
            f"difference: capacities {first.capacity_bps:g} and {second.capacity_bps:g} bit/s "
            "differ; give one for both"
        )
    return known.pop() if known else None


def _modality(first: ThroughputProfile, second: ThroughputProfile, sign: str) -> str:
    if first.modality == second.modality:
        return first.modality
    return f"{first.modality}{sign}{second.modality}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two profiles over the RTTs that both cover, from `left_ms` to `right_ms`.

    `first` and `second` are their coefficients over these RTTs alone; None where a capacity is
    unknown or the profiles touch at one RTT. `warnings` say why the two may not be comparable.
    """

    left_ms: float
    right_ms: float
    difference: ThroughputProfile
    ratio: ThroughputProfile
    first: Coefficients | None
    second: Coefficients | None
    warnings: tuple[str, ...]


def compare(
    first: ThroughputProfile, second: ThroughputProfile, confidence: float = 0.95
) -> Comparison:
    """Difference, ratio and coefficients of two profiles, all over the same RTTs.

    Raises:
        SpecError: when no RTT is covered by both, units or capacities differ, or the second is
            not above 0 somewhere.
    """
    left, right = common_interval(first, second)
    scores = [
        one.coefficients(confidence, (left, right))
        if one.capacity_bps is not None and left < right
        else None
        for one in (first, second)
    ]
    return Comparison(
        left_ms=left,
        right_ms=right,
        difference=difference(first, second),
        ratio=ratio(first, second),
        first=scores[0],
        second=scores[1],
        warnings=comparability(first, second),
    )


def comparability(*profiles: ThroughputProfile) -> tuple[str, ...]:
    """Why coefficients of profiles may not be comparable, a line for each reason."""
    left, right = common_interval(*profiles)
    lines = []
    spans = {(float(one.rtt_ms[0]), float(one.rtt_ms[-1])) for one in profiles}
    if len(spans) > 1:
        lines.append(
            f"profiles cover different round-trip times: compared over {left:g} to {right:g} ms"
        )
    knots = {tuple(one.rtt_ms[(one.rtt_ms >= left) & (one.rtt_ms <= right)]) for one in profiles}
    if len(knots) > 1:
        lines.append(
            "profiles are measured at different round-trip times, and coefficients depend on them"
        )
    capacities = {one.capacity_bps for one in profiles}
    if len(capacities) > 1:
        lines.append(
            "profiles refer to different capacities: their coefficients cannot be compared"
        )
    return tuple(lines)


def subset_error(profile: ThroughputProfile, rtt_ms: Sequence[float]) -> float:
    """Largest relative gap between a profile and the one through some of its knots alone.

    Rao et al. 2018, Fig. 8: five of eleven RTTs are within 2 %. Relative to the whole profile; on
    straight lines the largest gap is at a knot.

    Raises:
        SpecError: when an RTT is no knot, the first or last is left out, or a mean is not above 0.
    """
    kept = np.unique(np.asarray(rtt_ms, dtype=np.float64))
    strange = [rtt for rtt in kept.tolist() if rtt not in profile.rtt_ms]
    if strange:
        raise SpecError(f"{profile.name}: {strange[0]:g} ms is not one of its round-trip times")
    for end in (float(profile.rtt_ms[0]), float(profile.rtt_ms[-1])):
        if end not in kept:
            raise SpecError(
                f"{profile.name}: {end:g} ms must be among the chosen round-trip times; "
                "nothing is extrapolated"
            )
    if not bool(np.all(profile.mean_bps > 0)):
        raise SpecError(f"{profile.name}: a mean is not above 0, so no gap is relative to it")
    means = profile.mean_bps[np.isin(profile.rtt_ms, kept)]
    guessed = line_rows(kept, profile.rtt_ms).of(means)
    return float(np.max(np.abs(guessed / profile.mean_bps - 1.0)))
