"""Intervals of rates: above 0, close to Student's where runs agree, none where nothing is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.profiles.rate_interval import (
    WIDEST,
    rate_interval,
    rate_intervals,
    ratio_interval,
    worth_saying,
)
from farline.profiles.response import mean_interval, response
from farline.profiles.throughput_profile import ThroughputProfile

RATES = st.lists(st.floats(1e3, 1e12), min_size=2, max_size=8)


@given(RATES)
def test_an_interval_of_rates_is_above_zero_holds_the_mean_and_is_not_absurd(
    rates: list[float],
) -> None:
    mean, low, high = mean_interval(rates)
    assert low is not None and high is not None
    assert 0 < low <= mean * (1 + 1e-12) and mean * (1 - 1e-12) <= high
    shown = worth_saying((low, high))
    assert shown is None or high / low <= WIDEST


def test_runs_that_agree_have_students_interval() -> None:
    mean, low, high = mean_interval([9.9e9, 10.0e9, 10.1e9])
    assert low is not None and high is not None
    half = 4.3027 * 1e8 / math.sqrt(3)
    assert low == pytest.approx(mean - half, rel=1e-3)
    assert high == pytest.approx(mean + half, rel=1e-3)


def test_one_run_and_runs_that_differ_by_orders_have_none() -> None:
    assert mean_interval([5.0]) == (5.0, None, None)
    rows = [{"status": "complete", "total_bps": rate, "streams": 1} for rate in (1e6, 1e9)]
    (point,) = response(rows, ["streams"])
    assert point.mean == pytest.approx(5.005e8) and point.low is None and point.high is None
    assert worth_saying(rate_interval(7e8, 19.3e9)) is None
    assert rate_interval(0.0, 1.0) is None
    assert rate_interval(3.0, 0.0) == (3.0, 3.0)


def test_a_ratio_known_to_a_factor_of_a_million_is_not_known() -> None:
    assert ratio_interval(0.0, math.log(3e5)) is None
    assert ratio_interval(math.log(2), math.log(2)) == pytest.approx((1.0, 4.0))


def test_a_knot_of_one_run_has_no_interval_and_others_none_below_zero() -> None:
    low, high = rate_intervals(np.array([1e9, 2e9]), np.array([np.nan, 1e9]))
    assert np.isnan([low[0], high[0]]).all() and 0 < low[1] < 2e9 < high[1]
    profile = ThroughputProfile.from_means([10.0, 20.0], [4e9, 2e9], [3, 1], [1e9, np.nan])
    low, high = profile.band()
    assert 0 < low[0] < 4e9 < high[0]
    assert np.isnan([low[1], high[1]]).all()
