"""The calculus of profiles: projections, differences, ratios, and only over what both cover."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.profiles.calculus import (
    common_interval,
    common_knots,
    comparability,
    compare,
    difference,
    evaluate,
    ratio,
    restrict,
    subset_error,
)
from farline.profiles.cells import Cell, cells_of
from farline.profiles.throughput_profile import ThroughputProfile
from tests.support.draws import draws

calm = draws(50)
"""Other work on the machine makes no test fail."""

GBPS = 1e9


def profile_of(rtt_ms: list[float], gbps: list[float], **options: Any) -> ThroughputProfile:
    means = np.array(gbps) * GBPS
    n = np.full(len(rtt_ms), 10)
    sd = np.full(len(rtt_ms), 0.1 * GBPS)
    options = {"capacity_bps": 10 * GBPS, **options}
    return ThroughputProfile.from_means(rtt_ms, means, n, sd, **options)


T = profile_of([0, 100, 200], [10, 8, 4], label="T")
E = profile_of([50, 100, 300], [6, 5, 1], label="E", modality="E")

rates = st.floats(0.1, 10)


@st.composite
def profiles(draw: st.DrawFn) -> ThroughputProfile:
    places = draw(st.lists(st.integers(1, 399), min_size=1, max_size=6, unique=True))
    rtts = [0.0, *sorted(map(float, places)), 400.0]
    return profile_of(rtts, draw(st.lists(rates, min_size=len(rtts), max_size=len(rtts))))


def test_a_future_site_has_the_profile_at_its_own_round_trip_times() -> None:
    site = evaluate(T, [150, 50])
    assert site.rtt_ms.tolist() == [50, 150] and site.mean_bps.tolist() == [9e9, 6e9]
    assert site.label == "T" and site.capacity_bps == 10 * GBPS
    with pytest.raises(SpecError, match="T: 201 ms is outside the measured range, 0 to 200 ms"):
        evaluate(T, [100, 201])
    with pytest.raises(SpecError, match="no round-trip time"):
        evaluate(T, [])


@calm
@given(profiles(), st.lists(st.floats(0, 400), min_size=1, max_size=8))
def test_projecting_twice_is_projecting_once(profile: ThroughputProfile, at: list[float]) -> None:
    once = evaluate(profile, at)
    twice = evaluate(once, at)
    assert twice.rtt_ms.tolist() == once.rtt_ms.tolist()
    assert twice.mean_bps == pytest.approx(once.mean_bps, rel=1e-12)
    assert twice.standard_error_bps == pytest.approx(once.standard_error_bps, rel=1e-9)
    again = evaluate(profile, profile.rtt_ms)
    assert again.mean_bps.tolist() == profile.mean_bps.tolist()


def site_cells() -> list[Cell]:
    pairs = [("A", "B"), ("B", "A"), ("A", "C"), ("B", "C"), ("C", "C")]
    rows = {
        "from_site": [pair[0] for pair in pairs],
        "to_site": [pair[1] for pair in pairs],
        "rtt_ms": [10.0, 10.0, 20.0, 30.0, 0.1],
        "rate_bps": [9e9, 7e9, 5e9, 2e9, 10e9],
    }
    return cells_of(rows, by=["from_site", "to_site"])


def pairs_of(cells: list[Cell]) -> set[tuple[object, object]]:
    return {(cell.keys["from_site"], cell.keys["to_site"]) for cell in cells}


def test_measurements_are_restricted_to_sites_or_to_one_site() -> None:
    cells = site_cells()
    assert pairs_of(restrict(cells, sites=["A", "B"])) == {("A", "B"), ("B", "A")}
    at_c = {("A", "C"), ("B", "C"), ("C", "C")}
    assert pairs_of(restrict(cells, at_site="C")) == at_c
    assert pairs_of(restrict(cells, ["A", "C"], "C")) == {("A", "C"), ("C", "C")}
    assert restrict(cells) == cells
    profile = ThroughputProfile.from_cells(restrict(cells, sites=["A", "B"]))
    assert profile.mean_bps.tolist() == [8e9] and profile.n.tolist() == [2]


def test_restricting_twice_is_restricting_once() -> None:
    once = restrict(site_cells(), sites=["A", "B"])
    assert restrict(once, sites=["A", "B"]) == once


def test_unknown_sites_and_cells_without_sites_are_refused() -> None:
    with pytest.raises(SpecError, match="site 'D': it has no measurements; known sites: A, B, C"):
        restrict(site_cells(), sites=["A", "D"])
    with pytest.raises(SpecError, match="site 'D'"):
        restrict(site_cells(), at_site="D")
    with pytest.raises(SpecError, match="cells have no sites; group by from_site and to_site"):
        restrict(cells_of({"rate_bps": [1e9]}), at_site="A")


def test_the_difference_is_on_all_knots_of_the_common_interval() -> None:
    gap = T - E
    assert gap.rtt_ms.tolist() == [50, 100, 200]
    assert gap.mean_bps == pytest.approx([3e9, 3e9, 1e9])
    assert gap.label == "T − E" and gap.modality == "T−E" and gap.capacity_bps == 10 * GBPS
    assert (E - T).mean_bps == pytest.approx(-gap.mean_bps)
    # At 50 ms the first is between two knots, the second at one of its own.
    own = 0.1e9 / np.sqrt(10)
    assert gap.standard_error_bps[0] == pytest.approx(own * np.sqrt(0.5**2 + 0.5**2 + 1))
    assert gap.standard_error_bps[1] == pytest.approx(own * np.sqrt(2))


@calm
@given(profiles(), profiles())
def test_a_difference_undoes_itself_and_takes_coefficients_along(
    first: ThroughputProfile, second: ThroughputProfile
) -> None:
    assert (first - first).mean_bps.tolist() == [0.0] * len(first)
    gap = difference(first, second).coefficients()
    one, other = first.coefficients(), second.coefficients()
    assert gap.mean.value == pytest.approx(one.mean.value - other.mean.value, abs=1e-9)
    assert gap.c_cc.value == pytest.approx(one.c_cc.value - other.c_cc.value, abs=1e-9)
    assert gap.c_uc.value == pytest.approx(one.c_uc.value - other.c_uc.value + 0.25, abs=1e-9)
    back = (first - second)((100.0, 300.0)) + second((100.0, 300.0))
    assert back == pytest.approx(first((100.0, 300.0)), rel=1e-9)


@calm
@given(profiles(), profiles())
def test_variances_of_a_difference_are_those_of_both_added(
    first: ThroughputProfile, second: ThroughputProfile
) -> None:
    import scipy.stats

    def variance(profile: ThroughputProfile) -> float:
        # With equal n the interval at so high a number of degrees of freedom is near the normal.
        low = profile.coefficients(0.5).c_uc
        assert low.half_width is not None
        return float((low.half_width / scipy.stats.norm.ppf(0.75)) ** 2)

    added = variance(first) + variance(second)
    assert variance(first - second) == pytest.approx(added, rel=0.2)


def test_the_ratio_is_over_the_common_interval_with_errors_to_first_order() -> None:
    share = E / T
    assert share.rtt_ms.tolist() == [50, 100, 200]
    assert share.mean_bps == pytest.approx([6 / 9, 5 / 8, 3 / 4])
    assert (share.unit, share.capacity_bps, share.modality) == ("1", 1.0, "E/T")
    own = 0.1 / np.sqrt(10)
    expected = 5 / 8 * np.hypot(own / 5, own / 8)
    assert share.standard_error_bps[1] == pytest.approx(expected)
    assert share.coefficients().c_uc.low is not None


@calm
@given(profiles())
def test_a_profile_over_itself_is_one(profile: ThroughputProfile) -> None:
    assert ratio(profile, profile).mean_bps == pytest.approx(np.ones(len(profile)))


def test_first_order_errors_agree_with_drawing() -> None:
    random = np.random.default_rng(5)
    first = random.normal(5e9, 0.1e9 / np.sqrt(10), 200_000)
    second = random.normal(8e9, 0.1e9 / np.sqrt(10), 200_000)
    drawn = float(np.std(first / second))
    assert (E / T).standard_error_bps[1] == pytest.approx(drawn, rel=0.02)


def test_profiles_that_share_no_round_trip_time_cannot_be_compared() -> None:
    far = profile_of([250, 300], [1, 1], label="far")
    for combine in (difference, ratio, common_interval, compare):
        with pytest.raises(SpecError, match="no round-trip time is covered by all profiles: T 0"):
            combine(T, far)
    with pytest.raises(SpecError, match="no profile given; at least one is needed"):
        common_interval()


def test_profiles_that_touch_have_one_round_trip_time_in_common() -> None:
    far = profile_of([200, 300], [1, 1])
    assert common_interval(T, far) == (200, 200)
    assert (T - far).mean_bps == pytest.approx([3e9])
    found = compare(T, far)
    assert (found.first, found.second) == (None, None)


def test_units_capacities_and_rates_of_nothing_are_refused() -> None:
    with pytest.raises(SpecError, match="difference: T is in bit/s, T in L"):
        difference(T, T.normalised())
    with pytest.raises(SpecError, match="ratio: T is in L, T in bit/s"):
        ratio(T.normalised(), T)
    with pytest.raises(SpecError, match="capacities 1e\\+10 and 4e\\+10 bit/s differ"):
        difference(T, profile_of([0, 100], [1, 1], capacity_bps=40 * GBPS))
    with pytest.raises(SpecError, match="is not above 0 at every round-trip time"):
        ratio(T, profile_of([0, 200], [1, 0]))
    with pytest.raises(TypeError):
        T - 1
    with pytest.raises(TypeError):
        T / 2


def test_a_comparison_is_over_what_both_cover_and_says_so() -> None:
    found = compare(T, E)
    assert (found.left_ms, found.right_ms) == (50, 200)
    assert found.first is not None and found.second is not None
    assert found.first == T.coefficients(interval=(50, 200))
    assert found.second == E.coefficients(interval=(50, 200))
    assert found.difference.mean_bps.tolist() == (T - E).mean_bps.tolist()
    assert found.ratio.mean_bps.tolist() == (T / E).mean_bps.tolist()
    assert any("compared over 50 to 200 ms" in line for line in found.warnings)
    assert any("measured at different round-trip times" in line for line in found.warnings)
    unknown = compare(T, profile_of([0, 200], [9, 8], capacity_bps=None))
    assert unknown.first is not None and unknown.second is None
    assert any("profiles refer to different capacities" in line for line in unknown.warnings)


def test_profiles_of_the_same_round_trip_times_and_capacity_compare_without_a_word() -> None:
    assert comparability(T, profile_of([0, 100, 200], [9, 5, 1])) == ()


def test_common_knots_are_those_of_all_profiles_inside() -> None:
    third = profile_of([10, 120, 180], [3, 2, 1])
    assert common_knots(T, E, third).tolist() == [50, 100, 120, 180]


def test_five_of_eleven_round_trip_times_are_near_where_a_profile_is_smooth() -> None:
    rtts = [0.4, 11.8, 22.6, 45.6, 70, 91.6, 120, 150, 183, 250, 366]
    smooth = profile_of(rtts, [10 * (1 - (rtt / 600) ** 2) for rtt in rtts])
    chosen = [0.4, 91.6, 183, 250, 366]
    assert 0 < subset_error(smooth, chosen) < 0.02
    assert subset_error(smooth, rtts) == 0.0


def test_the_error_of_a_subset_is_the_largest_relative_gap() -> None:
    bent = profile_of([0, 50, 100], [10, 8, 4])
    assert subset_error(bent, [0, 100]) == pytest.approx(abs(7 / 8 - 1))


def test_a_subset_needs_both_ends_and_knots() -> None:
    with pytest.raises(SpecError, match="T: 200 ms must be among the chosen"):
        subset_error(T, [0, 100])
    with pytest.raises(SpecError, match="T: 50 ms is not one of its round-trip times"):
        subset_error(T, [0, 50, 200])
    with pytest.raises(SpecError, match="a mean is not above 0"):
        subset_error(profile_of([0, 1], [1, 0]), [0, 1])
