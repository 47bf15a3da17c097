"""Settings against each other."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from farline.profiles.compare import best_point, gain, not_told_apart, told_apart
from farline.profiles.response import ResponsePoint, mean_interval


def point(name: str, *values: float) -> ResponsePoint:
    mean, low, high = mean_interval(values) if values else (None, None, None)
    return ResponsePoint({"name": name}, values, (), mean, low, high)


def test_the_best_setting_has_the_highest_mean() -> None:
    points = [point("a", 1.0, 1.2), point("b", 2.0, 2.2), point("c")]
    assert best_point(points) == points[1]
    assert best_point([point("none")]) is None


def test_one_lucky_run_does_not_beat_repeated_ones() -> None:
    repeated = point("repeated", 5.0, 5.1)
    assert best_point([point("lucky", 9.0), repeated]) == repeated
    lone = point("lone", 3.0)
    assert best_point([lone, point("other", 2.0)]) == lone


def test_a_gain_is_a_ratio_of_geometric_means_with_welchs_interval() -> None:
    left, right = (4.0, 4.4, 4.2, 4.1), (2.0, 2.1, 1.9)
    found = gain(point("l", *left), point("r", *right))
    assert found is not None
    logs = [np.log(left), np.log(right)]
    assert found.ratio == pytest.approx(np.exp(logs[0].mean() - logs[1].mean()))
    expected = scipy.stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    assert found.low == pytest.approx(np.exp(expected.low))
    assert found.high == pytest.approx(np.exp(expected.high))


def test_a_gain_from_single_runs_has_no_interval() -> None:
    found = gain(point("l", 4.0), point("r", 2.0, 2.1))
    assert found is not None and found.low is None and found.high is None


def test_there_is_no_gain_over_nothing_or_zero() -> None:
    assert gain(point("l", 4.0), point("r")) is None
    assert gain(point("l", 4.0, 4.1), point("r", 0.0, 1.0)) is None


def test_equal_runs_give_a_certain_gain() -> None:
    found = gain(point("l", 4.0, 4.0), point("r", 2.0, 2.0))
    assert found is not None and (found.low, found.high) == (found.ratio, found.ratio)


def test_close_settings_are_not_told_apart_and_far_ones_are() -> None:
    best = point("best", 10.0, 10.4, 9.8, 10.2)
    close = point("close", 9.9, 10.3, 9.7, 10.1)
    far = point("far", 5.0, 5.1, 4.9, 5.05)
    single = point("single", 10.0)
    assert not_told_apart(best, [best, close, far, single]) == [close]


def test_holms_correction_asks_more_of_many_settings() -> None:
    best = point("best", 10.0, 10.3, 10.1, 10.2)
    near = point("near", 9.7, 10.0, 9.8, 9.9)
    p_value = scipy.stats.ttest_ind(
        np.log(best.values), np.log(near.values), equal_var=False
    ).pvalue
    assert 0.001 < p_value < 0.05
    assert not_told_apart(best, [best, near]) == []
    crowd = [point(f"near{i}", *near.values) for i in range(60)]
    assert len(not_told_apart(best, [best, *crowd])) == 60


def test_with_one_run_of_the_best_nothing_is_compared() -> None:
    assert not_told_apart(point("best", 9.0), [point("a", 1.0, 1.1)]) == []


def test_the_reference_is_told_apart_by_the_same_rule_as_the_others() -> None:
    best, far = point("best", 10.0, 10.3, 10.1, 10.2), point("far", 5.0, 5.1, 4.9, 5.05)
    near = point("near", 9.7, 10.0, 9.8, 9.9)
    crowd = [point(f"near{i}", *near.values) for i in range(60)]
    reference = ResponsePoint({}, near.values, ("r1",), near.mean, near.low, near.high)
    assert told_apart(best, reference, [best])
    assert not told_apart(best, reference, [best, *crowd])
    assert told_apart(best, far, [best, far, *crowd])
    assert not told_apart(best, point("once", 1.0), [best])


def test_a_point_that_holds_the_references_runs_stands_for_it() -> None:
    best = point("best", 10.0, 10.3, 10.1, 10.2)
    held = ResponsePoint({"name": "held"}, (9.9, 10.3, 9.7), ("r1", "r2", "r3"), 9.97, 9.0, 11.0)
    reference = ResponsePoint({}, (5.0, 5.01), ("r1", "r2"), 5.0, 4.9, 5.1)
    assert held in not_told_apart(best, [best, held])
    assert not told_apart(best, reference, [best, held])
