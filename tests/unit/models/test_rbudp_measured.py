"""Measured blasts beside the model: a run's own facts come before what was stated."""

from __future__ import annotations

import pytest

from farline.models.rbudp import Case
from farline.models.rbudp_corrected import by_passes, early
from farline.models.rbudp_measured import measured
from tests.support.records import make_record
from tests.unit.models.records import made_blast, made_run

MB = 10**6
STATED = Case(10 * MB, 100e6, 0.05, 0.02)


def test_each_blast_of_the_sender_is_one_point() -> None:
    record = made_run(1, [made_blast(600 * MB, 9.36), made_blast(300 * MB, 5.0, passes=5)])
    points = measured(record, STATED, 0.11, 0.07)
    assert [point.case.payload_bytes for point in points] == [600 * MB, 300 * MB]
    first = points[0]
    assert first.throughput_bps == pytest.approx(8 * 600e6 / 9.36)
    assert (first.case.rate_bps, first.case.rtt_s, first.case.loss) == (610e6, 0.11, 0.07)
    assert first.predicted_bps == by_passes(first.case).throughput_bps
    assert first.excess == pytest.approx(0.0, abs=0.001)
    assert (first.passes, first.prediction.passes.low, first.prediction.passes.high) == (6, 5, 6)
    assert first.first_pass_loss == pytest.approx(28_846 / 412_088)


def test_what_a_run_does_not_say_is_as_stated() -> None:
    record = made_run(1, [made_blast(600 * MB, 9.0)], rate_bps=0)
    (point,) = measured(record, STATED, None, None)
    assert (point.case.rate_bps, point.case.rtt_s, point.case.loss) == (100e6, 0.05, 0.02)


def test_a_run_with_early_reports_has_the_model_of_early_reports() -> None:
    record = made_run(1, [made_blast(600 * MB, 9.0)], early=True)
    (point,) = measured(record, STATED, 0.11, 0.07)
    assert point.model == "early"
    assert point.predicted_bps == early(point.case).throughput_bps


def test_several_blasts_in_flight_are_one_point_of_the_stream() -> None:
    blasts = [made_blast(64 * MB, 3.0) for _ in range(10)]
    record = made_run(1, blasts, in_flight=8, elapsed_s=9.0)
    (point,) = measured(record, STATED, 0.11, 0.07)
    assert point.passes is None
    assert point.throughput_bps == pytest.approx(8 * 640e6 / 9.0)
    assert point.predicted_bps == by_passes(point.case).sustained_bps(8)
    assert point.predicted_bps == pytest.approx(610e6 * 0.93)


def test_packets_of_another_size_are_taken_from_their_count() -> None:
    blast = {**made_blast(90 * MB, 2.0), "packets": 10_051, "first_pass_lost_packets": 0}
    (point,) = measured(made_run(1, [blast]), STATED, 0.11, 0.0)
    assert point.case.packet_payload_bytes == 8955
    assert point.case.packets == 10_051


def test_runs_without_whole_blasts_give_no_point() -> None:
    assert measured(made_run(1, []), STATED, 0.11, 0.07) == ()
    assert measured(make_record(1), STATED, None, None) == ()


def test_a_path_that_no_model_knows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"loss: 1 is out of range"):
        measured(made_run(1, [made_blast(MB, 1.0)]), STATED, 0.1, 1.0)
