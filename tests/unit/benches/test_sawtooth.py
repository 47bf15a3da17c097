"""The sawtooth: formulas against worked figures, detectors against series of a known period."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from _emulator.sawtooth import (
    CUBIC,
    RENO,
    Bottleneck,
    cubic_plateau_s,
    drop_intervals_s,
    main_period_s,
    period_s,
)

STEP_S = 0.01
GIGABIT = Bottleneck(1e9, 0.01, 1_250_000, 9038)


def teeth(period: float, seconds: float, noise: float, lowest: float = 0.0) -> NDArray[np.float64]:
    """Occupancy that climbs from `lowest` to 1 and falls back, with noise."""
    at = np.arange(0, seconds, STEP_S)
    wave = lowest + (1 - lowest) * (at % period) / period
    return wave + np.random.default_rng(1).normal(0, noise, len(at))


@pytest.mark.parametrize("period", [0.8, 2.075, 2.77, 5.013])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_period_of_a_sawtooth_is_found(period: float, noise: float) -> None:
    found = main_period_s(teeth(period, 14 * period, noise), STEP_S)
    assert found == pytest.approx(period, rel=0.02)


def test_a_sawtooth_of_uneven_teeth_has_their_mean_period() -> None:
    lengths = np.random.default_rng(2).normal(2.0, 0.06, 14)
    wave = np.concatenate([np.linspace(0, 1, int(length / STEP_S)) for length in lengths])
    assert main_period_s(wave, STEP_S) == pytest.approx(2.0, rel=0.04)


@pytest.mark.parametrize("series", ["noise", "ramp", "one tooth"])
def test_what_does_not_repeat_is_refused(series: str) -> None:
    made = {
        "noise": np.random.default_rng(3).normal(size=3000),
        "ramp": np.linspace(0, 1, 1000),
        "one tooth": teeth(10.0, 10.0, 0.0),
    }
    with pytest.raises(ValueError, match=r"repeat|period"):
        main_period_s(made[series], STEP_S)


def test_drops_of_one_bout_count_once() -> None:
    at_s = np.arange(0, 10, STEP_S)
    drops = np.zeros(len(at_s), np.int64)
    for start in (1.0, 3.0, 5.1):
        index = round(start / STEP_S)
        drops[[index, index + 1, index + 4]] = (1, 2, 1)
    assert drop_intervals_s(at_s, drops, 0.1) == pytest.approx([2.0, 2.1])


def test_no_drops_give_no_intervals() -> None:
    assert len(drop_intervals_s(np.arange(5.0), np.zeros(5, np.int64), 0.1)) == 0


def test_reno_climbs_half_its_window_at_the_mean_round_trip() -> None:
    largest = 2 * 1_250_000 / 9038
    assert GIGABIT.largest_window == pytest.approx(largest)
    climb = largest / 2 * 0.015
    assert period_s(GIGABIT, RENO) == pytest.approx(climb + 2 * 0.020, rel=0.01)


def test_cubic_in_reno_s_place_climbs_by_rfc_9438() -> None:
    largest = GIGABIT.largest_window
    climb = 0.3 * largest / (3 * 0.3 / 1.7) * 0.017
    assert period_s(GIGABIT, CUBIC) == pytest.approx(climb + 2 * 0.020, rel=0.01)
    assert cubic_plateau_s(GIGABIT) == pytest.approx((largest * 0.3 / 0.4) ** (1 / 3))


def test_a_shallow_queue_leaves_the_path_s_own_round_trip() -> None:
    shallow = Bottleneck(1e9, 0.01, 0.0, 9038)
    steps = shallow.largest_window / 2
    assert period_s(shallow, RENO) == pytest.approx((steps + 2) * 0.01, rel=0.02)
