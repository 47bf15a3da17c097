"""The corrected models against blasts played packet by packet, and what must hold of any case."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.models.rbudp import MODEL_NAMES, Case, interval_rule_s, settle_rule_s
from farline.models.rbudp_corrected import by_passes, early, predict, tail
from farline.models.rbudp_printed import printed
from tests.support.draws import draws
from tests.unit.models.blasts import blast_by_passes, blast_with_early_reports

MB = 10**6
CASES = [
    Case(1 * MB, 1e8, 0.05, 0.07),
    Case(3 * MB, 1e8, 0.05, 0.33),
    Case(3 * MB, 1e8, 0.01, 0.01),
    Case(1 * MB, 1e9, 0.1, 0.07),
    Case(10 * MB, 1e8, 0.1, 0.33),
    Case(2 * MB, 5e7, 0.2, 0.01),
    Case(10 * MB, 1e8, 0.0, 0.07),
    Case(600 * MB, 6.1e8, 0.11, 0.07),
    Case(2000 * MB, 9e9, 0.366, 0.33),
    Case(2000 * MB, 9e9, 0.366, 0.01),
    Case(100 * MB, 9e9, 0.0, 0.33),
    Case(50 * MB, 1e9, 0.02, 0.07, wire_overhead_bytes=82),
    Case(50 * MB, 1e9, 0.02, 0.07, settle_s=0.0, interval_s=0.04),
]


def mean_and_error(draw: Callable[[], float], count: int) -> tuple[float, float]:
    times = np.array([draw() for _ in range(count)])
    return float(times.mean()), float(times.std()) / math.sqrt(count)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_passes_take_the_time_that_blasts_took(case: Case) -> None:
    chance = np.random.default_rng(7)
    mean, error = mean_and_error(lambda: blast_by_passes(case, chance)[0], 2000)
    predicted = by_passes(case)
    assert predicted.time_s - predicted.report_s == pytest.approx(mean, abs=4 * error)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_early_reports_take_the_time_that_blasts_took(case: Case) -> None:
    chance = np.random.default_rng(11)
    mean, error = mean_and_error(lambda: blast_with_early_reports(case, chance), 300)
    assert early(case).time_s == pytest.approx(mean, abs=0.005 * mean + 3 * error)


@pytest.mark.parametrize("case", CASES[:6], ids=str)
def test_nine_blasts_of_ten_are_within_the_span(case: Case) -> None:
    chance = np.random.default_rng(3)
    for times, model in (
        ([blast_by_passes(case, chance)[0] for _ in range(2000)], by_passes(case)),
        ([blast_with_early_reports(case, chance) for _ in range(500)], early(case)),
    ):
        low_s, high_s = (end_s - model.report_s for end_s in (model.time_low_s, model.time_high_s))
        inside = [low_s <= time_s <= high_s for time_s in times]
        assert np.mean(inside) >= 0.87


def test_the_passes_of_a_blast_are_within_the_computed_distribution() -> None:
    case, chance = Case(5 * MB, 1e9, 0.01, 0.2), np.random.default_rng(5)
    passes = np.array([blast_by_passes(case, chance)[1] for _ in range(2000)])
    model = by_passes(case).passes
    assert passes.mean() == pytest.approx(model.mean, abs=0.08)
    assert np.mean((model.low <= passes) & (passes <= model.high)) >= 0.9


@pytest.mark.parametrize("rtt_s", [0.0, 0.001, 0.11, 0.366])
def test_without_loss_all_is_sending_and_one_round_trip(rtt_s: float) -> None:
    case = Case(600 * MB, 6e8, rtt_s)
    for model in (by_passes(case), early(case)):
        assert model.time_s == pytest.approx(8.0 + rtt_s, rel=1e-12)
        assert (model.resent_bytes, model.passes.mean, model.passes.high) == (0, 1, 1)
        assert model.time_low_s == model.time_high_s == pytest.approx(model.time_s)


def test_two_round_trips_for_the_bitmap_lower_600_mb_from_0_986_to_0_960() -> None:
    case = Case(600 * MB, 600e6, 0.11, packet_payload_bytes=1500)
    without = printed(case)
    assert round(without.efficiency, 4) == 0.9864
    slow_start_s = 2 * case.rtt_s
    assert 8 / (without.time_s + slow_start_s) == pytest.approx(0.960, abs=5e-4)


def test_the_first_report_of_600_mb_costs_two_round_trips_more_than_its_t_ack() -> None:
    case = Case(600 * MB, 610e6, 0.11, 0.07)
    assert by_passes(case).report_s == pytest.approx(0.22, abs=0.002)
    small_windows = replace(case, initial_window_segments=2)
    assert by_passes(small_windows).report_s > by_passes(case).report_s + 2 * case.rtt_s - 0.001
    assert printed(case).report_s < 0.005


def test_every_byte_goes_again_as_often_as_it_is_lost() -> None:
    assert by_passes(Case(600 * MB, 610e6, 0.11, 0.07)).resent_bytes == pytest.approx(
        45_161_290.32, abs=0.01
    )


def test_a_line_rate_carries_headers_too() -> None:
    line = Case(600 * MB, 1e9, 0.0, 0.0, wire_overhead_bytes=82)
    assert by_passes(line).efficiency == pytest.approx(1456 / 1538, rel=1e-12)
    assert line.payload_rate_bps == pytest.approx(946.684e6, abs=1e3)
    assert printed(line).efficiency > 0.999


def test_early_reports_save_time_where_passes_would_idle() -> None:
    case = Case(2000 * MB, 9e9, 0.366, 0.33)
    assert early(case).time_s < 0.75 * by_passes(case).time_s


def test_a_very_short_interval_costs_no_memory_and_changes_little() -> None:
    case = Case(600 * MB, 610e6, 0.11, 0.07)
    often = tail(replace(case, interval_s=0.001))
    assert len(often.late_s) < 10_000
    assert often.mean_s == pytest.approx(tail(replace(case, interval_s=0.005)).mean_s, rel=0.05)


def test_without_distance_and_waits_the_end_is_only_sending() -> None:
    case = Case(1 * MB, 1e8, 0.0, 0.5, settle_s=0.0)
    assert early(case).time_s == pytest.approx(0.16, rel=0.02)


def test_several_blasts_in_flight_fill_the_pauses_of_each_other_up_to_the_rate() -> None:
    one = by_passes(Case(64 * MB, 1e9, 0.1, 0.01))
    assert one.sustained_bps(1) == pytest.approx(one.throughput_bps, rel=1e-12)
    assert one.sustained_bps(2) == pytest.approx(min(2 * one.throughput_bps, 0.99e9), rel=1e-12)
    assert one.sustained_bps(64) == pytest.approx(0.99e9, rel=1e-12)
    with pytest.raises(ValueError, match="in_flight: 0 is out of range"):
        one.sustained_bps(0)


cases = st.builds(
    Case,
    payload_bytes=st.integers(1, 10**11),
    rate_bps=st.floats(1e5, 1e11),
    rtt_s=st.floats(0, 2),
    loss=st.floats(0, 0.9),
    packet_payload_bytes=st.integers(40, 60_000),
    wire_overhead_bytes=st.integers(0, 100),
)


@draws(60)
@given(case=cases, name=st.sampled_from(MODEL_NAMES))
def test_no_case_beats_its_rate_and_times_are_whole(case: Case, name: str) -> None:
    answer = predict(case, name)  # type: ignore[arg-type]
    parts = (answer.send_s, answer.resend_s, answer.report_s, answer.waiting_s)
    assert all(math.isfinite(part) and part >= 0 for part in parts)
    assert answer.time_s == pytest.approx(sum(parts), rel=1e-12)
    assert 0 < answer.efficiency <= 1 + 1e-12
    assert answer.waiting_s >= case.rtt_s
    assert answer.time_low_s <= answer.time_high_s
    assert 1 <= answer.passes.low <= answer.passes.high


@draws(40)
@given(case=cases, worse=st.floats(1.05, 1.5))
def test_loss_and_distance_never_make_a_blast_faster(case: Case, worse: float) -> None:
    for model in (by_passes, early):
        here = model(case).time_s
        lossier = replace(case, loss=min(0.9, case.loss * worse))
        farther = replace(case, rtt_s=case.rtt_s * worse, interval_s=case.reporting_s,
                          settle_s=case.settling_s)  # fmt: skip
        assert model(lossier).time_s >= here * (1 - 1e-3)
        assert model(farther).time_s >= here * (1 - 1e-3)


@pytest.mark.parametrize(
    ("rtt_s", "settle_s", "interval_s"),
    [(0.0, 0.0002, 0.005), (0.04, 0.005, 0.01), (0.366, 0.04575, 0.05), (1.0, 0.05, 0.05)],
)
def test_farlines_own_waits(rtt_s: float, settle_s: float, interval_s: float) -> None:
    assert settle_rule_s(rtt_s) == pytest.approx(settle_s)
    assert interval_rule_s(rtt_s) == pytest.approx(interval_s)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("payload_bytes", 0), ("payload_bytes", 10**19), ("rate_bps", 0.0), ("rate_bps", math.nan),
        ("rtt_s", -1.0), ("rtt_s", math.inf), ("loss", 1.0), ("loss", -0.1),
        ("packet_payload_bytes", 0), ("packet_payload_bytes", 70_000), ("wire_overhead_bytes", -1),
        ("settle_s", -0.1), ("interval_s", math.inf), ("interval_s", 0.0),
        ("initial_window_segments", 0),
    ],
)  # fmt: skip
def test_what_is_no_case_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"^{field}: .* is out of range; allowed: .* to "):
        replace(Case(600 * MB, 610e6, 0.11), **{field: value})  # type: ignore[arg-type]


def test_the_last_packet_may_be_short() -> None:
    assert Case(1457, 1e6, 0.1).packets == 2
    assert Case(1456, 1e6, 0.1).packets == 1
