"""How many streams a path needs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.models.stream_need import MOST_STREAMS, starting_streams, stream_need

MIB = 1 << 20


def test_loopback_needs_one() -> None:
    need = stream_need(0.0, 4 * MIB, 6 * MIB)
    assert need.streams == 1
    assert need.reason == "1 stream: RTT 0 ms, more would not be faster"


def test_a_long_path_with_small_buffers_needs_many() -> None:
    need = stream_need(0.1, 4 * MIB, 32 * MIB, 5e9)
    # 2 MiB in 100 ms are 168 Mbit/s.
    assert need.streams == math.ceil(5e9 / (2 * MIB * 8 / 0.1)) == 30
    assert "30 streams: RTT 100 ms, 0.168 Gbit/s each with 2 MiB in flight" in need.reason


@pytest.mark.parametrize(
    ("rate", "cores", "streams"), [(None, 2, 2), (1e9, 64, 1), (100e9, 8, 8), (100e9, 64, 13)]
)
def test_one_core_is_not_left_to_do_it_all(rate: float | None, cores: int, streams: int) -> None:
    need = stream_need(0.0, 4 * MIB, 6 * MIB, rate, cores)
    assert need.streams == streams
    assert ("leave the others idle" in need.reason) == (streams > 1)


def test_large_buffers_need_few() -> None:
    assert stream_need(0.01, 256 * MIB, 256 * MIB, 10e9).streams == 1


@pytest.mark.parametrize(("rtt_s", "streams"), [(0.019, 1), (0.02, 8), (0.1, 8)])
def test_on_a_long_path_several_get_up_to_speed_sooner(rtt_s: float, streams: int) -> None:
    need = stream_need(rtt_s, 512 * MIB, 512 * MIB, 5e9, 2)
    assert need.streams == streams == starting_streams(rtt_s)
    assert ("take long to reach its rate" in need.reason) == (streams > 1)


@pytest.mark.parametrize(("rate", "cores", "streams"), [(10e9, 2, 2), (10e9, 1, 1), (5e9, 2, 8)])
def test_where_the_cores_are_the_limit_no_two_streams_share_one(
    rate: float, cores: int, streams: int
) -> None:
    assert stream_need(0.1, 512 * MIB, 512 * MIB, rate, cores).streams == streams


def test_many_small_files_begin_with_more() -> None:
    few, many = (stream_need(0.1, 512 * MIB, 512 * MIB, 10e9, 4, small) for small in (False, True))
    assert (few.streams, many.streams) == (8, 64)
    assert stream_need(0.1, 512 * MIB, 512 * MIB, 10e9, 2, True).streams == 64
    assert starting_streams(0.001, small_files=True) == 1


def test_where_no_number_is_enough_it_says_so() -> None:
    need = stream_need(0.5, 4 * MIB, 4 * MIB, 100e9)
    assert (need.streams, need.reason[:10]) == (MOST_STREAMS, "at most 64")


@given(
    st.floats(0, 2), st.integers(4096, 1 << 30), st.integers(4096, 1 << 30),
    st.floats(1e3, 1e12), st.integers(1, 16),
)  # fmt: skip
def test_it_stays_between_its_bounds_and_carries_the_rate_if_it_can(
    rtt_s: float, send: int, receive: int, rate: float, cores: int
) -> None:
    need = stream_need(rtt_s, send, receive, rate, cores)
    assert 1 <= need.streams <= MOST_STREAMS
    if need.streams < MOST_STREAMS:
        assert need.streams * need.window_bytes * 8 >= rate * rtt_s * (1 - 1e-9)


@pytest.mark.parametrize("rtt_s", [0.001, 0.01, 0.1])
def test_more_distance_never_needs_fewer(rtt_s: float) -> None:
    near, far = (stream_need(rtt, 4 * MIB, 6 * MIB).streams for rtt in (rtt_s, 2 * rtt_s))
    assert near <= far
