"""The method against golden values of the study that it comes from, to the digits printed there."""

from __future__ import annotations

import pytest

from farline.estimating.calibration import Calibration, smallest_holding
from farline.estimating.features import features
from farline.estimating.finished import Finished
from farline.estimating.path_estimator import COVERS, PathEstimator
from farline.estimating.workload import Workload

PATH = (0.04, 1e10, 33554432.0)
"""Round trip, link and window."""
HISTORY = (
    # bytes of a file, files, concurrency, parallelism, pipelining, end, Mbit/s;
    # middle, deviation, score, load
    (1e8, 64, 1, 1, 1, 100, 520, 6.107744, 0.807775, 0.180848, 0.0),
    (1e8, 64, 1, 4, 1, 160, 780, 6.391338, 0.426538, 0.628211, 0.073042),
    (1e8, 64, 4, 4, 1, 190, 2100, 7.187779, 0.386488, 1.195155, 0.164138),
    (1e8, 64, 4, 4, 4, 220, 2250, 7.646387, 0.386636, 0.186993, 0.293184),
    (1e8, 64, 8, 4, 4, 245, 2900, 8.191908, 0.326203, 0.672716, 0.289669),
    (1e9, 16, 4, 4, 4, 330, 3100, 8.091819, 0.415275, 0.126813, 0.190112),
    (1e9, 16, 8, 4, 4, 380, 3900, 8.516265, 0.286544, 0.863860, 0.157863),
    (1e9, 16, 8, 4, 4, 7580, 2600, 8.396767, 0.247644, 2.154301, 0.078400),
)
END_S = 7580.0
VOLUME_BITS = 8e11
"""100 GB."""


def workload(size: float, files: int, cc: float, p: float, pp: float) -> Workload:
    return Workload(size * files, files, cc, p, pp, *PATH)


def transfer(row: tuple[float, ...]) -> Finished:
    size, files, cc, p, pp, end_s, mbps = row[:7]
    return Finished(workload(size, int(files), cc, p, pp), end_s, 1e6 * mbps)


def learnt() -> PathEstimator:
    estimator, now_s = PathEstimator(), 0.0
    for row in HISTORY:
        estimator.learn(transfer(row), now_s)
        now_s = row[5]
    return estimator


def test_every_transfer_of_a_history_is_predicted_as_printed() -> None:
    estimator, now_s = PathEstimator(), 0.0
    for row in HISTORY:
        made = estimator.predict(transfer(row).workload, now_s)
        done = estimator.learn(transfer(row), now_s)
        assert (made.middle, made.deviation, done.score, made.load) == pytest.approx(
            row[7:], abs=6e-7
        )
        now_s = row[5]


SAME = workload(1e9, 16, 8, 4, 4)
NEW = workload(4e6, 4096, 8, 4, 4)


def test_a_known_kind_is_predicted_as_printed() -> None:
    made = learnt().predict(SAME, END_S + 60)
    assert features(SAME) == pytest.approx([29.897353, 4, 3, 2, 2, 5.32373, 0.576393], abs=6e-7)
    assert made.prior == pytest.approx(7.681713, abs=6e-7)
    assert (made.local, made.noise, made.deviation) == pytest.approx(
        (0.496184, 0.228403, 0.261643), abs=6e-7
    )
    assert made.effective_count == pytest.approx(3.237180, abs=6e-7)
    assert (made.width, made.nearest, made.is_new_kind) == (16.0, 0.0, False)
    assert (made.load, made.middle) == pytest.approx((-0.187405, 7.990492), abs=6e-7)


def test_a_new_kind_is_predicted_as_printed_and_takes_the_start_scores() -> None:
    made = learnt().predict(NEW, END_S + 60)
    assert features(NEW) == pytest.approx([21.931569, 12, 3, 2, 2, 5.32373, 0.576393], abs=6e-7)
    assert (made.prior, made.local, made.noise, made.deviation) == pytest.approx(
        (6.811807, 0.765415, 0.248058, 0.496993), abs=6e-7
    )
    assert (made.effective_count, made.nearest) == pytest.approx((0.332077, 14.39135), abs=6e-7)
    assert (made.load, made.middle) == pytest.approx((-0.034372, 7.542849), abs=6e-7)
    assert (made.width, made.is_new_kind) == (16.0, True)


