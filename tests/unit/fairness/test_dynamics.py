"""How soon a newcomer has its share, and what being nearer gives."""

from __future__ import annotations

import pytest

from farline.fairness.dynamics import Moment, convergence_s, rtt_exponent


def climbing(until_s: float, top_bps: float, length_s: float = 5.0) -> list[Moment]:
    """A newcomer that climbs in a straight line from nothing to `top_bps`, sampled by 0.1 s."""
    count = round(length_s * 10)
    return [
        Moment(step / 10, (step + 1) / 10, top_bps * min(1.0, (step + 0.5) / 10 / until_s), 10.0)
        for step in range(count)
    ]


def test_a_straight_climb_has_its_share_when_its_mean_over_half_a_second_is_there() -> None:
    # The mean over the last 0.5 s trails a straight line by 0.25 s: 0.8 of 4 s, and a quarter.
    found = convergence_s(climbing(4.0, 5.0), 5.0, delta=0.2, smooth_s=0.5)
    assert found == pytest.approx(3.5, abs=0.11)


def test_who_has_its_share_at_once_has_it_when_it_can_first_be_seen() -> None:
    moments = [Moment(s / 10, (s + 1) / 10, 5.0, 5.0) for s in range(20)]
    assert convergence_s(moments, 5.0) == pytest.approx(0.5)


def test_one_burst_is_no_share() -> None:
    moments = [Moment(s / 10, (s + 1) / 10, 10.0 if s == 7 else 0.0, 5.0) for s in range(30)]
    assert convergence_s(moments, 5.0) is None


def test_who_never_comes_there_has_no_time() -> None:
    assert convergence_s(climbing(50.0, 5.0), 5.0) is None
    assert convergence_s([], 5.0) is None


def test_rates_inverse_to_round_trip_time_have_an_exponent_of_1() -> None:
    assert rtt_exponent((8.0, 2.0), (0.01, 0.04)) == pytest.approx(1.0)
    assert rtt_exponent((16.0, 1.0), (0.01, 0.04)) == pytest.approx(2.0)
    assert rtt_exponent((5.0, 5.0), (0.01, 0.04)) == pytest.approx(0.0)


def test_equal_distances_and_silence_say_nothing_of_distance() -> None:
    assert rtt_exponent((8.0, 2.0), (0.01, 0.01)) is None
    assert rtt_exponent((8.0, 0.0), (0.01, 0.02)) is None


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(ValueError):
        convergence_s([], 0.0)
    with pytest.raises(ValueError):
        rtt_exponent((1.0, 1.0), (0.0, 0.01))
