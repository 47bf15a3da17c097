"""Tests of losses: they pass what independent draws give, and see what is not independent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from _emulator.chance import (
    LIMIT_Z,
    Losses,
    binomial_half_width,
    burst_length_limit,
    burst_loss_limit,
    gaps_z,
    jain_index,
    lag_one_z,
    late_packets,
    losses_of_runs,
    runs_z,
    z_of_p,
)


def runs_of(numbers: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs of consecutive numbers, in order of arrival."""
    first: list[int] = []
    length: list[int] = []
    for number in numbers:
        if first and first[-1] + length[-1] == number:
            length[-1] += 1
        else:
            first.append(number)
            length.append(1)
    return np.array(first, np.int64), np.array(length, np.int64)


def losses_of(lost: NDArray[np.bool_]) -> Losses:
    """Losses as a receiver of the others sees them."""
    return losses_of_runs(*runs_of(np.flatnonzero(~lost).tolist()), len(lost))


def independent(probability: float, total: int, seed: int) -> Losses:
    """Independent losses."""
    return losses_of(np.random.default_rng(seed).random(total) < probability)


def two_states(enter: float, leave: float, total: int, seed: int) -> Losses:
    """Losses of a two-state chain that loses everything in its bad state."""
    draws = np.random.default_rng(seed).random(total)
    lost, bad = np.zeros(total, bool), False
    for index, draw in enumerate(draws):
        bad = draw >= leave if bad else draw < enter
        lost[index] = bad
    return losses_of(lost)


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_what_did_not_come_is_lost(lost: list[bool]) -> None:
    found = losses_of(np.array(lost))
    assert found.positions().tolist() == np.flatnonzero(lost).tolist()
    assert found.lost == sum(lost)
    assert late_packets(*runs_of([number for number, gone in enumerate(lost) if not gone])) == 0


@given(st.permutations(range(12)))
def test_order_of_arrival_loses_nothing(order: list[int]) -> None:
    assert losses_of_runs(*runs_of(order), 12).lost == 0


@pytest.mark.parametrize(
    ("arrivals", "late"),
    [
        ([0, 1, 2, 3], 0),
        ([0, 2, 1, 3], 1),
        ([0, 1, 1, 2], 1),
        ([3, 0, 1, 2], 3),
        ([0, 1, 5, 6, 2, 3, 7], 2),
        ([], 0),
    ],
)
def test_a_packet_behind_a_higher_number_is_late(arrivals: list[int], late: int) -> None:
    assert late_packets(*runs_of(arrivals)) == late


@pytest.mark.parametrize("probability", [1e-3, 1e-2, 0.1])
def test_independent_losses_pass(probability: float) -> None:
    scores = []
    for seed in range(9):
        losses = independent(probability, 200_000, seed)
        scores.append([runs_z(losses), lag_one_z(losses), gaps_z(losses)])
    assert np.median(scores, axis=0).max() < LIMIT_Z / 2
    assert np.max(scores) < 4.5


def test_rare_independent_losses_pass() -> None:
    losses = independent(1e-4, 1_000_000, 3)
    assert runs_z(losses) < LIMIT_Z
    assert lag_one_z(losses) < LIMIT_Z


def test_bursts_are_seen_by_every_test() -> None:
    losses = two_states(0.002, 0.25, 200_000, 1)
    assert runs_z(losses) > LIMIT_Z
    assert lag_one_z(losses) > LIMIT_Z
    assert gaps_z(losses) > LIMIT_Z


def test_losses_at_equal_distances_are_not_independent() -> None:
    lost = np.zeros(100_000, bool)
    lost[::100] = True
    losses = losses_of(lost)
    assert gaps_z(losses) > LIMIT_Z


def test_neighbours_that_are_never_lost_together_are_seen() -> None:
    lost = np.random.default_rng(5).random(200_000) < 0.1
    lost[1:] &= ~lost[:-1]
    assert runs_z(losses_of(lost)) > LIMIT_Z


def test_a_series_without_losses_cannot_be_tested() -> None:
    with pytest.raises(ValueError, match="nothing to test"):
        runs_z(losses_of(np.zeros(10, bool)))


def test_the_binomial_interval_holds_about_99_of_100() -> None:
    total, probability = 20_000, 0.01
    draws = np.random.default_rng(7).binomial(total, probability, 2000)
    outside = sum(
        abs(lost / total - probability) > binomial_half_width(int(lost), total, probability)
        for lost in draws
    )
    assert 2 <= outside <= 35


def test_mean_burst_length_and_loss_stay_within_their_limits() -> None:
    enter, leave, total = 0.002, 0.25, 200_000
    for seed in range(3):
        losses = two_states(enter, leave, total, seed)
        error = abs(float(losses.length.mean()) - 1 / leave)
        assert error < burst_length_limit(leave, len(losses.length))
        part = enter / (enter + leave)
        assert abs(losses.fraction - part) < burst_loss_limit(enter, leave, total)


def test_p_values_become_standard_deviations() -> None:
    assert z_of_p(0.01) == pytest.approx(LIMIT_Z)
    assert z_of_p(1.0) == pytest.approx(0.0)
    assert z_of_p(0.0) > 30


def test_jain_index_of_equals_is_one_and_of_a_hog_is_one_nth() -> None:
    assert jain_index([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain_index([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
