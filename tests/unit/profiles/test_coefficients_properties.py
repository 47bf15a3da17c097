"""What holds of the coefficients of every profile, and how often their intervals are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.profiles.bootstrap import bootstrap_c_uc
from farline.profiles.coefficients import uc_weights
from farline.profiles.repeats import repeats_needed
from farline.profiles.throughput_profile import ThroughputProfile
from tests.support.draws import draws

calm = draws(50)
"""Other work on the machine makes no test fail."""

CAPACITY_BPS = 1e10

rtt_lists = st.lists(st.integers(0, 40_000), min_size=2, max_size=9, unique=True).map(
    lambda places: [place / 100 for place in sorted(places)]
)


@st.composite
def profiles(draw: st.DrawFn, falling: bool = False) -> ThroughputProfile:
    """Profiles with rates from 0 to the capacity, with repeats."""
    rtt_ms = draw(rtt_lists)
    count = len(rtt_ms)
    shares = draw(st.lists(st.floats(0, 1), min_size=count, max_size=count))
    n = draw(st.lists(st.integers(2, 20), min_size=count, max_size=count))
    sd = draw(st.lists(st.floats(0, 0.3), min_size=count, max_size=count))
    rates = np.array(sorted(shares, reverse=True) if falling else shares) * CAPACITY_BPS
    return ThroughputProfile.from_means(
        rtt_ms, rates, n, np.array(sd) * CAPACITY_BPS, capacity_bps=CAPACITY_BPS
    )


@calm
@given(profiles())
def test_the_parts_make_up_the_whole(profile: ThroughputProfile) -> None:
    found = profile.coefficients()
    m, chord = found.mean.value, found.chord.value
    assert found.c_u.value == pytest.approx(1 - m, abs=1e-12)
    assert found.c_cc.value == pytest.approx(m - chord, abs=1e-12)
    assert found.chord.value == pytest.approx((found.left + found.right) / 2, abs=1e-12)
    assert found.c_uc.value == pytest.approx(m - chord / 2 + 0.25, abs=1e-12)
    assert found.c_uc.value == pytest.approx(
        ((1 - found.c_u.value) + (0.5 + found.c_cc.value)) / 2, abs=1e-12
    )
    weighted = uc_weights(profile.rtt_ms) @ (profile.mean_bps / CAPACITY_BPS)
    assert found.c_uc.value == pytest.approx(0.25 + weighted, abs=1e-12)
    span = CAPACITY_BPS * (found.right_ms - found.left_ms)
    assert found.area_u == pytest.approx(found.c_u.value * span, abs=1e-9 * span)
    assert found.area_cc == pytest.approx(found.c_cc.value * span, abs=1e-9 * span)


@calm
@given(profiles(falling=True))
def test_profiles_that_do_not_rise_are_between_zero_and_one(profile: ThroughputProfile) -> None:
    assert -1e-12 <= profile.coefficients().c_uc.value <= 1 + 1e-12


@calm
@given(profiles())
def test_any_profile_is_within_a_quarter_of_that(profile: ThroughputProfile) -> None:
    assert -0.25 - 1e-12 <= profile.coefficients().c_uc.value <= 1.25 + 1e-12


@calm
@given(rtt_lists, st.floats(0, 1), st.floats(0, 1))
def test_straight_lines_are_worth_half_their_mean_and_a_quarter(
    rtt_ms: list[float], left: float, right: float
) -> None:
    profile = ThroughputProfile.from_means(rtt_ms, np.ones(len(rtt_ms)), capacity_bps=1.0)
    rates = left + (right - left) * profile.x
    found = ThroughputProfile.from_means(rtt_ms, rates, capacity_bps=1.0).coefficients()
    assert found.c_cc.value == pytest.approx(0.0, abs=1e-12)
    assert found.c_uc.value == pytest.approx((left + right) / 4 + 0.25, abs=1e-12)


@calm
@given(profiles(), st.floats(1e-3, 1e3), st.integers(1, 50), st.integers(0, 300))
def test_units_and_places_of_the_axes_do_not_matter(
    profile: ThroughputProfile, factor: float, stretch: int, shift: int
) -> None:
    moved = ThroughputProfile.from_means(
        stretch * profile.rtt_ms + shift,
        factor * profile.mean_bps,
        profile.n,
        factor * profile.sd_bps,
        capacity_bps=factor * CAPACITY_BPS,
    )
    one, other = profile.coefficients(), moved.coefficients()
    assert other.c_uc.value == pytest.approx(one.c_uc.value, abs=1e-9)
    assert other.c_cc.value == pytest.approx(one.c_cc.value, abs=1e-9)
    assert other.c_uc.half_width == pytest.approx(one.c_uc.half_width, rel=1e-6, abs=1e-9)


@calm
@given(profiles(), st.randoms(use_true_random=False))
def test_the_order_of_means_does_not_matter(profile: ThroughputProfile, random: Any) -> None:
    order = random.sample(range(len(profile)), len(profile))
    again = ThroughputProfile.from_means(
        profile.rtt_ms[order],
        profile.mean_bps[order],
        profile.n[order],
        profile.sd_bps[order],
        capacity_bps=CAPACITY_BPS,
    )
    assert repr(again.coefficients()) == repr(profile.coefficients())


@calm
@given(profiles(), st.floats(0.01, 0.99))
def test_knots_on_the_lines_change_nothing(profile: ThroughputProfile, share: float) -> None:
    at = profile.rtt_ms[0] + share * (profile.rtt_ms[-1] - profile.rtt_ms[0])
    rtts = np.unique([*profile.rtt_ms, at])
    finer = ThroughputProfile.from_means(rtts, profile(rtts), capacity_bps=CAPACITY_BPS)
    one, other = profile.coefficients(), finer.coefficients()
    assert other.mean.value == pytest.approx(one.mean.value, abs=1e-9)
    assert other.c_uc.value == pytest.approx(one.c_uc.value, abs=1e-9)


@calm
@given(profiles())
def test_the_running_curve_begins_at_its_limit_and_ends_at_the_whole(
    profile: ThroughputProfile,
) -> None:
    curve, found = profile.running(), profile.coefficients()
    assert curve.c_uc[0] == pytest.approx(profile.mean_bps[0] / CAPACITY_BPS / 2 + 0.25)
    assert curve.c_uc[-1] == pytest.approx(found.c_uc.value, abs=1e-12)
    assert curve.mean[-1] == pytest.approx(found.mean.value, abs=1e-12)
    assert curve.c_cc[-1] == pytest.approx(found.c_cc.value, abs=1e-9)
    assert curve.high[-1] == pytest.approx(found.c_uc.high, abs=1e-9)
    assert curve.rtt_ms.tolist() == profile.rtt_ms.tolist()
    for place in range(1, len(profile)):
        part = profile.coefficients(interval=(profile.rtt_ms[0], profile.rtt_ms[place]))
        assert curve.c_uc[place] == pytest.approx(part.c_uc.value, abs=1e-12)
        assert curve.low[place] == pytest.approx(part.c_uc.low, abs=1e-9)


def test_the_running_curve_can_be_asked_between_knots_but_not_outside() -> None:
    profile = ThroughputProfile.from_means([10, 20], [1e9, 1e9], capacity_bps=1e9)
    assert profile.running(at_ms=[12.5, 20]).c_uc == pytest.approx([0.75, 0.75])
    with pytest.raises(SpecError, match="21 ms is outside the measured range, 10 to 20 ms"):
        profile.running(at_ms=[21])


def simulated(seed: int, n: int = 5) -> ThroughputProfile:
    random = np.random.default_rng(seed)
    rtts = np.repeat([0.4, 11.8, 22.6, 45.6, 91.6, 183.0, 366.0], n)
    means = 9e9 - 15e6 * rtts
    rates = random.normal(means, 0.1 * means)
    frame = {"rtt_ms": rtts, "rate_bps": rates}
    return ThroughputProfile.from_frame(frame, capacity_bps=CAPACITY_BPS)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Linear means: the truth is known. 600 seeded trials; ± 2.7 % is three standard errors."""
    rtts = [0.4, 11.8, 22.6, 45.6, 91.6, 183.0, 366.0]
    means = 9e9 - 15e6 * np.array(rtts)
    truth = ThroughputProfile.from_means(rtts, means, capacity_bps=CAPACITY_BPS).coefficients()
    drawn = np.random.default_rng(11).normal(means, 0.1 * means, (600, 5, 7))
    n = np.full(7, 5)
    held = 0
    for rates in drawn:
        profile = ThroughputProfile.from_means(
            rtts, rates.mean(axis=0), n, rates.std(axis=0, ddof=1), capacity_bps=CAPACITY_BPS
        )
        found = profile.coefficients().c_uc
        assert found.low is not None and found.high is not None
        held += found.low <= truth.c_uc.value <= found.high
    assert 0.95 - 0.027 <= held / 600 <= 0.95 + 0.027


