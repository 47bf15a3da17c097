"""Measures of fairness: reference values, and what holds for all rates."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.fairness import measures as m

RATE = st.floats(0, 1e12, allow_nan=False)
RATES = st.lists(RATE, min_size=1, max_size=8)
POSITIVE = st.floats(1, 1e12)


@pytest.mark.parametrize(
    ("rates", "index"),
    [
        ((5, 5), 1.0),
        ((9, 1), 0.609756),
        ((4, 6), 0.961538),
        ((10, 0), 0.5),
        ((1, 1, 1, 7), 0.480769),
        ((200, 160, 110, 95, 150), 0.936095),
        ((0, 0), 1.0),
    ],
)
def test_jains_index_has_the_values_of_the_literature(
    rates: tuple[float, ...], index: float
) -> None:
    assert m.jain(rates) == pytest.approx(index, abs=1e-6)


@given(RATES)
def test_jains_index_lies_between_1_over_n_and_1(rates: list[float]) -> None:
    assert 1 / len(rates) - 1e-9 <= m.jain(rates) <= 1 + 1e-9


@given(RATES, st.floats(1e-3, 1e3))
def test_jains_index_does_not_change_when_all_rates_are_scaled(
    rates: list[float], factor: float
) -> None:
    assert m.jain([factor * rate for rate in rates]) == pytest.approx(m.jain(rates), abs=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_k_equal_sharers_of_n_have_an_index_of_k_over_n(k: int) -> None:
    assert m.jain([7.0] * k + [0.0] * (4 - k)) == pytest.approx(k / 4)


def test_max_min_shares_give_small_demands_first() -> None:
    assert m.max_min_shares([2, 2.6, 4, 5], 10) == pytest.approx([2, 2.6, 2.7, 2.7])
    assert m.max_min_shares([math.inf, 3], 10) == pytest.approx([7, 3])
    assert m.max_min_shares([math.inf, math.inf], 10, weights=[4, 1]) == pytest.approx([8, 2])


@given(st.lists(POSITIVE, min_size=1, max_size=6), POSITIVE)
def test_max_min_shares_waste_nothing_and_exceed_no_demand(
    demands: list[float], capacity: float
) -> None:
    shares = m.max_min_shares(demands, capacity)
    assert all(share <= demand * (1 + 1e-9) for share, demand in zip(shares, demands, strict=True))
    assert math.fsum(shares) == pytest.approx(min(capacity, math.fsum(demands)), rel=1e-6)
    unmet = [s for s, d in zip(shares, demands, strict=True) if s < d * (1 - 1e-9)]
    assert all(share >= max(shares) * (1 - 1e-6) for share in unmet)


@pytest.mark.parametrize("load", [1, 2, 3, 4, 5, 6, 8, 10])
def test_the_index_over_demands_is_1_on_the_ideal_curve_where_the_raw_one_is_not(
    load: float,
) -> None:
    """Yu et al. 2014, Fig. 3, as it ought to be: (9, 1), (8, 2) ... (5, 5), (5, 5)."""
    transfer, background = max(10 - load, 5.0), min(load, 5.0)
    assert m.demand_jain([transfer, background], [math.inf, load], 10) == pytest.approx(1)
    raw = {1: 0.6098, 2: 0.7353, 3: 0.8621, 4: 0.9615}.get(int(load), 1.0)
    assert m.jain([transfer, background]) == pytest.approx(raw, abs=1e-4)


@given(st.lists(POSITIVE, min_size=1, max_size=6), POSITIVE)
def test_nobody_is_short_where_all_have_their_max_min_share(
    demands: list[float], capacity: float
) -> None:
    shares = m.max_min_shares(demands, capacity)
    assert m.max_min_distance(shares, demands, capacity) == pytest.approx(0, abs=1e-9)
    assert m.demand_jain(shares, demands, capacity) == pytest.approx(1)


def test_max_min_distance_is_that_of_the_worst_served() -> None:
    assert m.max_min_distance([9, 1], [math.inf, math.inf], 10) == pytest.approx(0.8)
    assert m.max_min_distance([10, 0], [math.inf, 2], 10) == 1.0


def test_harm_to_what_is_better_the_larger_it_is() -> None:
    assert m.harm_to_rate(10, 6) == pytest.approx(0.4)
    assert m.harm_to_rate(10, 0) == 1.0
    assert m.harm_to_rate(10, 11) == pytest.approx(-0.1)
    assert m.harm_to_rate(0, 0) == 0.0


def test_harm_to_what_is_better_the_smaller_it_is() -> None:
    assert m.harm_to_cost(10, 20) == pytest.approx(0.5)
    assert m.harm_to_cost(0, 0.01) == 1.0
    assert m.harm_to_cost(0, 0) == 0.0


@given(POSITIVE)
def test_there_is_no_harm_where_nothing_changes(value: float) -> None:
    assert m.harm_to_rate(value, value) == 0.0
    assert m.harm_to_cost(value, value) == 0.0


@given(POSITIVE, RATE)
def test_harm_is_never_above_1(alone: float, contended: float) -> None:
    assert m.harm_to_rate(alone, contended) <= 1
    assert m.harm_to_cost(alone, contended) <= 1


def test_fairness_itself_asks_half_of_a_line_of_each_of_two() -> None:
    assert m.fair_harm(10, 5) == 0.5
    assert m.fair_harm(3, 3) == 0.0


def test_share_utilisation_and_ratio() -> None:
    assert m.share_taken(9, 5) == pytest.approx(1.8)
    assert m.utilisation([6, 3.5], 10) == pytest.approx(0.95)
    assert m.min_max_ratio([2, 8]) == 0.25
    assert m.min_max_ratio([0, 0]) == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: m.jain([]),
        lambda: m.jain([1, -1]),
        lambda: m.jain([math.nan]),
        lambda: m.jain([math.inf, 1]),
        lambda: m.min_max_ratio([math.inf, math.inf]),
        lambda: m.harm_to_rate(math.inf, 1),
        lambda: m.harm_to_cost(1, math.inf),
        lambda: m.max_min_shares([1, 1], math.inf),
        lambda: m.max_min_shares([], 1),
        lambda: m.max_min_shares([1], 0),
        lambda: m.max_min_shares([1, 1], 1, weights=[1, 0]),
        lambda: m.demand_jain([1], [1, 2], 1),
        lambda: m.harm_to_rate(-1, 0),
        lambda: m.share_taken(1, 0),
        lambda: m.utilisation([1], 0),
    ],
)
def test_what_has_no_meaning_is_refused(call: object) -> None:
    with pytest.raises(ValueError):
        call()  # type: ignore[operator]
