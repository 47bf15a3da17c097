"""What an estimator does with a history, as far as users can rely on it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farline.estimating.calibration import OWN_ALONE, Calibration
from farline.estimating.finished import Finished
from farline.estimating.history import learnt
from farline.estimating.path_estimator import COVERS, PathEstimator
from farline.estimating.workload import LEAST_FILE_BYTES, Workload

LOAD = Workload(1e10, 100, 4, 1, 1, 0.04, 1e10, 2.0**25, "6.1 6.1 -")
DAY_S = 86_400.0


def made_up(count: int, seed: int = 1, mbps: float = 2000.0, noise: float = 0.2) -> list[Finished]:
    draw = np.random.default_rng(seed)
    done, now_s = [], 0.0
    for _ in range(count):
        rate_bps = 1e6 * mbps * math.exp(float(draw.normal(0, noise)))
        now_s += 8 * LOAD.volume_bytes / rate_bps + 10
        done.append(Finished(LOAD, now_s, rate_bps))
    return done


def of(done: list[Finished]) -> PathEstimator:
    return learnt(done, COVERS)


def half_width(estimator: PathEstimator, load: Workload, now_s: float, cover: float = 0.8) -> float:
    one = estimator.predict(load, now_s)
    interval = estimator.interval(one, cover)
    return one.rate_bps / interval.rate_low_bps


def test_it_narrows_with_what_it_learns_and_finds_the_rate() -> None:
    done = made_up(60)
    widths = [half_width(of(done[:count]), LOAD, 0.0) for count in (0, 3, 60)]
    assert widths == sorted(widths, reverse=True)
    assert of(done).predict(LOAD, done[-1].ended_s).rate_bps == pytest.approx(2e9, rel=0.15)


def test_a_store_that_is_read_anew_is_as_sure_as_the_one_that_was_there() -> None:
    done = made_up(150, noise=0.4)
    kept, running = [], PathEstimator()
    for one in done:
        kept.append(running.learn(one, one.ended_s - one.duration_s))
    again = learnt(kept, COVERS)
    now_s = done[-1].ended_s + 60
    first, second = running.predict(LOAD, now_s), again.predict(LOAD, now_s)
    assert second == first
    for cover in COVERS:
        assert again.interval(second, cover) == running.interval(first, cover)


def test_a_store_without_kept_scores_finds_them_by_going_through_the_history() -> None:
    done = made_up(80, noise=0.4)
    running = PathEstimator()
    for one in done:
        running.learn(one, one.ended_s - one.duration_s)
    again = of(done)
    assert again.calibration.quantile(0.8) == running.calibration.quantile(0.8)


def test_a_kept_score_is_believed_and_not_made_again() -> None:
    done = [replace(one, score=3.0, residual=0.0) for one in made_up(40)]
    assert of(done).calibration.quantile(0.95) == 3.0


def test_a_path_idle_for_a_month_is_wider_and_forgets_the_load_of_the_hour() -> None:
    done = made_up(40)
    estimator, end_s = of(done), done[-1].ended_s
    month = estimator.predict(LOAD, end_s + 30 * DAY_S)
    assert month.deviation > 1.8 * estimator.predict(LOAD, end_s + 1).deviation
    assert month.load == pytest.approx(0.0, abs=1e-9)


def test_a_changed_host_is_wider_at_once_and_learnt_in_a_few_transfers() -> None:
    done, new = made_up(40), replace(LOAD, host_key="6.12 6.1 -")
    estimator, now_s = of(done), done[-1].ended_s
    assert estimator.predict(new, now_s).deviation > 1.8 * estimator.predict(LOAD, now_s).deviation
    for _ in range(8):
        now_s += 60
        estimator.learn(Finished(new, now_s, 6e9), now_s - 10)
    assert estimator.predict(new, now_s).rate_bps == pytest.approx(6e9, rel=0.15)


def test_slow_transfers_just_now_slow_the_next_one_down() -> None:
    done = made_up(40)
    estimator, now_s = of(done), done[-1].ended_s
    usual = estimator.predict(LOAD, now_s).rate_bps
    for _ in range(4):
        now_s += 60
        estimator.learn(Finished(LOAD, now_s, 1e9), now_s - 50)
    assert estimator.predict(LOAD, now_s + 1).rate_bps < 0.75 * usual


def test_another_kind_of_data_is_wider() -> None:
    done = made_up(40)
    estimator, now_s = of(done), done[-1].ended_s
    small = replace(LOAD, total_bytes=1e8, files=10_000)
    assert estimator.predict(small, now_s).is_new_kind
    assert half_width(estimator, small, now_s) > 1.3 * half_width(estimator, LOAD, now_s)
    assert not estimator.predict(LOAD, now_s).is_new_kind


def test_files_count_beside_bytes() -> None:
    one = PathEstimator().predict(Workload(1e9, 1), 0.0).duration_s
    many = PathEstimator().predict(Workload(1e9, 100_000), 0.0).duration_s
    assert many > 5 * one


def test_empty_files_take_time() -> None:
    made = PathEstimator().predict(Workload(0.0, 1_000_000), 0.0)
    assert made.workload.volume_bytes == 1_000_000 * LEAST_FILE_BYTES
    assert made.duration_s > 1.0


def test_no_rate_is_above_the_link() -> None:
    done = [Finished(LOAD, 60.0 * at, 9.9e9) for at in range(1, 30)]
    estimator = of(done)
    made = estimator.predict(LOAD, 1800.0)
    for cover in COVERS:
        one = estimator.interval(made, cover)
        assert one.rate_high_bps <= 1e10 * (1 + 1e-12)
        assert one.duration_low_s <= made.duration_s * (1 + 1e-12) <= one.duration_high_s * 1.001


def test_intervals_lie_within_each_other() -> None:
    estimator = of(made_up(300, noise=0.5))
    made = estimator.predict(LOAD, 1e6)
    half, most, nearly_all = (estimator.interval(made, cover) for cover in COVERS)
    assert nearly_all.rate_low_bps <= most.rate_low_bps <= half.rate_low_bps
    assert half.duration_high_s <= most.duration_high_s <= nearly_all.duration_high_s


def test_a_share_that_misses_too_often_is_widened() -> None:
    calm = np.abs(np.random.default_rng(1).normal(0, 1, 200))
    shaken = [*calm[:150], *(3 * calm[150:])]
    assert Calibration((0.8,), shaken).quantile(0.8) > 1.3 * Calibration((0.8,), calm).quantile(0.8)


def test_start_scores_fade_once_a_path_has_its_own() -> None:
    """Most paths are steadier than the start scores: kept, they widen every interval for good."""
    own = [0.01, 0.02, 0.03, 0.04, 0.05] * 10
    few, many = Calibration((0.5,), own[:12]), Calibration((0.5,), own)
    # 12 scores beside 20 start scores: the 17th of 32, which is a start score.
    assert few.quantile(0.5) == pytest.approx(0.311382)
    assert many.quantile(0.5) <= max(own)


@settings(max_examples=30)
@given(st.lists(st.floats(0.01, 5.0), max_size=60))
def test_a_larger_share_is_never_a_shorter_interval(scores: list[float]) -> None:
    found = Calibration(COVERS)
    for score in scores[:OWN_ALONE]:
        found.add(score)
    reaches = [found.quantile(cover) for cover in COVERS]
    assert reaches == sorted(reaches)


def test_only_the_last_three_hundred_scores_count() -> None:
    assert Calibration((0.5,), [9.0] * 500 + [1.0] * 300).quantile(0.5) <= 1.0


def test_a_history_of_thousands_keeps_the_newest() -> None:
    old = [Finished(LOAD, float(at), 1e8, 0.5, 0.0) for at in range(4100)]
    new = [Finished(LOAD, 5000.0 + at, 4e9, 0.5, 0.0) for at in range(4000)]
    assert of([*old, *new]).predict(LOAD, 9000.0).rate_bps == pytest.approx(4e9, rel=0.01)
