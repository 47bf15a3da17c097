"""Closed formulas of a connection's rate, against published tables and worked values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.models.tcp_steady import (
    bbr_bound_bps,
    cubic_bps,
    cubic_window_segments,
    mathis_bps,
    pftk_bps,
    reno_window_segments,
    tfrc_bps,
)
from farline.models.window_bound import bdp_bytes, knee_rtt_ms, window_bound_bps

RTT_MS = [100, 55, 10]
LOSS = [1e-4, 1e-5, 1e-3]


def test_mathis_and_pftk_have_their_worked_values() -> None:
    assert mathis_bps(RTT_MS, LOSS) / 1e6 == pytest.approx([14.3050, 82.2481, 45.2364], rel=5e-6)
    assert pftk_bps(RTT_MS, LOSS) / 1e6 == pytest.approx([14.2729, 82.2144, 36.9275], rel=5e-6)
    delayed = pftk_bps(RTT_MS, LOSS, segments_per_ack=2) / 1e6
    assert delayed == pytest.approx([10.0925, 58.1344, 26.1117], rel=5e-6)


def test_delayed_acks_cost_mathis_a_factor_of_root_two() -> None:
    assert mathis_bps(10, 1e-4) / mathis_bps(10, 1e-4, segments_per_ack=2) == pytest.approx(2**0.5)


@pytest.mark.parametrize(
    ("rtt_ms", "losses", "segments"),
    [
        (100, [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8], [38, 187, 1054, 5926, 33325, 187400]),
        (10, [1e-5, 1e-6, 1e-7, 1e-8], [379, 1200, 5926, 33325]),
    ],
)
def test_cubic_has_the_windows_of_its_rfc(
    rtt_ms: float, losses: list[float], segments: list[float]
) -> None:
    windows = np.maximum(cubic_window_segments(rtt_ms, losses), reno_window_segments(losses))
    assert windows == pytest.approx(segments, rel=2e-4, abs=0.5)
    rates_bps = cubic_bps(rtt_ms, losses, segment_bytes=1500)
    assert rates_bps == pytest.approx(windows * 1500 * 8 / (rtt_ms / 1000))


def test_ten_gigabits_over_100_ms_need_the_losses_that_the_rfc_says() -> None:
    assert cubic_bps(100, 2.9e-8, segment_bytes=1500) == pytest.approx(1e10, rel=0.02)
    reno_bps = reno_window_segments(2.0e-10) * 1500 * 8 / 0.1
    assert reno_bps == pytest.approx(1e10, rel=0.03)


def test_cubic_falls_with_the_fourth_root_of_rtt_where_its_own_growth_leads() -> None:
    assert cubic_bps(40, 1e-7) / cubic_bps(640, 1e-7) == pytest.approx(16**0.25)
    assert cubic_bps(1, 1e-3) / cubic_bps(2, 1e-3) == pytest.approx(2)


@given(rtt_ms=st.floats(0.01, 1000), loss=st.floats(1e-9, 1))
def test_timeouts_and_windows_only_take_away(rtt_ms: float, loss: float) -> None:
    without = float(mathis_bps(rtt_ms, loss))
    full = float(pftk_bps(rtt_ms, loss))
    assert full <= without * (1 + 1e-12)
    assert float(pftk_bps(rtt_ms, loss, window_bytes=14_600)) <= full
    assert float(tfrc_bps(rtt_ms, loss)) <= without


def test_tfrc_is_pftk_with_a_timeout_of_four_round_trips_while_loss_is_small() -> None:
    assert tfrc_bps(50, 1e-3) == pytest.approx(float(pftk_bps(50, 1e-3, timeout_s=0.2)))
    # Here a loss all but surely ends in a timeout, and TFRC's chance of one is above 1.
    assert float(tfrc_bps(50, 0.9)) < float(pftk_bps(50, 0.9, timeout_s=0.2))


def test_a_window_is_a_limit_from_its_knee_on() -> None:
    assert knee_rtt_ms(1e10, 250e6) == pytest.approx(200)
    assert knee_rtt_ms(1e10, 250e6, streams=2) == pytest.approx(400)
    rates_bps = window_bound_bps([0, 1, 200, 400], 1e10, 250e6)
    assert rates_bps == pytest.approx([1e10, 1e10, 1e10, 5e9])
    assert bbr_bound_bps([1, 400], 1e10, 250e6) == pytest.approx([1e10, 5e9])
    assert bbr_bound_bps(366, 1e10) == 1e10


@pytest.mark.parametrize(
    ("rate_bps", "rtt_ms", "size_bytes"),
    [
        (1e10, 0.04, 50e3),
        (95e6, 0.25, 2.97e3),
        (1e10, 200, 250e6),
        (1e10, 366, 457.5e6),
        (1e9, 150, 18.75e6),
    ],
)
def test_bandwidth_delay_products(rate_bps: float, rtt_ms: float, size_bytes: float) -> None:
    assert bdp_bytes(rate_bps, rtt_ms) == pytest.approx(size_bytes, rel=1e-3)
    assert window_bound_bps(rtt_ms, 1e12, bdp_bytes(rate_bps, rtt_ms)) == pytest.approx(rate_bps)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: mathis_bps(0, 1e-3), "rtt_ms: 0 is out of range"),
        (lambda: mathis_bps([10, -1], 1e-3), r"rtt_ms\[1\]: -1 is out of range"),
        (lambda: pftk_bps(10, 0), "loss: 0 is out of range; allowed: more than 0, up to 1"),
        (lambda: pftk_bps(10, 1e-3, timeout_s=0), "timeout_s: 0 is out of range"),
        (lambda: tfrc_bps(10, 1.5), "loss: 1.5 is out of range"),
        (lambda: cubic_bps(10, 1e-3, beta=1), "beta: 1 is out of range"),
        (lambda: reno_window_segments(float("nan")), "loss: nan is out of range"),
        (lambda: window_bound_bps(-1, 1e9, 1e6), "rtt_ms: -1 is out of range"),
        (lambda: window_bound_bps(1, 1e9, 0), "window_bytes: 0 is out of range"),
        (lambda: knee_rtt_ms(0, 1e6), "capacity_bps: 0 is out of range"),
    ],
)
def test_what_no_path_can_be_is_refused(call, line: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SpecError, match=line):
        call()
