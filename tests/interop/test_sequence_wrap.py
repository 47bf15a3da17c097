"""Sequence numbers that wrap while data flow: farline calls, and so chooses the first for both."""

from __future__ import annotations

import pytest

from _udt.peers import exchange
from farline.testbeds import Testbed
from tests.interop.conditions import MakeEnd, assert_whole_both_ways
from tests.interop.conftest import Programs
from tests.interop.hostile import end_in

LARGEST = 2**31 - 1


@pytest.mark.parametrize("receiver", ["libudt", "farline"])
@pytest.mark.parametrize("before", [0, 1, 500])
def test_numbers_begin_again_from_zero(end: MakeEnd, receiver: str, before: int) -> None:
    words = ["--bytes", 2_000_001, "--receive-back"]
    own = ["--initial-sequence", LARGEST - before]
    assert_whole_both_ways(*exchange(end(receiver), end("farline"), *words, client_words=own))


@pytest.mark.parametrize("receiver", ["libudt", "farline"])
def test_they_do_where_packets_are_lost_too(
    bed: Testbed, programs: Programs, receiver: str
) -> None:
    """Lost ones are on both sides of the wrap, and reports of them span it."""
    bed.change(loss=0.05, reorder=0.02, duplicate=0.02)
    server = end_in(bed.hosts["server"], programs[receiver])
    client = end_in(bed.hosts["client"], programs["farline"])
    words = ["--bytes", 500_001, "--receive-back"]
    own = ["--initial-sequence", LARGEST - 100]
    assert_whole_both_ways(*exchange(server, client, *words, client_words=own))