def test_the_reach_of_each_share_is_as_printed() -> None:
    """A known kind has the path's own scores at 50 %; a new one at least the start scores."""
    found = learnt().calibration
    known = [found.quantile(cover) for cover in COVERS]
    new = [found.quantile(cover, is_new_kind=True) for cover in COVERS]
    assert known == pytest.approx((0.672716, 1.404446, 2.256894), abs=6e-7)
    assert new == pytest.approx((0.740213, 1.404446, 2.256894), abs=6e-7)


def test_an_empty_store_is_wide_as_printed() -> None:
    made = PathEstimator().predict(SAME, 0.0)
    assert (made.prior, made.local, made.noise) == pytest.approx((7.681713, 0, 0.3), abs=6e-7)
    assert (made.deviation, made.effective_count) == pytest.approx((0.807775, 0.16), abs=6e-7)
    assert (made.width, made.nearest, made.load) == (float("inf"), float("inf"), 0.0)
    assert made.middle == pytest.approx(7.681713, abs=6e-7)


def test_an_empty_store_reaches_by_the_printed_factors() -> None:
    """With sd .808 the start scores are x1.82, x3.11 and x6.19."""
    estimator = PathEstimator()
    made = estimator.predict(SAME, 0.0)
    factors = [made.rate_bps / estimator.interval(made, cover).rate_low_bps for cover in COVERS]
    assert factors == pytest.approx((1.82, 3.11, 6.19), abs=5e-3)


# Rates in Mbit/s and seconds for 100 GB, of 50, 80 and 95 %.
PRINTED = {
    "same": (
        (2952.749514, 2476.201251, 3521.010131, 2044.746479, 4263.966112, 1635.9719, 5329.388416),
        (270.933920, 227.207526, 323.075517, 187.618752, 391.246547, 150.111033, 489.005954),
    ),
    "new": (
        (1887.198761, 1306.318547, 2726.37878, 939.031511, 3792.757881, 614.733196, 5793.6015),
        (423.908714, 293.429514, 612.408055, 210.928307, 851.941591, 138.083367, 1301.377582),
    ),
    "empty": (
        (2168.331175, 1192.476788, 3942.768642, 697.31492, 6742.520415, 350.251401, 10000.0),
        (368.947331, 202.903105, 670.872598, 118.649993, 1147.257827, 80.0, 2284.073661),
    ),
}


@pytest.mark.parametrize("case", PRINTED)
def test_rates_and_durations_are_as_printed(case: str) -> None:
    estimator = PathEstimator() if case == "empty" else learnt()
    now_s = 0.0 if case == "empty" else END_S + 60
    made = estimator.predict(NEW if case == "new" else SAME, now_s)
    rates, seconds = [made.rate_bps / 1e6], [VOLUME_BITS / made.rate_bps]
    for cover in COVERS:
        one = estimator.interval(made, cover)
        rates += [one.rate_low_bps / 1e6, one.rate_high_bps / 1e6]
        seconds += [VOLUME_BITS / one.rate_high_bps, VOLUME_BITS / one.rate_low_bps]
    assert rates == pytest.approx(PRINTED[case][0], rel=1e-8)
    assert seconds == pytest.approx(PRINTED[case][1], rel=1e-8)


def test_quantiles_of_twelve_scores_are_as_printed() -> None:
    scores = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.9, 1.1, 1.3, 1.6, 2.5]
    covers = (0.5, 0.8, 0.95, 0.99)
    found = Calibration(covers, scores)
    printed = (0.740213, 1.404446, 2.5, 3.125)
    assert [found.quantile(cover) for cover in covers] == pytest.approx(printed, abs=6e-7)


def test_without_any_score_the_start_scores_stand() -> None:
    found = Calibration(COVERS)
    assert [found.quantile(cover) for cover in COVERS] == pytest.approx(
        (0.740213, 1.404446, 2.256894), abs=6e-7
    )


def test_start_scores_are_quantiles_of_t_with_ten_degrees_of_freedom() -> None:
    from scipy.stats import t

    from farline.estimating.calibration import START_SCORES

    expected = [t.ppf(0.5 + share / 42, 10) for share in range(1, 21)]
    assert expected == pytest.approx(START_SCORES, abs=6e-7)


def test_beyond_the_scores_it_is_a_quarter_more_than_the_largest() -> None:
    assert smallest_holding([1.0, 2.0], 0.99) == 2.5
