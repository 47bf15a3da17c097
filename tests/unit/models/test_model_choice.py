"""Choosing a model by what it predicts, and which RTTs are enough."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from farline.errors import SpecError
from farline.models.dedicated_channel import dedicated_bps
from farline.models.model_choice import Subset, best_subset, choose, predict_from
from farline.models.profile_models import Constant, Isotonic, PiecewiseLinear, PowerLaw, WindowBound
from farline.models.tcp_steady import cubic_bps
from farline.models.window_bound import window_bound_bps
from tests.support.draws import draws

Floats = NDArray[np.float64]

RTTS_MS = np.array([0.4, 11.8, 22.6, 45.6, 69, 91.6, 120, 150, 183, 250, 366])

SHAPES: dict[str, tuple[str, Callable[[Floats], Floats]]] = {
    "a window of 3 MB": ("window", lambda rtt: window_bound_bps(rtt, 9.4e9, 3e6)),
    "a window of 60 MB": ("window", lambda rtt: window_bound_bps(rtt, 9.4e9, 60e6)),
    "a disk at 1.3 Gbit/s": ("constant", lambda rtt: np.full_like(rtt, 1.3e9)),
    "CUBIC at 1e-7 loss": ("power", lambda rtt: np.minimum(9.4e9, cubic_bps(rtt, 1e-7))),
    "ten seconds over a line": ("dedicated", lambda rtt: dedicated_bps(rtt, 9.4e9, 10)),
}


@pytest.mark.parametrize(("wanted", "shape"), SHAPES.values(), ids=list(SHAPES))
def test_the_cause_behind_the_data_is_chosen(
    wanted: str, shape: Callable[[Floats], Floats]
) -> None:
    rates_bps = shape(RTTS_MS)
    exact = choose(RTTS_MS, rates_bps)
    assert exact.chosen.name == wanted
    assert exact.rule.startswith(f"{wanted}: fewest parameters")
    assert exact.chosen.predict(RTTS_MS) == pytest.approx(rates_bps, rel=1e-3)
    # Means of ten repeats with a deviation of 5 % between them.
    chance = np.random.default_rng(5)
    noisy_bps = rates_bps * (1 + 0.05 / np.sqrt(10) * chance.standard_normal(len(RTTS_MS)))
    assert choose(RTTS_MS, noisy_bps).chosen.name == wanted


def test_single_runs_with_five_per_cent_noise_still_show_a_window() -> None:
    chance = np.random.default_rng(11)
    rates_bps = window_bound_bps(RTTS_MS, 9.4e9, 60e6) * (1 + 0.05 * chance.standard_normal(11))
    choice = choose(RTTS_MS, rates_bps)
    assert isinstance(choice.chosen, WindowBound)
    assert choice.chosen.window_bytes_ == pytest.approx(60e6, rel=0.06)


def test_candidates_come_best_first_and_say_what_they_are() -> None:
    choice = choose(RTTS_MS, window_bound_bps(RTTS_MS, 9.4e9, 3e6))
    errors = [own.error for own in choice.candidates if own.error is not None]
    assert len(errors) == 9 and errors == sorted(errors)
    by_name = {own.model.name: own for own in choice.candidates}
    assert (by_name["constant"].parameters, by_name["linear"].parameters) == (1, 11)
    assert by_name["window"].model is choice.chosen
    # One level for rates that fall by a hundred: off by about the whole of the small ones.
    assert (by_name["constant"].error or 0) > 1


def test_the_error_is_that_of_knots_left_out() -> None:
    rtts_ms, rates_bps = [0.0, 10, 20, 40], [10e9, 8e9, 7e9, 1e9]
    choice = choose(rtts_ms, rates_bps, models=[PiecewiseLinear()])
    # Without 10 ms the line from 0 to 20 gives 8.5; without 20 the one from 10 to 40 gives 5.667.
    wanted = np.sqrt(((0.5 / 8) ** 2 + ((7 - 17 / 3) / 7) ** 2) / 2)
    assert choice.candidates[0].error == pytest.approx(wanted)
    weighted = choose(rtts_ms, rates_bps, [1, 3, 1, 1], [PiecewiseLinear()])
    wanted = np.sqrt((3 * (0.5 / 8) ** 2 + ((7 - 17 / 3) / 7) ** 2) / 4)
    assert weighted.candidates[0].error == pytest.approx(wanted)
    assert (weighted.candidates[0].error_above or 0) > wanted


def test_parts_may_be_larger() -> None:
    rtts_ms, rates_bps = [0.0, 10, 20, 30, 40], [5e9, 4e9, 3e9, 2e9, 1e9]
    halves = choose(rtts_ms, rates_bps, models=[Constant()], folds=2)
    # 10 and 30 ms from the mean of 5, 3 and 1; then 20 ms from that of 5, 4, 2 and 1.
    wanted = np.sqrt(((1 / 4) ** 2 + (1 / 2) ** 2) / 3)
    assert halves.candidates[0].error == pytest.approx(wanted)
    single = choose(rtts_ms, rates_bps, models=[Constant()])
    more_than_knots = choose(rtts_ms, rates_bps, models=[Constant()], folds=50)
    assert more_than_knots.candidates[0].error == single.candidates[0].error


def test_above_thirty_knots_parts_are_left_out_and_the_rule_says_so() -> None:
    few_ms, many_ms = np.linspace(1, 100, 30), np.linspace(1, 100, 31)
    assert "parts" not in choose(few_ms, 1e11 / few_ms, models=[Constant()]).rule
    many = choose(many_ms, 1e11 / many_ms, models=[Constant()])
    assert "RTTs were held out in 10 parts" in many.rule
    tenths = choose(many_ms, 1e11 / many_ms, models=[Constant()], folds=10)
    assert many.candidates[0].error == tenths.candidates[0].error
    single = choose(many_ms, 1e11 / many_ms, models=[Constant()], folds="leave-one-out")
    assert "parts" not in single.rule
    assert single.candidates[0].error != tenths.candidates[0].error


def test_of_models_that_say_the_same_the_first_is_taken() -> None:
    level_bps = np.full(11, 2e9)
    for models in ([Constant(), WindowBound()], [WindowBound(), Constant()]):
        assert type(choose(RTTS_MS, level_bps, models=models).chosen) is type(models[0])


def test_models_that_were_given_are_not_changed() -> None:
    given = WindowBound(capacity_bps=9.4e9)
    choice = choose(RTTS_MS, window_bound_bps(RTTS_MS, 9.4e9, 3e6), models=[given])
    assert choice.chosen is not given and not hasattr(given, "window_bytes_")
    assert choice.chosen.get_params() == given.get_params()


def test_a_model_that_cannot_be_fitted_stays_on_the_list_with_the_reason() -> None:
    rates_bps = window_bound_bps(RTTS_MS[:4], 9.4e9, 30e6)
    choice = choose(RTTS_MS[:4], rates_bps)
    last = [own for own in choice.candidates if own.error is None]
    assert {own.model.name for own in last} == {"sigmoids", "dedicated"}
    assert all(own.why_not.startswith("3 different RTTs are too few to fit") for own in last)
    assert all(own.why_not.endswith("one of the 4 is held out at a time") for own in last)
    assert choice.candidates[-1] in last


@pytest.mark.parametrize(
    ("rtts_ms", "models", "folds", "line"),
    [
        ([1, 2, 3], None, "leave-one-out", "3 different RTTs are too few: at least 4 are needed"),
        ([1, 2, 3, 3, 2], None, "leave-one-out", "3 different RTTs are too few"),
        ([1, 2, 3, 4], [], "leave-one-out", "no model can be fitted: no model was given"),
        ([1, 2, 3, 4], [WindowBound(-1)], "leave-one-out", "no model can be fitted: capacity_bps"),
        ([1, 2, 3, 4], None, 1, "folds: 1 is not allowed"),
        ([1, 2, 3, 4], None, True, "folds: True is not allowed"),
        ([1, 2, 3, 4], None, "all", "folds: 'all' is not allowed"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(  # type: ignore[no-untyped-def]
    rtts_ms: list[float], models, folds, line: str
) -> None:
    with pytest.raises(SpecError, match=line):
        choose(rtts_ms, [1e9] * len(rtts_ms), models=models, folds=folds)


def test_five_of_eleven_rtts_predict_a_smooth_profile_within_two_per_cent() -> None:
    rates_bps = dedicated_bps(RTTS_MS, 9.4e9, 30)
    five = best_subset(RTTS_MS, rates_bps, 5)
    assert len(five.rtt_ms) == 5 and (five.rtt_ms[0], five.rtt_ms[-1]) == (0.4, 366)
    assert five.worst_gap < 0.02
    papers_own = predict_from(RTTS_MS, rates_bps, [0.4, 22.6, 91.6, 183, 366])
    assert five.worst_gap <= papers_own.worst_gap < 0.02


def test_the_worst_gap_is_where_it_is_said_to_be() -> None:
    rtts_ms, rates_bps = [0.0, 10, 20, 40], [10e9, 8e9, 7e9, 1e9]
    ends = predict_from(rtts_ms, rates_bps, [0, 40])
    # The chord gives 7.75 and 5.5.
    assert (ends.rtt_ms, ends.worst_rtt_ms) == ((0.0, 40.0), 20.0)
    assert ends.worst_gap == pytest.approx(1.5 / 7)
    assert predict_from(rtts_ms, rates_bps, rtts_ms) == Subset((0.0, 10.0, 20.0, 40.0), 0.0, None)


def test_other_models_may_predict_from_fewer_rtts() -> None:
    rates_bps = window_bound_bps(RTTS_MS, 9.4e9, 3e6)
    shown_ms = [0.4, 91.6, 366]
    lines = predict_from(RTTS_MS, rates_bps, shown_ms)
    law = predict_from(RTTS_MS, rates_bps, shown_ms, PowerLaw(capacity_bps=9.4e9))
    assert law.worst_gap < 1e-6 < 1 < lines.worst_gap
    assert predict_from(RTTS_MS, rates_bps, shown_ms, Isotonic()).worst_gap == lines.worst_gap


@draws(30)
@given(rates=st.lists(st.floats(1, 10), min_size=7, max_size=7), size=st.integers(2, 7))
def test_no_other_subset_of_as_many_is_better(rates: list[float], size: int) -> None:
    rtts_ms, rates_bps = RTTS_MS[:7], 1e9 * np.array(rates)
    found = best_subset(rtts_ms, rates_bps, size)
    others = [
        predict_from(rtts_ms, rates_bps, [rtts_ms[0], *inner, rtts_ms[-1]]).worst_gap
        for inner in itertools.combinations(rtts_ms[1:-1], size - 2)
    ]
    assert found.worst_gap == pytest.approx(min(others), abs=1e-12)
    assert len(found.rtt_ms) <= size


@pytest.mark.parametrize("size", [1, 12])
def test_a_subset_has_at_least_the_ends_and_at_most_all(size: int) -> None:
    with pytest.raises(SpecError, match=f"size: {size} is out of range; allowed: 2 to 11 RTTs"):
        best_subset(RTTS_MS, np.ones(11), size)


def test_an_rtt_that_was_not_measured_shows_nothing() -> None:
    with pytest.raises(SpecError, match="shown_rtt_ms: 5 ms is not one of the measured RTTs"):
        predict_from(RTTS_MS, np.ones(11), [0.4, 5, 366])
    with pytest.raises(SpecError, match="linear: 1 different RTTs are too few"):
        predict_from(RTTS_MS, np.ones(11), [0.4])
