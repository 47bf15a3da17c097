"""What the files of these tests share: the ways data go, and what "whole" means."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from _udt.peers import End, Said

MakeEnd = Callable[[str], End]

# Ends that send and receive. Ours with itself too: it does things that libudt does not.
WAYS = [("farline", "libudt"), ("libudt", "farline"), ("farline", "farline")]

either_way = pytest.mark.parametrize(
    ("sender", "receiver"), [pytest.param(*way, id="-to-".join(way)) for way in WAYS]
)


def assert_whole(receiver: Said, sender: Said) -> None:
    """Everything arrived, on every connection, and both ends ended well."""
    assert (sender.error_code, receiver.error_code) == (0, 0), (sender, receiver)
    assert receiver.total("received_bytes") == sender.total("sent_bytes") > 0
    assert receiver.hashes("received_hash") == sender.hashes("sent_hash")


def assert_whole_both_ways(server: Said, client: Said) -> None:
    """The same, and what was sent back arrived too."""
    assert_whole(server, client)
    assert_whole(client, server)
