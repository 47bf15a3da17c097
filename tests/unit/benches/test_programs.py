"""What runs inside hosts: packets made and read right, runs of numbers, what iperf3 says."""

from __future__ import annotations

import socket
import struct

import pytest

from _emulator import pinger
from _emulator.catcher import Facts, Numbers, Times


def test_the_checksum_is_that_of_rfc_1071() -> None:
    assert pinger.checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2
    assert pinger.checksum(b"\x01") == 0xFFFF - 0x0100


def test_a_request_sums_up_to_nothing_and_carries_its_number() -> None:
    packet = pinger.request(0x1234, 7)
    assert pinger.checksum(packet) == 0
    assert struct.unpack_from("!BBHHH", packet)[3:] == (0x1234, 7)


@pytest.mark.parametrize(("kind", "owner", "expected"), [(0, 9, 3), (8, 9, None), (0, 8, None)])
def test_only_replies_to_us_count(kind: int, owner: int, expected: int | None) -> None:
    ipv4 = bytes([0x46]) + bytes(23)
    assert pinger.reply_number(ipv4 + pinger.HEADER.pack(kind, 0, 0, owner, 3), 9) == expected


def test_the_kernel_s_timestamp_is_read_in_nanoseconds() -> None:
    stamp = (socket.SOL_SOCKET, pinger.SO_TIMESTAMPNS, struct.pack("qq", 2, 5))
    assert pinger.received_ns([stamp]) == 2_000_000_005
    with pytest.raises(RuntimeError, match="no receive timestamp"):
        pinger.received_ns([])


def batch(*numbers: int, segment: int = 100, last: int = 100) -> tuple[bytearray, int]:
    """A batch of numbered datagrams, the last perhaps shorter."""
    data = bytearray(segment * len(numbers))
    for index, number in enumerate(numbers):
        struct.pack_into("<q", data, index * segment, number)
    return data, segment * (len(numbers) - 1) + last


def test_numbers_that_go_on_are_one_run_across_batches() -> None:
    numbers = Numbers()
    for data, size in (batch(0, 1, 2), batch(3, 4), batch(7, 8, 10, last=8), batch(9)):
        numbers.keep(data, size, 100, 0)
    found = numbers.arrays()
    assert found["first"].tolist() == [0, 7, 10, 9]
    assert found["length"].tolist() == [5, 2, 1, 1]


def test_times_count_the_datagrams_of_a_batch() -> None:
    times = Times()
    times.keep(bytearray(1), 2 * 1472 + 10, 1472, 77)
    assert {name: values.tolist() for name, values in times.arrays().items()} == {
        "at_ns": [77],
        "payload_bytes": [2954],
        "datagrams": [3],
    }


def test_a_datagram_alone_is_as_large_as_it_came() -> None:
    facts = Facts()
    facts.read(500, [])
    assert facts.segment == 500
    facts.read(4416, [(socket.IPPROTO_UDP, 104, struct.pack("i", 1472))])
    assert facts.segment == 1472
