"""What is believed of settings: reference values, and what evidence may and may not do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.tuning.belief import Belief, Group, log_of, rate_of
from farline.tuning.grids import (
    KnobLimits,
    knob_grid,
    knob_prior,
    stream_grid,
    stream_prior,
    with_seen_capacity,
)
from farline.tuning.situation import Setting, Situation
from tests.unit.tuning.histories import FAR, KIND, NEAR, PATH, WAN, group


def prior() -> Belief:
    return stream_prior(stream_grid(), Situation(rtt_ms=40.0))


def test_the_prior_has_its_reference_values() -> None:
    first = [25.25, 25.200184, 25.102778, 25.033834, 25.007141, 25.000966]
    assert prior().covariance[0] == pytest.approx(first, abs=5e-7)
    assert prior().shape == pytest.approx([-0.51, -0.26, -0.13, -0.03, -0.01, 0])
    gradients = [0, 0.000561, 0.003127, 0.004111, 0.000621, 0.001748]
    assert prior().knowledge_gradients() == pytest.approx(gradients, abs=5e-7)


def test_a_short_path_has_no_shape_before_it_is_known() -> None:
    assert stream_prior(stream_grid(), Situation(rtt_ms=0.2)).shape == pytest.approx([0] * 6)


def test_windows_that_cannot_carry_the_capacity_are_known_beforehand() -> None:
    # 4 MiB of window at 100 ms carry 168 Mbit/s: 32 streams carry half of 10 Gbit/s.
    now = Situation(rtt_ms=100.0, capacity_bps=1e10, window_bytes=4 << 20)
    shape = stream_prior(stream_grid(), now).mean
    assert np.diff(shape) == pytest.approx([math.log(2)] * 5)


def test_contrasts_of_a_group_have_their_reference_values() -> None:
    found = group({8: [7.0, 7.2], 16: [7.5]})
    corner = found.information[3:5, 3:5]
    assert corner == pytest.approx(np.array([[1, -1], [-1, 1]]) * 0.666667, abs=5e-7)
    assert found.vector[3:5] == pytest.approx([-0.266667, 0.266667], abs=5e-7)


def test_history_moves_the_belief_to_its_reference_values() -> None:
    belief = prior().with_groups([KIND, NEAR, PATH, FAR])
    shape = [-0.998916, -0.663496, -0.372282, -0.112749, 0, -0.017602]
    assert belief.shape == pytest.approx(shape, abs=5e-7)
    variance = [0.022318, 0.013573, 0.012928, 0.013102, 0.013275, 0.021946]
    assert belief.shape_variance == pytest.approx(variance, abs=5e-7)


@given(st.floats(-5, 5), st.lists(st.floats(4, 10), min_size=2, max_size=6))
def test_the_level_of_a_group_says_nothing(shift: float, logs: list[float]) -> None:
    one = group({2**at: [value] for at, value in enumerate(logs)})
    other = group({2**at: [value + shift] for at, value in enumerate(logs)})
    moved = prior().with_groups([other]).mean
    assert moved == pytest.approx(prior().with_groups([one]).mean, abs=1e-6)


def test_a_group_of_one_setting_says_nothing() -> None:
    assert prior().with_groups([group({8: [7.0, 7.4, 6.8]})]).mean == pytest.approx(prior().mean)


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(4, 10)), min_size=1, max_size=12))
def test_samples_in_any_order_give_one_belief_that_is_a_covariance(
    samples: list[tuple[int, float]],
) -> None:
    one = other = prior()
    for at, value in samples:
        one = one.with_sample(at, value)
    for at, value in reversed(samples):
        other = other.with_sample(at, value)
    assert one.mean == pytest.approx(other.mean, abs=1e-6)
    assert np.linalg.eigvalsh(one.covariance).min() > -1e-9


@given(st.integers(0, 5), st.floats(3, 10))
def test_more_can_only_be_expected_to_help(at: int, value: float) -> None:
    belief = prior().with_sample(at, value)
    assert belief.knowledge_gradients().min() > -1e-9
    assert belief.expected_improvements().min() >= 0


def test_rates_are_counted_in_megabits() -> None:
    assert log_of(1e6) == 0
    assert rate_of(log_of(2.5e9)) == pytest.approx(2.5e9)


def test_the_grid_of_three_knobs_keeps_its_limits() -> None:
    grid = knob_grid(KnobLimits(concurrency=6, parallelism=32, pipelining=8, streams=32))
    assert {setting.concurrency for setting in grid.settings} == {1, 2, 4}
    assert {setting.pipelining for setting in grid.settings} == {1, 2, 4, 8}
    assert max(setting.streams for setting in grid.settings) == 32
    assert len(set(grid.settings)) == len(grid.settings)


def test_without_history_files_go_side_by_side_with_few_streams_each() -> None:
    grid = knob_grid()
    best = grid.settings[int(np.argmax(knob_prior(grid, WAN).mean))]
    assert best in (Setting(32, 32, 32), Setting(64, 32, 32))


def test_one_file_gets_its_streams_all_the_same() -> None:
    grid = knob_grid(KnobLimits(concurrency=1, pipelining=1))
    best = grid.settings[int(np.argmax(knob_prior(grid, WAN).mean))]
    assert best.streams >= 16


def test_a_setting_beside_the_powers_of_two_takes_its_place_among_them() -> None:
    grid = stream_grid().with_setting(Setting(6))
    assert [setting.streams for setting in grid.settings] == [1, 2, 4, 6, 8, 16, 32]
    shape = stream_prior(grid, WAN).mean
    assert shape[2] < shape[3] < shape[4]


def test_a_group_with_no_weight_changes_nothing() -> None:
    silent = Group(KIND.counts, KIND.sums, 0.0)
    assert prior().with_groups([silent]).mean == pytest.approx(prior().mean)


def test_samples_show_where_windows_are_not_the_limit() -> None:
    """A fast interface says little of a slow path: one sample far below its windows tells it."""
    now = Situation(rtt_ms=20.0, capacity_bps=1e10, window_bytes=32 << 10)
    assert now.window_bps == pytest.approx(6.5536e6)
    assert with_seen_capacity(now, []) == now
    assert with_seen_capacity(now, [(4, 25e6), (8, 50e6)]) == now
    seen = with_seen_capacity(now, [(4, 25e6), (32, 30e6)])
    assert seen.capacity_bps == 30e6
    grid = stream_grid(64)
    shape = stream_prior(grid, seen).shape
    assert shape[grid.index(Setting(8)) or 0] > -0.05
    assert stream_prior(grid, now).shape[3] < -2.0