def test_the_bootstrap_agrees_with_the_closed_interval() -> None:
    profile = simulated(7, n=30)
    closed, drawn = profile.coefficients().c_uc, bootstrap_c_uc(profile)
    assert drawn.value == pytest.approx(closed.value, abs=1e-12)
    assert closed.half_width is not None
    assert drawn.half_width == pytest.approx(closed.half_width, rel=0.15)
    assert bootstrap_c_uc(profile) == drawn, "the seed decides"


def test_a_bootstrap_needs_repeats_at_every_round_trip_time() -> None:
    rows = {"rtt_ms": [1, 1, 5], "rate_bps": [1e9, 2e9, 1e9]}
    single = ThroughputProfile.from_frame(rows, capacity_bps=CAPACITY_BPS)
    with pytest.raises(SpecError, match="needs two measurements at each RTT"):
        bootstrap_c_uc(single)
    means = ThroughputProfile.from_means([1, 5], [1e9, 1e9], [5, 5], [1e8, 1e8], capacity_bps=1e10)
    with pytest.raises(SpecError, match="needs the measurements themselves"):
        bootstrap_c_uc(means)
    with pytest.raises(SpecError, match="resamples: 5 are too few"):
        bootstrap_c_uc(simulated(1), resamples=5)


@pytest.mark.parametrize(
    ("cv", "half_width", "runs"),
    [(0.05, 0.05, 7), (0.05, 0.1, 4), (0.1, 0.05, 18), (0.1, 0.1, 7), (0.2, 0.05, 64),
     (0.2, 0.1, 18)],
)  # fmt: skip
def test_how_many_runs_a_mean_needs(cv: float, half_width: float, runs: int) -> None:
    assert repeats_needed(cv, half_width) == runs


def test_ten_runs_know_a_mean_to_a_twentieth_up_to_seven_per_cent_of_variation() -> None:
    assert repeats_needed(0.0695, 0.05) == 10
    assert repeats_needed(0.075, 0.05) > 10


@calm
@given(st.floats(0.001, 0.5), st.floats(0.01, 0.5))
def test_one_run_fewer_would_not_be_enough(cv: float, half_width: float) -> None:
    import scipy.stats

    runs = repeats_needed(cv, half_width)
    halves = [scipy.stats.t.ppf(0.975, n - 1) * cv / n**0.5 for n in (runs, runs - 1) if n > 1]
    assert halves[0] <= half_width * (1 + 1e-9)
    assert runs == 2 or halves[1] > half_width * (1 - 1e-9)


@pytest.mark.parametrize(
    ("cv", "half_width", "message"),
    [
        (0.0, 0.1, "cv: 0.0 is not a share above 0"),
        (0.1, -1.0, "half_width: -1.0 is not a share above 0"),
        (1.0, 1e-4, "needs more than 1000000 runs"),
    ],
)
def test_shares_that_make_no_sense_are_refused(cv: float, half_width: float, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        repeats_needed(cv, half_width)
