"""UDT messages between farline and libudt on loopback: bounds, order, time to live."""

from __future__ import annotations

import pytest

from _udt.peers import exchange
from tests.interop.conditions import MakeEnd, assert_whole, either_way


@either_way
@pytest.mark.parametrize("block", [1, 1456, 1457, 65_536, 1_000_000])
def test_messages_keep_their_bounds(end: MakeEnd, sender: str, receiver: str, block: int) -> None:
    count = block * 5 + block // 2
    words = ["--mode", "message", "--bytes", count, "--block", block, "--list", "--in-order"]
    server, client = exchange(end(receiver), end(sender), *words)
    assert_whole(server, client)
    arrived, sent = (said.connections[0]["message_hashes"] for said in (server, client))
    assert arrived == sent
    assert len(arrived) == -(-count // block)


@either_way
def test_messages_go_both_ways(end: MakeEnd, sender: str, receiver: str) -> None:
    words = ["--mode", "message", "--bytes", 1_000_000, "--block", 5000, "--receive-back"]
    server, client = exchange(end(receiver), end(sender), *words)
    assert_whole(server, client)
    assert_whole(client, server)
    assert server.total("messages_received") == client.total("messages_received") == 200
