"""The part of the matrix that takes minutes: collected with FARLINE_LONG=1 alone (see conftest)."""

from __future__ import annotations

from typing import Any

import pytest

from _udt.peers import exchange
from farline.testbeds import Testbed
from tests.interop.conditions import MakeEnd, assert_whole, assert_whole_both_ways, either_way
from tests.interop.conftest import Programs
from tests.interop.test_hostile import check
from tests.interop.test_paths import PATHS, ends

BYTES_OF_BLOCK = {
    1: 100_003,
    1455: 50_000_003,
    1456: 50_000_003,
    65_536: 1_000_000_007,
    10_000_000: 1_000_000_007,
}


@pytest.mark.timeout(1200)
@either_way
def test_every_byte_arrives_for_ten_minutes(programs: Programs, sender: str, receiver: str) -> None:
    check(programs, sender, receiver, seconds=600, period_s=10.0)


@pytest.mark.timeout(600)
@either_way
@pytest.mark.parametrize("packet", [1472, 8972])
@pytest.mark.parametrize("block", BYTES_OF_BLOCK)
def test_a_gigabyte_arrives_whole(
    end: MakeEnd, sender: str, receiver: str, packet: int, block: int
) -> None:
    words = ["--bytes", BYTES_OF_BLOCK[block], "--block", block, "--packet", packet]
    assert_whole(*exchange(end(receiver), end(sender), *words, "--seconds", 300, limit_s=300))


@pytest.mark.timeout(600)
@either_way
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("rtt_ms", [0, 20, 100])
def test_long_streams_arrive_over_every_path(
    bed: Testbed,
    programs: Programs,
    sender: str,
    receiver: str,
    path: dict[str, Any],
    rtt_ms: int,
) -> None:
    bed.change(**path, rtt_s=rtt_ms / 1000)
    words = ["--bytes", 10_000_001, "--connections", 2, "--receive-back", "--seconds", 400]
    server, client = exchange(*ends(bed, programs, sender, receiver), *words, limit_s=400)
    assert_whole_both_ways(server, client)
