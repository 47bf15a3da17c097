"""The rate that a budget of harm allows on lines that are alone, or shared a little, or whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.fairness.rate_budget import FIRST_BPS, LEAST_BPS, PathLook, RateBudget

LINE_BPS, RTT_S, QUEUE_S = 1e9, 0.02, 0.02


def looked(budget: RateBudget, others_bps: float, queued: bool | None = None) -> PathLook:
    """Half a second on a line on which others have what they want, as far as it goes."""
    is_full = budget.rate_bps + others_bps > LINE_BPS if queued is None else queued
    sent_bps = min(budget.rate_bps, LINE_BPS)
    return PathLook(sent_bps, (RTT_S + QUEUE_S * is_full, RTT_S), 0.0)


def driven(others_bps: float, looks: int = 200, max_harm: float = 0.2) -> tuple[RateBudget, float]:
    """The budget after so many looks, and the mean rate of the second half."""
    budget, rates = RateBudget(max_harm), []
    for _ in range(looks):
        rates.append(budget.step(looked(budget, others_bps)))
    return budget, sum(rates[looks // 2 :]) / (looks - looks // 2)


@pytest.mark.parametrize("others", [0.0, 0.3, 0.6])
def test_what_others_leave_free_is_used_to_nine_tenths_and_not_overrun(others: float) -> None:
    _, mean_bps = driven(others * LINE_BPS)
    free_bps = (1 - others) * LINE_BPS
    assert 0.9 * free_bps <= mean_bps <= 1.03 * free_bps


def test_a_line_is_found_in_seconds_from_a_low_rate() -> None:
    budget = RateBudget(0.2)
    assert budget.rate_bps == FIRST_BPS
    looks = 0
    while budget.rate_bps < 0.7 * LINE_BPS:
        budget.step(looked(budget, 0.0))
        looks += 1
    assert looks <= 8


def test_beside_others_that_want_everything_it_keeps_its_share_of_the_line_it_has_seen() -> None:
    budget, _ = driven(0.0)
    for _ in range(20):
        budget.step(looked(budget, 0.0, queued=True))
    assert budget.rate_bps == pytest.approx(0.2 * budget.line_bps)
    assert 0.9 * LINE_BPS <= budget.line_bps <= LINE_BPS


def test_a_line_that_was_never_free_is_not_assumed_to_be_large() -> None:
    budget = RateBudget(0.2)
    for _ in range(20):
        budget.step(looked(budget, 0.0, queued=True))
    assert budget.rate_bps <= max(LEAST_BPS, 0.2 * FIRST_BPS)


def test_losses_that_last_count_as_a_full_line_where_no_round_trip_is_known() -> None:
    budget = RateBudget(0.2)
    before = budget.rate_bps
    assert budget.step(PathLook(before, None, 0.01 * before)) == before, "a burst"
    assert budget.step(PathLook(before, None, 0.01 * before)) < before


def test_large_losses_count_at_once() -> None:
    budget = RateBudget(0.2)
    before = budget.rate_bps
    assert budget.step(PathLook(before, None, 0.1 * before)) < before


def test_what_is_sent_in_large_pieces_is_no_line_that_is_not_used() -> None:
    budget = RateBudget(0.2)
    for number in range(40):
        sent_bps = 2 * budget.rate_bps if number % 2 else 0.0
        budget.step(PathLook(sent_bps, (RTT_S, RTT_S), 0.0))
    assert budget.rate_bps > 10 * FIRST_BPS


def test_one_late_round_trip_is_no_queue() -> None:
    budget = RateBudget(0.2)
    before = budget.rate_bps
    assert budget.step(looked(budget, 0.0, queued=True)) == before


def test_a_rate_that_is_not_used_is_not_raised() -> None:
    budget = RateBudget(0.2)
    for _ in range(20):
        budget.step(PathLook(1e6, (RTT_S, RTT_S), 0.0))
    assert budget.rate_bps == FIRST_BPS


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e11),
            st.none() | st.tuples(st.floats(0, 10), st.floats(0, 10)),
            st.floats(0, 1e11),
        ),
        max_size=60,
    ),
    st.floats(0.01, 0.99),
    st.floats(2e6, 1e11),
)
def test_whatever_is_seen_the_rate_stays_within_its_bounds(
    looks: list[tuple[float, tuple[float, float] | None, float]], harm: float, most_bps: float
) -> None:
    budget = RateBudget(harm, most_bps)
    for look in looks:
        assert LEAST_BPS <= budget.step(PathLook(*look)) <= max(most_bps, LEAST_BPS)


@pytest.mark.parametrize("budget", [0.0, 1.0, -0.1])
def test_a_budget_lies_between_none_and_everything(budget: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        RateBudget(budget)
