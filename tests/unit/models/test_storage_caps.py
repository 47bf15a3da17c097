"""Caps of a process and of all, fitted: what Rao et al. 2018 draw in Fig. 5."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.models.storage_caps import fit_caps

COUNTS = (1, 2, 4, 8, 16)


def measured(process_bps: float, total_bps: float, noise: float, repeats: int = 3) -> list[float]:
    random = np.random.default_rng(7)
    return [
        min(n * process_bps, total_bps) * math.exp(random.normal(0, noise))
        for n in COUNTS
        for _ in range(repeats)
    ]


def counts(repeats: int = 3) -> list[int]:
    return [n for n in COUNTS for _ in range(repeats)]


@given(st.floats(1e8, 1e11), st.floats(1.4, 11.0))
@settings(max_examples=20, deadline=None)
def test_both_caps_are_found_within_a_few_percent(process_bps: float, ratio: float) -> None:
    found = fit_caps(counts(), measured(process_bps, ratio * process_bps, 0.02), draws=20)
    assert found.process is not None and found.total is not None
    assert found.process.rate_bps == pytest.approx(process_bps, rel=0.08)
    assert found.total.rate_bps == pytest.approx(ratio * process_bps, rel=0.08)
    for cap in (found.process, found.total):
        assert cap.low_bps <= cap.rate_bps <= cap.high_bps


def test_a_rate_that_rises_with_every_process_has_no_cap_of_all() -> None:
    found = fit_caps(counts(), measured(1e9, 1e12, 0.01))
    assert found.total is None
    assert found.process is not None
    assert found.process.rate_bps == pytest.approx(1e9, rel=0.02)
    assert found.rate_bps([32])[0] == pytest.approx(32e9, rel=0.02)


def test_where_one_process_takes_all_there_is_no_cap_of_one() -> None:
    found = fit_caps(counts(), measured(1e12, 5e9, 0.01))
    assert found.process is None
    assert found.total is not None
    assert found.total.rate_bps == pytest.approx(5e9, rel=0.02)


def test_a_round_knee_is_fitted_by_the_smooth_form() -> None:
    rates = [((n * 1e9) ** -1.5 + 8e9**-1.5) ** (-1 / 1.5) for n in COUNTS]
    found = fit_caps(COUNTS, rates)
    assert found.form == "smooth"
    assert found.sharpness == pytest.approx(1.5, rel=0.02)
    assert found.process is not None and found.total is not None
    assert found.process.rate_bps == pytest.approx(1e9, rel=0.02)
    assert found.total.rate_bps == pytest.approx(8e9, rel=0.02)


def test_what_more_processes_lose_is_told_and_lowers_no_cap() -> None:
    found = fit_caps((1, 2, 4, 8, 16), (1e9, 2e9, 4e9, 4.1e9, 2e9))
    assert found.total is not None
    assert found.total.rate_bps == pytest.approx(4.05e9, rel=0.03)
    assert found.best_processes == 8
    assert found.declines_to_bps == pytest.approx(2e9)
    assert fit_caps((1, 2, 4), (1e9, 2e9, 3e9)).declines_to_bps is None


def test_intervals_hold_what_was_so_in_most_of_many_measurements() -> None:
    held = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        rates = [min(n * 1e9, 4e9) * math.exp(random.normal(0, 0.05)) for n in counts()]
        found = fit_caps(counts(), rates, draws=40, seed=seed)
        assert found.total is not None
        held += found.total.low_bps <= 4e9 <= found.total.high_bps
    assert held >= 16


def test_one_count_is_no_curve_and_nonsense_is_refused() -> None:
    found = fit_caps([2, 2], [2e9, 2.2e9])
    assert found.total is None
    assert found.process is not None
    assert found.process.rate_bps == pytest.approx(1.05e9, rel=0.01)
    for processes, rates in (((), ()), ((0,), (1.0,)), ((1,), (0.0,)), ((1, 2), (1.0,))):
        with pytest.raises(SpecError):
            fit_caps(processes, rates)
