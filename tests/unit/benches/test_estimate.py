"""Made-up histories have the statistics that they claim, and are judged by what came before."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from _estimate.generator import NOISE, Noise, PathModel, history
from _estimate.judge import coverage, judge, macro
from estimate_coverage import bounded


@pytest.fixture(scope="module")
def noise() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    one = Noise(np.random.default_rng(5), NOISE)
    return np.array([one.next() for _ in range(40_000)])


def test_equal_transfers_differ_as_published_ones_do(
    noise: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> None:
    beside = noise - noise.mean()
    assert noise.std() == pytest.approx(NOISE, rel=0.1)
    assert 6 < np.mean(beside**4) / noise.var() ** 2 < 14
    assert np.mean(beside**3) < 0


@pytest.mark.parametrize(("lag", "expected"), [(1, 0.40), (5, 0.24), (20, 0.12), (100, 0.06)])
def test_the_load_is_remembered_as_long(
    noise: np.ndarray[tuple[int], np.dtype[np.float64]], lag: int, expected: float
) -> None:
    assert np.corrcoef(noise[:-lag], noise[lag:])[0, 1] == pytest.approx(expected, abs=0.05)


def test_paths_are_noisy_as_the_published_ones() -> None:
    spread = [PathModel(np.random.default_rng(seed)).noise for seed in range(60)]
    assert np.median(spread) == pytest.approx(NOISE, rel=0.2)


def test_a_history_is_the_same_for_a_seed_and_goes_forward() -> None:
    first, again = list(history(3, 90)), list(history(3, 90))
    assert first == again
    assert all(a.done.ended_s <= b.start_s for a, b in pairwise(first))
    assert [one.after for one in first if one.after != "sweep"] == ["first", "idle", "change"]


def test_intervals_hold_about_as_often_as_they_say() -> None:
    paths = [judge(history(seed, 120)) for seed in range(1, 6)]
    assert 40 < macro(paths, 0.5) < 70
    assert 74 < macro(paths, 0.8) < 93
    assert 90 < macro(paths, 0.95) < 99.5
    assert min(coverage(path, 0.8) for path in paths) > 65


def test_a_figure_out_of_bounds_is_not_reached() -> None:
    assert bounded("case", "%", 80, 77, 86).reached
    assert not bounded("case", "%", 76, 77, 86).reached
    assert not bounded("case", "x", 1.4, None, 1.35).reached
