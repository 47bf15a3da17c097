"""Every model of a profile: what all have in common, and what each finds of its own curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from farline.errors import SpecError, UsageError
from farline.models.dedicated_channel import dedicated_bps
from farline.models.dedicated_fit import DedicatedChannel
from farline.models.profile_model import Regressor
from farline.models.profile_models import (
    MODELS,
    ConcaveConvex,
    Constant,
    Isotonic,
    PiecewiseLinear,
    PowerLaw,
    Unimodal,
    WindowBound,
    model_named,
)
from farline.models.sigmoid_pair import SigmoidPair, sigmoid
from farline.models.window_bound import window_bound_bps
from tests.support.draws import draws

Floats = NDArray[np.float64]

RTTS_MS = np.array([0.4, 11.8, 22.6, 45.6, 91.6, 183, 366])
RATES_BPS = np.array([9.3, 9.4, 8.9, 8.1, 6.2, 3.1, 1.6]) * 1e9
MORE_MS = np.array([0.4, 11.8, 22.6, 45.6, 69, 91.6, 120, 150, 183, 250, 366])

kinds = pytest.mark.parametrize("kind", MODELS.values(), ids=list(MODELS))


@kinds
def test_a_model_is_asked_in_the_same_way_whatever_it_is(kind: type[Regressor]) -> None:
    model = kind()
    assert model.fit(RTTS_MS, RATES_BPS) is model
    asked_ms = np.array([[0.0, 1.0], [100.0, 500.0]])
    assert model.predict(asked_ms).shape == (2, 2)
    assert (model.predict(np.linspace(0.4, 366, 50)) > 0).all()
    assert model.rtt_range_ms_ == (0.4, 366)
    assert model.parameters_ >= 1
    assert model.score(RTTS_MS, RATES_BPS) <= 1
    words = model.in_words()
    assert words and "\n" not in words
    assert type(model)(**model.get_params()).get_params() == model.get_params()
    assert repr(model).startswith(type(model).__name__)


@kinds
def test_the_order_of_knots_does_not_matter(kind: type[Regressor]) -> None:
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    sorted_bps = kind().fit(RTTS_MS, RATES_BPS).predict(MORE_MS)
    assert (kind().fit(RTTS_MS[order], RATES_BPS[order]).predict(MORE_MS) == sorted_bps).all()


@kinds
@pytest.mark.parametrize("factor", [1e-4, 7.0])
def test_units_of_rates_do_not_matter(kind: type[Regressor], factor: float) -> None:
    wanted_bps = factor * kind().fit(RTTS_MS, RATES_BPS).predict(MORE_MS)
    scaled = kind()
    if isinstance(scaled, DedicatedChannel):
        # Its first window is a size in bytes: another unit for rates is another one for it.
        scaled.set_params(initial_window_bytes=factor * scaled.initial_window_bytes)
    assert scaled.fit(RTTS_MS, factor * RATES_BPS).predict(MORE_MS) == pytest.approx(
        wanted_bps, rel=2e-3
    )


@kinds
def test_a_weight_is_a_number_of_measurements(kind: type[Regressor]) -> None:
    counts = np.array([1, 2, 3, 1, 2, 1, 3])
    weighted = kind().fit(RTTS_MS, RATES_BPS, counts).predict(MORE_MS)
    repeated = kind().fit(RTTS_MS.repeat(counts), RATES_BPS.repeat(counts)).predict(MORE_MS)
    assert repeated == pytest.approx(weighted, rel=1e-4)


@pytest.mark.parametrize("name", ["constant", "window", "power", "isotonic", "concave-convex"])
def test_weights_pull(name: str) -> None:
    rates_bps = np.array([5, 4, 6, 3, 4, 2.0, 3]) * 1e9
    plain = model_named(name).fit(RTTS_MS, rates_bps)
    pulled = model_named(name).fit(RTTS_MS, rates_bps, [1, 1, 1000, 1, 1, 1, 1])
    gaps = [abs(float(model.predict(22.6)) - 6e9) for model in (plain, pulled)]
    assert gaps[1] < 0.2 * gaps[0] or gaps[1] < 1e6


@kinds
def test_too_few_knots_are_refused_with_how_many_are_needed(kind: type[Regressor]) -> None:
    needed = kind().knots_needed
    kind().fit(RTTS_MS[:needed], RATES_BPS[:needed])
    few = needed - 1
    line = f"{kind.name}: {few} different RTTs are too few to fit: at least {needed} are needed"
    with pytest.raises(SpecError, match=line):
        kind().fit(RTTS_MS[:few].repeat(3), RATES_BPS[:few].repeat(3))


@pytest.mark.parametrize(
    ("rtts_ms", "rates_bps", "weights", "line"),
    [
        ([1, 2], [1, 2, 3], None, "have the shapes"),
        ([[1, 2]], [[1, 2]], None, "one dimension"),
        ([1, -2, 3], [1, 2, 3], None, r"rtt_ms\[1\]: -2 is out of range; allowed: 0 or more"),
        ([1, math.nan, 3], [1, 2, 3], None, r"rtt_ms\[1\]: nan"),
        ([1, 2, 3], [1, 2, 0], None, r"rate_bps\[2\]: 0 is out of range"),
        ([1, 2, 3], [1, math.inf, 3], None, r"rate_bps\[1\]: inf"),
        ([1, 2, 3], [1, 2, 3], [1, 1, 0], r"sample_weight\[2\]: 0 is out of range"),
        ([1, 2, 3], [1, 2, 3], [1, 1], "have the shapes"),
    ],
)
def test_what_is_no_profile_is_refused(
    rtts_ms: list[float], rates_bps: list[float], weights: list[float] | None, line: str
) -> None:
    with pytest.raises(SpecError, match=line):
        PiecewiseLinear().fit(rtts_ms, rates_bps, weights)


def test_misuse_is_told() -> None:
    with pytest.raises(UsageError, match="window: not fitted yet"):
        WindowBound().predict([1.0])
    with pytest.raises(UsageError, match="not fitted"):
        Constant().in_words()
    with pytest.raises(UsageError, match="no parameter 'knee': allowed: capacity_bps, streams"):
        WindowBound().set_params(knee=3)
    with pytest.raises(SpecError, match="model: 'spline' is unknown: allowed: constant, window"):
        model_named("spline")
    with pytest.raises(SpecError, match="rtt_ms"):
        Constant().fit([1.0], [1e9]).predict([-1.0])
    with pytest.raises(SpecError, match="capacity_bps: -1 is out of range"):
        PowerLaw(capacity_bps=-1).fit(RTTS_MS, RATES_BPS)
    with pytest.raises(SpecError, match="streams: 0 is out of range"):
        WindowBound(streams=0).fit(RTTS_MS, RATES_BPS)


def test_parameters_can_be_set_before_the_next_fit() -> None:
    model = WindowBound().set_params(streams=4)
    alone = WindowBound().fit(MORE_MS, window_bound_bps(MORE_MS, 1e10, 1e8))
    four = model.fit(MORE_MS, window_bound_bps(MORE_MS, 1e10, 1e8))
    assert four.window_bytes_ == pytest.approx(alone.window_bytes_ / 4)


def test_score_is_the_share_of_variance() -> None:
    assert PiecewiseLinear().fit(RTTS_MS, RATES_BPS).score(RTTS_MS, RATES_BPS) == 1
    flat = Constant().fit(RTTS_MS, RATES_BPS)
    assert flat.score(RTTS_MS, RATES_BPS) == pytest.approx(0, abs=1e-12)
    assert flat.score([1, 2], [1e9, 1e9]) == 0
    assert Constant().fit([1, 2], [1e9, 1e9]).score([1, 2], [1e9, 1e9]) == 1


@draws(30)
@given(
    capacity_bps=st.floats(1e8, 1e11),
    knee_ms=st.floats(12, 180),
    streams=st.integers(1, 16),
)
def test_a_window_bound_finds_itself(capacity_bps: float, knee_ms: float, streams: int) -> None:
    window_bytes = capacity_bps * knee_ms / 8000 / streams
    rates_bps = window_bound_bps(MORE_MS, capacity_bps, window_bytes, streams)
    free = WindowBound(streams=streams).fit(MORE_MS, rates_bps)
    known = WindowBound(capacity_bps, streams).fit(MORE_MS, rates_bps)
    for model in (free, known):
        assert model.window_bytes_ == pytest.approx(window_bytes, rel=1e-6)
        assert model.capacity_bps_ == pytest.approx(capacity_bps, rel=1e-6)
        assert model.knee_rtt_ms_ == pytest.approx(knee_ms, rel=1e-6)


def test_a_window_bound_does_not_claim_what_it_did_not_see() -> None:
    fall = WindowBound().fit(MORE_MS[1:], window_bound_bps(MORE_MS[1:], 1e12, 3e6))
    assert fall.capacity_bps_ == math.inf and fall.knee_rtt_ms_ == 0
    assert fall.window_bytes_ == pytest.approx(3e6)
    assert "no capacity visible" in fall.in_words()
    level = WindowBound().fit(MORE_MS, np.full(11, 9e9))
    assert level.window_bytes_ == math.inf and level.knee_rtt_ms_ == math.inf
    assert level.predict([0, 1000]) == pytest.approx(9e9)
    assert "no window visible" in level.in_words()


def test_an_rtt_of_0_lies_on_the_level() -> None:
    rtts_ms = np.array([0, 50, 100, 200, 400])
    model = WindowBound().fit(rtts_ms, [9e9, 9e9, 8e9, 4e9, 2e9])
    assert model.window_bytes_ == pytest.approx(1e8, rel=1e-6)
    assert model.predict(0.0) == pytest.approx(9e9)


@draws(30)
@given(exponent=st.floats(0.1, 2), knee_ms=st.floats(12, 90), capacity_bps=st.floats(1e8, 1e11))
def test_a_power_law_finds_itself(exponent: float, knee_ms: float, capacity_bps: float) -> None:
    rates_bps = capacity_bps * np.minimum(1, (MORE_MS / knee_ms) ** -exponent)
    model = PowerLaw().fit(MORE_MS, rates_bps)
    assert model.exponent_ == pytest.approx(exponent, rel=1e-5)
    assert model.knee_rtt_ms_ == pytest.approx(knee_ms, rel=1e-5)
    assert model.rate_at_1_ms_bps_ == pytest.approx(capacity_bps * knee_ms**exponent, rel=1e-4)
    known = PowerLaw(capacity_bps).fit(MORE_MS, rates_bps)
    assert known.exponent_ == pytest.approx(exponent, rel=1e-5)


def test_a_fall_beyond_what_numbers_hold_at_1_ms_is_still_a_power_law() -> None:
    rtts_ms, rates_bps = [10, 50, 100, 200, 203], [5e9, 5e9, 5e9, 5e9, 0.4e9]
    model = PowerLaw().fit(rtts_ms, rates_bps)
    assert model.predict(rtts_ms) == pytest.approx(rates_bps, rel=1e-6)
    assert "power of −169" in model.in_words()
    steep = PowerLaw().fit([200, 201, 202, 203], 5e9 * np.exp(-200.0 * np.arange(4) / 10))
    assert math.isinf(steep.rate_at_1_ms_bps_)
    assert "no fall" not in steep.in_words() and "inf" not in steep.in_words()


def test_a_fall_too_gentle_for_its_knee_to_be_a_number_is_a_level() -> None:
    model = PowerLaw(1e9).fit(MORE_MS, np.full(len(MORE_MS), 2e9))
    assert "no decrease visible" in model.in_words()
    assert model.predict(MORE_MS) == pytest.approx(np.full(len(MORE_MS), 1e9))


@pytest.mark.parametrize(
    ("observed_s", "window_bytes"), [(10, math.inf), (10, 250e6), (60, math.inf)]
)
def test_a_dedicated_channel_finds_itself(observed_s: float, window_bytes: float) -> None:
    rates_bps = dedicated_bps(MORE_MS, 9.4e9, observed_s, window_bytes)
    model = DedicatedChannel().fit(MORE_MS, rates_bps)
    assert model.capacity_bps_ == pytest.approx(9.4e9, rel=1e-3)
    assert model.observed_s_ == pytest.approx(observed_s, rel=1e-2)
    assert model.window_bytes_ == pytest.approx(window_bytes, rel=1e-2)
    assert model.predict(MORE_MS) == pytest.approx(rates_bps, rel=1e-3)


def test_a_dedicated_channel_takes_what_is_known_as_it_is() -> None:
    rates_bps = dedicated_bps(MORE_MS, 9.4e9, 10, 250e6)
    model = DedicatedChannel(9.4e9, 10, 250e6).fit(MORE_MS[:1], rates_bps[:1])
    found = [model.capacity_bps_, model.observed_s_, model.window_bytes_]
    assert found == pytest.approx([9.4e9, 10, 250e6])
    assert model.parameters_ == 0
    assert model.transition_rtt_ms_ == pytest.approx(8000 * 250e6 / 9.4e9)
    with pytest.raises(SpecError, match="observed_s: 0 is out of range"):
        DedicatedChannel(observed_s=0).fit(MORE_MS, rates_bps)


def test_a_sigmoid_is_half_at_its_inflection() -> None:
    wanted = [0.952574, 0.5, 0.013125]
    assert sigmoid([0, 150, 366], 0.02, 150) == pytest.approx(wanted, abs=5e-7)


@pytest.mark.parametrize("transition_ms", [91.6, 150])
def test_a_pair_of_sigmoids_finds_itself(transition_ms: float) -> None:
    left = sigmoid(MORE_MS, 0.03, transition_ms + 20)
    right = sigmoid(MORE_MS, 0.008, transition_ms - 40)
    right *= sigmoid(transition_ms, 0.03, transition_ms + 20) / sigmoid(
        transition_ms, 0.008, transition_ms - 40
    )
    rates_bps = 9e9 * np.where(transition_ms >= MORE_MS, left, right)
    model = SigmoidPair().fit(MORE_MS, rates_bps)
    assert model.transition_rtt_ms_ == transition_ms
    assert model.predict(MORE_MS) == pytest.approx(rates_bps, rel=5e-3)
    assert model.inflection_ms_[1] <= transition_ms <= model.inflection_ms_[0]
    assert model.jump_bps_ == pytest.approx(0, abs=1e3)
    assert "concave up to" in model.in_words()


def test_published_sigmoids_need_not_meet() -> None:
    rates_bps = 1e10 * np.where(
        MORE_MS <= 120, sigmoid(MORE_MS, 0.02, 170), sigmoid(MORE_MS, 0.01, 60)
    )
    model = SigmoidPair(capacity_bps=1e10).fit(MORE_MS, rates_bps)
    assert model.transition_rtt_ms_ == 120
    assert model.steepness_per_ms_ == pytest.approx((0.02, 0.01), rel=0.02)
    assert model.inflection_ms_ == pytest.approx((170, 60), rel=0.02)
    jump = 1e10 * float(sigmoid(120, 0.02, 170) - sigmoid(120, 0.01, 60))
    assert model.jump_bps_ == pytest.approx(jump, rel=0.05)


def test_one_sigmoid_is_enough_where_all_is_concave_or_convex() -> None:
    concave = SigmoidPair().fit(MORE_MS, 9e9 * sigmoid(MORE_MS, 0.008, 400))
    assert concave.transition_rtt_ms_ == 366 and math.isnan(concave.steepness_per_ms_[1])
    convex = SigmoidPair().fit(MORE_MS, 9e9 * sigmoid(MORE_MS, 0.015, -20))
    assert convex.transition_rtt_ms_ == 0.4 and math.isnan(convex.inflection_ms_[0])


@draws(50)
@given(st.lists(st.floats(1e6, 1e10), min_size=7, max_size=7))
def test_isotonic_never_rises_and_keeps_the_mean(rates_bps: list[float]) -> None:
    model = Isotonic().fit(RTTS_MS, rates_bps)
    levels_bps = model.predict(RTTS_MS)
    assert (np.diff(levels_bps) <= 0).all()
    assert levels_bps.mean() == pytest.approx(np.mean(rates_bps), rel=1e-9)
    assert model.parameters_ == len(set(levels_bps.tolist()))


@draws(50)
@given(st.lists(st.floats(1e6, 1e10), min_size=7, max_size=7))
def test_unimodal_rises_and_falls_once_and_is_no_worse_than_isotonic(
    rates_bps: list[float],
) -> None:
    model = Unimodal().fit(RTTS_MS, rates_bps)
    levels_bps = model.predict(RTTS_MS)
    peak = int(np.argmax(levels_bps))
    assert (np.diff(levels_bps[: peak + 1]) >= 0).all() and (np.diff(levels_bps[peak:]) <= 0).all()
    assert model.peak_rtt_ms_ == RTTS_MS[peak]
    isotonic = Isotonic().fit(RTTS_MS, rates_bps)
    assert model.score(RTTS_MS, rates_bps) >= isotonic.score(RTTS_MS, rates_bps) - 1e-12


def test_what_never_rises_has_its_peak_at_the_first_knot() -> None:
    assert Unimodal().fit(RTTS_MS, np.sort(RATES_BPS)[::-1]).peak_rtt_ms_ == 0.4
    assert Unimodal().fit(RTTS_MS, RATES_BPS).peak_rtt_ms_ == 11.8


@draws(30)
@given(st.lists(st.floats(1e8, 1e10), min_size=7, max_size=7))
def test_concave_convex_has_slopes_that_fall_and_then_rise(rates_bps: list[float]) -> None:
    model = ConcaveConvex().fit(RTTS_MS, rates_bps)
    slopes = np.diff(model.levels_bps_) / np.diff(RTTS_MS)
    rounding = 1e-5 * np.mean(rates_bps) / 366
    bends = np.diff(slopes)
    down, up = np.flatnonzero(bends < -rounding), np.flatnonzero(bends > rounding)
    assert not len(down) or not len(up) or down[-1] < up[0]


def test_concave_convex_says_where_one_turns_to_the_other() -> None:
    concave = 1e10 - 1e5 * MORE_MS**2 / 4
    model = ConcaveConvex().fit(MORE_MS, concave)
    assert model.transition_rtt_ms_ == 366 and model.predict(MORE_MS) == pytest.approx(concave)
    assert ConcaveConvex().fit(MORE_MS, 1e12 / (MORE_MS + 50)).transition_rtt_ms_ == 0.4
    line = ConcaveConvex().fit(MORE_MS, 1e10 - 2e7 * MORE_MS)
    assert math.isnan(line.transition_rtt_ms_) and line.in_words() == "a straight line"
    assert line.parameters_ == 2
    assert line.predict(1000) == 0  # lines go on, no lower than 0
    both = ConcaveConvex().fit(MORE_MS, dedicated_bps(MORE_MS, 9.4e9, 10, 176e6))
    assert both.transition_range_ms_[0] <= both.transition_rtt_ms_ <= both.transition_range_ms_[1]
    assert both.transition_rtt_ms_ == pytest.approx(150, abs=40)
