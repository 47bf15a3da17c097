"""The equations of He et al. 2002 as printed: values that follow from the paper's figures."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.models.rbudp import Case
from farline.models.rbudp_curves import crossings, payload_for
from farline.models.rbudp_printed import (
    printed,
    printed_ack_bytes,
    printed_ack_s,
    printed_payload_bytes,
    printed_payload_with_ack_bytes,
    printed_resends,
    printed_resent_bytes,
    strict_resends,
)

MB = 10**6
PAPER = Case(600 * MB, 610e6, 0.110, 0.07, packet_payload_bytes=1500)
"""Chicago to Amsterdam: T_prop 55 ms, 600 MB, 610 Mb/s, 7 % loss."""


def clean(payload_mb: int, rate_mbps: int) -> Case:
    return replace(PAPER, payload_bytes=payload_mb * MB, rate_bps=rate_mbps * 1e6, loss=0.0)


def test_equations_1_and_2_of_600_mb_at_610_mbit_and_7_percent_loss() -> None:
    answer = printed(PAPER)
    assert answer.send_s == pytest.approx(7.868852459016393, rel=1e-12)
    assert printed_ack_s(PAPER) == pytest.approx(8 * 600 * MB / 12_000 / 610e6, rel=1e-12)
    assert round(printed_ack_s(PAPER), 6) == 0.000656
    assert answer.time_s == pytest.approx(9.125065107147540, rel=1e-9)
    assert answer.throughput_bps == pytest.approx(526.0236440658626e6, rel=1e-9)
    assert round(answer.throughput_bps / 1e6, 3) == 526.024
    assert answer.report_s == pytest.approx(6 * printed_ack_s(PAPER), rel=1e-12)
    assert answer.waiting_s == pytest.approx(12 * 0.055, rel=1e-12)


def test_the_parts_are_the_sum_over_passes_that_equation_1_writes_out() -> None:
    one_way_s = PAPER.rtt_s / 2
    sizes = [600 * MB * 0.07**i for i in range(6)]
    blasts_s = sum(one_way_s + 8 * size / 610e6 for size in sizes)
    acknowledged_s = 6 * (printed_ack_s(PAPER) + one_way_s)
    assert printed(PAPER).time_s == pytest.approx(blasts_s + acknowledged_s, rel=1e-12)


@pytest.mark.parametrize(
    ("rate_mbps", "best_mbps"),
    [
        (100, 99.763), (200, 199.071), (300, 297.927), (400, 396.334), (500, 494.295),
        (550, 543.109), (576, 568.449), (600, 591.813), (610, 601.541),
    ],
)  # fmt: skip
def test_equation_3_over_the_sending_rate(rate_mbps: int, best_mbps: float) -> None:
    assert round(printed(clean(600, rate_mbps)).throughput_bps / 1e6, 3) == best_mbps


def test_equation_3_and_the_general_one_agree_without_loss() -> None:
    case = clean(600, 550)
    size, rate = case.payload_bytes, case.rate_bps / 8
    best = size / (size / rate + size / (8 * 1500 * rate) + 0.110)
    assert printed(case).throughput_bps == pytest.approx(8 * best, rel=1e-12)
    assert round(printed(case).time_s, 3) == 8.838


def test_equation_4_gives_the_papers_74_mb_and_the_report_adds_little() -> None:
    assert printed_payload_bytes(600e6, 0.110, 0.9) == pytest.approx(74.25e6, rel=1e-12)
    assert round(printed_payload_bytes(600e6, 0.110, 0.9) / 2**20, 2) == 70.81
    kept = printed_payload_with_ack_bytes(clean(600, 600), 0.9)
    assert round(kept / MB, 4) == 74.3057
    assert kept / 74.25e6 - 1 == pytest.approx(0.00075, abs=5e-6)
    assert printed(replace(clean(600, 600), payload_bytes=round(kept))).efficiency == (
        pytest.approx(0.9, abs=1e-8)
    )


def test_the_papers_150_ms_would_need_a_larger_payload_than_its_55_ms_each_way() -> None:
    assert printed_payload_bytes(600e6, 0.150, 0.9) == pytest.approx(101.25e6, rel=1e-12)


def test_the_papers_19_mb_window_is_18_75_mb_in_the_units_of_its_other_examples() -> None:
    assert 18.75 * MB == 1e9 * 0.150 / 8
    assert printed_payload_bytes(1e9, 0.150, 0.5) == 18.75 * MB


def test_equations_5_and_6() -> None:
    assert math.log(1500 / (600 * MB), 0.07) == pytest.approx(4.8507, abs=5e-5)
    assert printed_resends(PAPER) == 5
    assert printed_resends(replace(PAPER, packet_payload_bytes=1536)) == 5
    assert printed_resent_bytes(PAPER) == pytest.approx(45_161_214.42, abs=5e-3)
    assert pytest.approx(45.1613 * MB, abs=50) == 600 * MB * 0.07 / 0.93


FIG_6 = [
    (1, 64.23, 17.62, 3), (5, 218.90, 64.46, 4), (10, 313.15, 115.76, 4), (50, 477.71, 318.63, 4),
    (100, 511.29, 386.32, 5), (200, 529.92, 459.55, 5), (400, 539.75, 507.66, 5),
    (600, 543.11, 526.02, 5), (1000, 545.83, 537.65, 6),
]  # fmt: skip


@pytest.mark.parametrize(("payload_mb", "upper", "lower", "resends"), FIG_6)
def test_the_two_curves_of_fig_6(payload_mb: int, upper: float, lower: float, resends: int) -> None:
    lossy = replace(PAPER, payload_bytes=payload_mb * MB)
    assert round(printed(clean(payload_mb, 550)).throughput_bps / 1e6, 2) == upper
    assert round(printed(lossy).throughput_bps / 1e6, 2) == lower
    assert printed_resends(lossy) == resends


def test_the_curves_of_fig_6_cross_once_at_1509_mb() -> None:
    def upper(size: int) -> float:
        return printed(replace(clean(600, 550), payload_bytes=size)).throughput_bps

    def lower(size: int) -> float:
        return printed(replace(PAPER, payload_bytes=size)).throughput_bps

    (place,) = crossings(upper, lower, MB, 10_000 * MB)
    assert place // MB == 1509
    assert upper(place - MB) > lower(place - MB) and upper(place + MB) < lower(place + MB)


def test_the_bitmap_is_a_bit_per_packet() -> None:
    assert printed_ack_bytes(PAPER) == 50_000


def test_what_equation_5_cannot_say_is_a_case_of_its_own() -> None:
    assert printed_resends(replace(PAPER, loss=0.0)) == 0
    assert printed_resends(replace(PAPER, payload_bytes=1500)) == 0
    assert printed_resends(replace(PAPER, payload_bytes=100)) == 0


def test_equation_5_never_gives_0_with_loss_and_its_words_do() -> None:
    rare = replace(PAPER, loss=1e-6)
    assert rare.loss * rare.payload_bytes < 1500
    assert (printed_resends(rare), strict_resends(rare)) == (1, 0)
    assert strict_resends(replace(PAPER, loss=0.0)) == 0


def test_exactly_one_packet_left_is_not_less_than_one() -> None:
    exact = replace(PAPER, payload_bytes=1500 * 10**3, loss=0.1)
    assert (printed_resends(exact), strict_resends(exact)) == (3, 4)
    assert (printed_resends(PAPER), strict_resends(PAPER)) == (5, 5)


@given(
    size=st.integers(1501, 10**13),
    loss=st.floats(1e-9, 0.9),
)
def test_equation_5_is_the_first_pass_that_leaves_a_packet_or_less(size: int, loss: float) -> None:
    case = replace(PAPER, payload_bytes=size, loss=loss)
    resends = printed_resends(case)
    assert size * loss**resends <= 1500 * (1 + 1e-6)
    assert size * loss ** (resends - 1) > 1500 * (1 - 1e-6)
    assert strict_resends(case) in (0, resends, resends + 1)


@pytest.mark.parametrize("efficiency", [0.0, 1.0, -0.1, 1.5])
def test_an_efficiency_is_between_0_and_1(efficiency: float) -> None:
    with pytest.raises(ValueError, match="allowed: between 0 and 1"):
        printed_payload_bytes(1e9, 0.1, efficiency)


def test_an_efficiency_that_the_bitmap_alone_forbids_is_refused() -> None:
    with pytest.raises(ValueError, match="never reached"):
        printed_payload_with_ack_bytes(PAPER, 0.99999)


def test_the_search_finds_what_equation_3_gives_in_closed_form() -> None:
    case = clean(600, 600)
    assert payload_for(case, 0.9, "printed") == math.ceil(printed_payload_with_ack_bytes(case, 0.9))
