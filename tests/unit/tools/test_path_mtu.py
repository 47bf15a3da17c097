"""Which sizes are tried, and sums that a host accepts."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from farline.tools.path_mtu import _checksum, spread_sizes


@given(st.integers(576, 9000), st.integers(576, 9000))
def test_sizes_hold_both_ends_and_are_few(low: int, high: int) -> None:
    sizes = spread_sizes(low, high)
    assert sizes == sorted(set(sizes)) and len(sizes) <= 24
    assert sizes[0] == low and sizes[-1] == max(low, high)


@given(st.binary(min_size=8, max_size=64).filter(lambda data: len(data) % 2 == 0))
def test_a_packet_with_its_sum_in_it_sums_to_zero(data: bytes) -> None:
    packet = data[:2] + b"\0\0" + data[4:]
    whole = packet[:2] + struct.pack("!H", _checksum(packet)) + packet[4:]
    assert _checksum(whole) == 0
