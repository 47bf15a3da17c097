"""Where the printed equations mislead: told when it matters, with the right figure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from farline.models.rbudp import Case
from farline.models.rbudp_corrected import by_passes
from farline.models.rbudp_gaps import Gap, as_printed, gaps
from farline.models.rbudp_printed import printed

MB = 10**6
CASE = Case(600 * MB, 610e6, 0.11, 0.07)


def found(case: Case) -> dict[str, Gap]:
    return {gap.name: gap for gap in gaps(case)}


@pytest.mark.parametrize(
    "case",
    [
        CASE,
        replace(CASE, loss=0.33),
        replace(CASE, payload_bytes=MB),
        replace(CASE, payload_bytes=20_000 * MB, loss=0.01, rtt_s=0.366),
    ],
    ids=str,
)
def test_the_figures_make_up_the_difference_between_the_two(case: Case) -> None:
    told = sum(gap.adds_s or 0.0 for gap in gaps(case))
    difference = by_passes(case).time_s - printed(as_printed(case)).time_s
    assert told == pytest.approx(difference, abs=0.003 * by_passes(case).time_s)


def test_the_report_over_tcp_has_its_segments_and_rounds() -> None:
    text = found(CASE)["report over TCP"].text
    assert "36 TCP segments" in text and "3 rounds: 220 ms beyond the first" in text
    assert "report over TCP" not in found(replace(CASE, payload_bytes=MB))


def test_chance_says_how_often_the_printed_passes_are_enough() -> None:
    text = found(replace(CASE, packet_payload_bytes=1500))["chance"].text
    assert "N_resend is not 5" in text and "4.54 on average" in text
    assert "4 to 5 in nine of ten blasts" in text and "95.4 % of blasts" in text


def test_packets_of_1500_bytes_are_told_from_those_that_fit() -> None:
    text = found(CASE)["packet size"].text
    assert "412,088 packets, not 400,000" in text and "644 Mbit/s of an Ethernet link" in text
    assert "packet size" not in found(replace(CASE, packet_payload_bytes=1500))


def test_a_line_rate_is_told_with_what_headers_take_of_it() -> None:
    line = replace(CASE, wire_overhead_bytes=82, loss=0.0)
    gap = found(line)["packet size"]
    assert gap.adds_s == pytest.approx(600e6 * 8 / 610e6 * 82 / 1456, rel=1e-9)
    assert "610 Mbit/s of an Ethernet link" in gap.text


def test_the_edges_of_equation_5_are_told() -> None:
    rare = found(replace(CASE, loss=1e-6))["edge of equation 5"].text
    assert "never gives 0 resends" in rare
    exact = replace(CASE, payload_bytes=1500 * 1000, loss=0.1)
    assert "exactly one packet is left after 3 resends" in found(exact)["edge of equation 5"].text
    assert "edge of equation 5" not in found(CASE)


def test_without_loss_and_distance_only_the_packet_differs() -> None:
    assert set(found(replace(CASE, loss=0.0, rtt_s=0.0))) == {"packet size"}
    same = replace(CASE, loss=0.0, rtt_s=0.0, packet_payload_bytes=1500)
    assert gaps(same) == ()


def test_waits_constant_loss_and_the_opening_are_told() -> None:
    named = found(CASE)
    assert "13.8 ms" in named["stragglers"].text
    assert "33 %" in named["constant loss"].text
    assert "opening the control channel" in named["set-up"].text
    assert "stragglers" not in found(replace(CASE, settle_s=0.0))
    assert "set-up" not in found(replace(CASE, rtt_s=0.001))


def test_the_largest_effect_comes_first_and_what_has_no_figure_last() -> None:
    effects = [gap.adds_s for gap in gaps(CASE)]
    known = [abs(effect) for effect in effects if effect is not None]
    assert known == sorted(known, reverse=True)
    assert effects[len(known) :] == [None] * (len(effects) - len(known))
