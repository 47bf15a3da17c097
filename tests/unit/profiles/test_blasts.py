"""What blasts come to, and the formulas of He et al. 2002, section 4, about them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.profiles.blasts import (
    allowed_efficiency,
    blast_rows,
    blasts_of,
    path_check_of,
    payload_for,
)
from tests.support.blasts import blast, path_check, rbudp_record
from tests.support.runs import run_record

RATES = st.floats(1e6, 1e12)
RTTS = st.floats(1e-6, 1.0)


def test_chicago_to_amsterdam_needs_74_megabytes_for_nine_tenths() -> None:
    assert payload_for(600e6, 0.110, 0.9) == pytest.approx(74.25e6, rel=1e-12)
    assert allowed_efficiency(600e6, 0.110, 74.25e6) == pytest.approx(0.9, rel=1e-12)


@given(RATES, RTTS, st.floats(0.01, 0.99))
def test_the_payload_gives_the_efficiency_it_was_computed_for(
    rate_bps: float, rtt_s: float, wanted: float
) -> None:
    payload = payload_for(rate_bps, rtt_s, wanted)
    assert allowed_efficiency(rate_bps, rtt_s, payload) == pytest.approx(wanted)


@given(RATES, RTTS, st.floats(1.0, 1e12), st.integers(1, 63), st.floats(1.0, 9.0))
def test_more_at_once_never_hurts_and_more_passes_never_help(
    rate_bps: float, rtt_s: float, payload: float, at_once: int, passes: float
) -> None:
    one = allowed_efficiency(rate_bps, rtt_s, payload, in_flight=at_once, passes=passes)
    assert 0 < one <= 1
    more = allowed_efficiency(rate_bps, rtt_s, payload, in_flight=at_once + 1, passes=passes)
    assert more >= one
    assert allowed_efficiency(rate_bps, rtt_s, payload, in_flight=at_once, passes=passes + 1) <= one


def test_blasts_add_up() -> None:
    record = rbudp_record(
        blast(1_456_000, lost=70, passes=3, elapsed_us=10_000),
        blast(1_456_000, lost=30, passes=2, elapsed_us=30_000),
        check=path_check(290e6),
    )
    found = blasts_of(record, 0)
    assert found is not None
    assert (found.whole, found.kept, found.packets) == (2, 2, 2_000)
    assert found.first_pass_lost_share == pytest.approx(0.05)
    assert (found.passes_mean, found.passes_most) == (2.5, 3)
    assert found.throughput_bps == pytest.approx(2 * 1_456_000 * 8 / 0.04)
    assert blasts_of(record, 1) is None
    check = path_check_of(record, 0)
    assert check is not None and check["shared"] and path_check_of(record, 1) is None


def test_the_sender_tells_and_where_it_is_silent_the_receiver_does() -> None:
    record = rbudp_record(blast(lost=7))
    assert [row.repeated_packets for row in blast_rows(record)] == [7]
    record["streams"][0]["blasts"] = []
    rows = blast_rows(record)
    assert [(row.repeated_packets, row.sender_end) for row in rows] == [(None, 0)]
    assert rows[0].throughput_bps == pytest.approx((64 << 20) * 8 / 0.88)


def test_blasts_beyond_those_that_a_record_keeps_are_counted() -> None:
    record = rbudp_record(blast(), sender={"whole_blasts": 900}, receiver={"whole_blasts": 899})
    found = blasts_of(record, 0)
    assert found is not None and (found.whole, found.kept) == (900, 1)


def test_a_run_without_blasts_has_none() -> None:
    assert blast_rows(run_record()) == [] and blasts_of(run_record(), 0) is None
    assert path_check_of(run_record(), 0) is None
