"""The choice at the end: fewest streams, the default beside it, goals, cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from farline.errors import SpecError
from farline.tuning.belief import Belief, log_of
from farline.tuning.choice import Choice, cost_of, make_choice
from farline.tuning.grids import stream_grid, stream_prior
from farline.tuning.search import Sample
from farline.tuning.situation import Goal, Setting
from tests.unit.tuning.histories import WAN

GRID = stream_grid()


def sampled(rates: Sequence[float], repeats: int = 3, **more: Sequence[float]) -> list[Sample]:
    """So many samples at every count; `rates` in Mbit/s."""
    return [
        Sample(Setting(2**at), 1e6 * rate, 3.0, round(3 * 1e6 * rate / 8),
               **{name: values[at] for name, values in more.items()})  # type: ignore[arg-type]
        for at, rate in enumerate(rates)
        for _ in range(repeats)
    ]  # fmt: skip


def believed(samples: Sequence[Sample]) -> Belief:
    belief = stream_prior(GRID, WAN)
    for sample in samples:
        at = GRID.index(sample.setting)
        assert at is not None
        belief = belief.with_sample(at, log_of(sample.rate_bps), sd=0.02)
    return belief


def chosen(samples: Sequence[Sample], default: int = 8, goal: Goal = "throughput") -> Choice:
    return make_choice(GRID, believed(samples), samples, default=Setting(default), goal=goal)


def test_the_fewest_streams_near_the_best_are_taken() -> None:
    assert chosen(sampled([300, 600, 1000, 1005, 1000, 990])).setting == Setting(4)
    assert chosen(sampled([300, 600, 900, 1000, 1200, 1500])).setting == Setting(32)


def test_a_gain_inside_the_noise_leaves_the_default() -> None:
    belief = Belief(np.log([700.0, 800, 900, 1000, 1040, 1050]), 0.04 * np.eye(6))
    choice = make_choice(GRID, belief, (), default=Setting(8))
    assert (choice.setting, choice.within_noise, choice.gain) == (Setting(8), True, 1.0)
    sure = Belief(belief.mean, 1e-5 * np.eye(6))
    assert make_choice(GRID, sure, (), default=Setting(8)).setting == Setting(16)


def test_fewer_streams_need_no_gain_over_the_default() -> None:
    choice = chosen(sampled([990, 1000, 1000, 1000, 1000, 1000]), default=16)
    assert choice.setting.streams <= 2
    assert choice.gain == pytest.approx(1, abs=0.05)


def test_the_default_stands_beside_the_choice_with_its_expectation() -> None:
    choice = chosen(sampled([300, 600, 900, 1000, 1200, 1500]))
    assert choice.expected is not None
    assert choice.default_expected is not None
    assert choice.expected.rate_bps == pytest.approx(1.5e9, rel=0.03)
    assert choice.default_expected.rate_bps == pytest.approx(1e9, rel=0.03)
    assert choice.expected.low_bps < choice.expected.rate_bps < choice.expected.high_bps
    assert choice.gain == pytest.approx(1.5, rel=0.05)
    assert choice.gain_low < choice.gain < choice.gain_high
    assert [setting.streams for setting, _ in choice.believed] == [1, 2, 4, 8, 16, 32]


def test_no_more_is_promised_than_a_cap_that_samples_met() -> None:
    samples = [replace(one, limit="rate") for one in sampled([300, 600, 1000, 1000, 1000, 1000])]
    choice = make_choice(
        GRID, believed(samples), samples, default=Setting(8), reason="cap:rate"
    )  # fmt: skip
    assert choice.expected is not None
    assert choice.expected.high_bps == 1e9
    assert choice.expected.low_bps < 1e9
    free = chosen(sampled([300, 600, 1000, 1000, 1000, 1000]))
    assert free.expected is not None
    assert free.expected.high_bps > 1e9


def test_without_a_level_no_rate_is_promised() -> None:
    choice = make_choice(GRID, stream_prior(GRID, WAN), (), default=Setting(8))
    assert choice.expected is None
    assert cost_of(choice, is_own_data=False).pays_from_bytes is None


def test_processor_time_is_saved_where_that_costs_little_rate() -> None:
    rates = [500, 900, 960, 1000, 1000, 1000]
    costs = [0.9, 0.8, 0.5, 0.7, 0.8, 0.9]
    samples = sampled(rates, cpu_s_per_gb=costs)
    assert chosen(samples, goal="cpu").setting == Setting(4)
    # Without figures of processor time: the fewest within 15 %.
    assert chosen(sampled(rates), goal="cpu").setting == Setting(2)


def test_streams_beyond_what_they_are_worth_are_left_to_others() -> None:
    linear = sampled([100, 200, 400, 800, 1100, 1200])
    assert chosen(linear, goal="fairness").setting == Setting(8)
    assert chosen(sampled([500, 600, 700, 800, 900, 950]), goal="fairness").setting == Setting(1)


def test_sampling_pays_from_the_size_whose_time_it_saves() -> None:
    samples = sampled([300, 600, 900, 1000, 1200, 2000], repeats=1)
    choice = chosen(samples)
    alone = cost_of(choice, is_own_data=False)
    assert (alone.seconds, choice.setting) == (18.0, Setting(32))
    assert alone.pays_from_bytes is not None
    assert choice.default_expected is not None
    assert choice.expected is not None
    saved_s = (
        alone.pays_from_bytes
        * 8
        * (1 / choice.default_expected.rate_bps - 1 / choice.expected.rate_bps)
    )
    assert saved_s == pytest.approx(18.0)
    own = cost_of(choice, is_own_data=True)
    assert own.pays_from_bytes is not None
    assert own.pays_from_bytes < alone.pays_from_bytes


def test_samples_that_were_faster_than_the_default_have_paid_already() -> None:
    samples = [*sampled([1000], 1), *[Sample(Setting(32), 2e9, 10.0, round(2e10 / 8))] * 5]
    choice = chosen(samples, default=1)
    assert cost_of(choice, is_own_data=True).pays_from_bytes == 0


def test_a_curve_is_fitted_for_drawing_from_three_counts_on() -> None:
    assert chosen(sampled([300, 600], 2)).fit is None
    fit = chosen(sampled([300, 600, 900, 1000, 1000, 950])).fit
    assert fit is not None
    assert math.log(fit.peak / 1e9) == pytest.approx(0, abs=0.1)


def test_a_default_beside_the_grid_is_refused() -> None:
    with pytest.raises(SpecError, match="default"):
        make_choice(GRID, stream_prior(GRID, WAN), (), default=Setting(7))
