"""Histograms of rates: buckets of a 64th of an octave, and quantiles with a stated error."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.profiles.cell import (
    BUCKETS_PER_OCTAVE,
    add_histograms,
    bucket_of,
    middle_bps,
    quantiles_bps,
)
from farline.profiles.cells import cells_of
from tests.support.draws import draws

calm = draws(50)
"""Other work on the machine makes no test fail."""

WORST = 2 ** (0.5 / BUCKETS_PER_OCTAVE) - 1
"""Half a bucket, as a share: 0.55 %."""

rates = st.lists(st.floats(1.0, 1e12), min_size=1, max_size=200)


@calm
@given(st.floats(1.0, 1e13))
def test_no_rate_is_further_than_half_a_bucket_from_its_middle(rate: float) -> None:
    assert abs(float(middle_bps(bucket_of(rate))) / rate - 1) <= WORST * (1 + 1e-9)
    assert WORST <= 0.0055


def test_powers_of_two_begin_a_bucket() -> None:
    assert bucket_of([2.0**30, 2.0**31]).tolist() == [30 * 64, 31 * 64]
    assert int(bucket_of(2.0**30 * (1 - 1e-9))) == 30 * 64 - 1


@calm
@given(rates, st.floats(0, 1))
def test_quantiles_are_within_their_stated_error(values: list[float], share: float) -> None:
    histogram = dict(Counter(bucket_of(values).tolist()))
    (found,) = quantiles_bps(histogram, [share], min(values), max(values))
    assert found == pytest.approx(float(np.quantile(values, share)), rel=WORST * (1 + 1e-6))


@calm
@given(rates)
def test_smallest_and_largest_are_exact_and_quantiles_in_order(values: list[float]) -> None:
    histogram = dict(Counter(bucket_of(values).tolist()))
    shares = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]
    found = quantiles_bps(histogram, shares, min(values), max(values))
    assert (found[0], found[-1]) == (min(values), max(values))
    assert (np.diff(found) >= -1e-9 * max(values)).all()


@calm
@given(rates)
def test_quantiles_of_kept_rates_are_exact(values: list[float]) -> None:
    (cell,) = cells_of({"rate_bps": values})
    shares = [0.1, 0.5, 0.9]
    assert cell.quantiles_bps(shares) == pytest.approx(np.quantile(values, shares), rel=1e-14)


@calm
@given(st.lists(st.dictionaries(st.integers(0, 3000), st.integers(1, 10**9)), max_size=6))
def test_histograms_add_up_bucket_by_bucket(several: list[dict[int, int]]) -> None:
    expected: Counter[int] = Counter()
    for one in several:
        expected.update(one)
    assert add_histograms(several) == dict(expected)


def test_a_histogram_of_nothing_has_no_quantiles() -> None:
    assert np.isnan(quantiles_bps({}, [0.5], math.nan, math.nan)).all()


@pytest.mark.parametrize("shares", [[1.1], [-0.1, 0.5], [math.nan]])
def test_a_share_outside_its_range_is_refused(shares: list[Any]) -> None:
    with pytest.raises(SpecError, match="are not all between 0 and 1"):
        quantiles_bps({0: 1}, shares, 1.0, 1.0)
