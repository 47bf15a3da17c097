"""UDT streams between farline and libudt on loopback: what arrives is what was sent."""

from __future__ import annotations

import pytest

from _udt.peers import exchange, free_ports, rendezvous
from tests.interop.conditions import MakeEnd, assert_whole, assert_whole_both_ways, either_way

# A send per byte is a packet per byte in libudt.
BYTES_OF_BLOCK = {
    1: 2_001,
    1455: 1_000_003,
    1456: 1_000_003,
    65_536: 12_000_007,
    10_000_000: 12_000_007,
}


@either_way
@pytest.mark.parametrize("block", BYTES_OF_BLOCK)
def test_a_stream_arrives_whole(end: MakeEnd, sender: str, receiver: str, block: int) -> None:
    count = BYTES_OF_BLOCK[block]
    assert_whole(*exchange(end(receiver), end(sender), "--bytes", count, "--block", block))


@either_way
@pytest.mark.parametrize("connections", [1, 3])
def test_both_directions_of_a_connection_carry_data(
    end: MakeEnd, sender: str, receiver: str, connections: int
) -> None:
    words = ["--bytes", 1_000_001, "--connections", connections, "--receive-back"]
    assert_whole_both_ways(*exchange(end(receiver), end(sender), *words))


@either_way
def test_connections_share_one_local_port(end: MakeEnd, sender: str, receiver: str) -> None:
    [port] = free_ports(1)
    words = ["--bytes", 500_001, "--connections", 4, "--receive-back"]
    server, client = exchange(
        end(receiver), end(sender), *words, client_words=["--local-port", port]
    )
    assert_whole_both_ways(server, client)
    assert len(set(client.hashes("sent_hash"))) == 4, "each connection has data of its own"


@either_way
def test_a_rendezvous_has_neither_caller_nor_listener(
    end: MakeEnd, sender: str, receiver: str
) -> None:
    words = ["--bytes", 200_001, "--receive-back"]
    assert_whole_both_ways(*rendezvous(end(sender), end(receiver), *words))


@either_way
@pytest.mark.parametrize(
    ("of_sender", "of_receiver"), [(1472, 8972), (8972, 1472), (1000, 1472), (8972, 8972)]
)
def test_the_smaller_packet_size_holds_for_both(
    end: MakeEnd, sender: str, receiver: str, of_sender: int, of_receiver: int
) -> None:
    count = 2_000_001
    server, client = exchange(
        end(receiver),
        end(sender),
        *("--bytes", count),
        client_words=["--packet", of_sender],
        server_words=["--packet", of_receiver],
    )
    assert_whole(server, client)
    fewest = count / (min(of_sender, of_receiver) - 16)
    assert fewest <= client.statistic("pktSent") - client.statistic("pktRetrans") <= 1.2 * fewest


@either_way
def test_small_buffers_and_windows_are_only_slower(
    end: MakeEnd, sender: str, receiver: str
) -> None:
    buffers = ["--send-buffer", 100_000, "--receive-buffer", 70_000, "--flow-window", 40]
    words = ["--bytes", 500_001, "--block", 65_536, *buffers]
    assert_whole(*exchange(end(receiver), end(sender), *words))
