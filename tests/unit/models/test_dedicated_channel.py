"""The ramp and the sustained rate over a line of one's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.models.dedicated_channel import curvature, dedicated_bps, ramp_s, transition_rtt_ms
from farline.models.window_bound import window_bound_bps

LINE_BPS = 1e10


def test_ten_seconds_over_the_seven_rtts_of_the_paper() -> None:
    rtts_ms = [0.4, 11.8, 22.6, 45.6, 91.6, 183, 366]
    wanted = [9.999, 9.899, 9.786, 9.521, 8.946, 7.712, 5.057]
    assert dedicated_bps(rtts_ms, LINE_BPS, 10) / 1e9 == pytest.approx(wanted, abs=6e-4)
    assert ramp_s(366, LINE_BPS) == pytest.approx(5.471, abs=5e-4)


@pytest.mark.parametrize(
    ("rtt_ms", "observed_s", "window_bytes", "streams", "wanted"),
    [
        (366, 30, math.inf, 1, 8.352),
        (366, 100, math.inf, 1, 9.506),
        (366, 30, math.inf, 10, 8.758),
        (183, 30, 250e6, 1, 9.237),
        (200, 30, 250e6, 1, 9.158),
        (366, 30, 250e6, 1, 4.622),
        (11.8, 30, 3e6, 1, 2.029),
        (91.6, 30, 3e6, 1, 0.257),
    ],
)
def test_longer_observation_more_streams_and_smaller_windows(
    rtt_ms: float, observed_s: float, window_bytes: float, streams: int, wanted: float
) -> None:
    rate_bps = dedicated_bps(rtt_ms, LINE_BPS, observed_s, window_bytes, streams)
    assert float(rate_bps) / 1e9 == pytest.approx(wanted, abs=6e-4)


def test_the_transition_is_where_the_window_fills_the_line() -> None:
    assert transition_rtt_ms(LINE_BPS, 250e6) == pytest.approx(200)
    assert transition_rtt_ms(LINE_BPS, 3e6) == pytest.approx(2.4)
    assert transition_rtt_ms(LINE_BPS, 25e6, streams=10) == pytest.approx(200)


@given(
    rtt_ms=st.floats(1, 400),
    observed_s=st.floats(0.5, 100),
    window_bytes=st.sampled_from([1e5, 3e6, 2.5e8, math.inf]),
)
def test_the_stated_curvature_is_the_curve_s_own(
    rtt_ms: float, observed_s: float, window_bytes: float
) -> None:
    step_ms = 0.02 * rtt_ms
    near_ms = np.linspace(rtt_ms - step_ms, rtt_ms + step_ms, 9)
    stated = curvature(near_ms, LINE_BPS, observed_s, window_bytes)
    # 2 % of the round-trip time change it by 6 %; more is a knee within the step.
    if len(set(np.sign(stated))) > 1 or np.ptp(stated) > 0.3 * abs(stated[4]):
        return
    rates = dedicated_bps(near_ms[[0, 4, 8]], LINE_BPS, observed_s, window_bytes)
    seen = (rates[0] - 2 * rates[1] + rates[2]) / step_ms**2
    assert seen == pytest.approx(stated[4], rel=0.05, abs=1e-9 * LINE_BPS)


def test_concave_up_to_the_transition_and_convex_beyond() -> None:
    bends = curvature([50, 199, 201, 366], LINE_BPS, 30, 250e6)
    assert np.sign(bends).tolist() == [-1, -1, 1, 1]
    # A ramp that outlasts the observation is convex again, without any window.
    assert float(curvature(366, LINE_BPS, 3)) > 0 > float(curvature(100, LINE_BPS, 3))


@given(
    rtt_ms=st.floats(0, 1000),
    observed_s=st.floats(1e-3, 1e4),
    window_bytes=st.floats(1e3, 1e10),
    streams=st.integers(1, 64),
)
def test_the_ramp_only_takes_away(
    rtt_ms: float, observed_s: float, window_bytes: float, streams: int
) -> None:
    bound = float(window_bound_bps(rtt_ms, LINE_BPS, window_bytes, streams))
    shown = float(dedicated_bps(rtt_ms, LINE_BPS, observed_s, window_bytes, streams))
    endless = float(dedicated_bps(rtt_ms, LINE_BPS, math.inf, window_bytes, streams))
    assert 0 < shown <= bound * (1 + 1e-9)
    assert endless == pytest.approx(bound)
    assert float(dedicated_bps(rtt_ms, LINE_BPS, 2 * observed_s, window_bytes, streams)) >= (
        shown * (1 - 1e-9)
    )


def test_a_ramp_that_does_not_end_carries_what_doubling_carries() -> None:
    first_bytes, rtt_s, observed_s = 14_480, 0.1, 0.5
    # Five doublings; the integral of first/rtt · 2^(t/rtt).
    carried_bytes = first_bytes * (2**5 - 1) / math.log(2)
    assert float(dedicated_bps(1000 * rtt_s, LINE_BPS, observed_s)) == pytest.approx(
        8 * carried_bytes / observed_s
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((-1, 1e9, 10), "rtt_ms: -1 is out of range"),
        ((1, 0, 10), "capacity_bps: 0 is out of range"),
        ((1, 1e9, 0), "observed_s: 0 is out of range"),
        ((1, 1e9, 10, -5), "window_bytes: -5 is out of range"),
        ((1, 1e9, 10, 1e6, 0), "streams: 0 is out of range"),
    ],
)
def test_what_no_line_can_be_is_refused(arguments: tuple[float, ...], line: str) -> None:
    with pytest.raises(SpecError, match=line):
        dedicated_bps(*arguments)
