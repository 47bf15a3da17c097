"""Forged packets neither end, nor stall, nor spoil, nor grow a connection of farline's."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack

import pytest

from _udt.peers import Said, last_words, listening_port, running
from tests.interop.conditions import MakeEnd, assert_whole, either_way
from tests.interop.forger import (
    Attack,
    Forger,
    Seen,
    absurd,
    from_elsewhere,
    handshakes,
    noise,
    watch,
    wrong_identifier,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it forges packets")

SECONDS = 1.5
ROOM_KB = 40_000
ROUNDS_PER_S = 100


def transfer(end: MakeEnd, ways: tuple[str, str], attacks: list[Attack]) -> tuple[Said, Said]:
    """What receiver and sender say of data that flowed while the attacks went on."""
    sender, receiver = ways
    buffers = ["--send-buffer", 8_000_000, "--receive-buffer", 8_000_000]
    words = ["--bytes", 0, "--seconds", SECONDS, *buffers]
    with ExitStack() as stack:
        server = stack.enter_context(running(end(receiver).run("srv", *words)))
        port = listening_port(server)
        client = stack.enter_context(running(end(sender).run("cli", "--port", port, *words)))
        seen = watch(port)
        forger = stack.enter_context(Forger())
        end_s = time.monotonic() + 20 * SECONDS
        while client.poll() is None and time.monotonic() < end_s:
            for attack in attacks:
                attack(forger, seen)
            time.sleep(1 / ROUNDS_PER_S)
        assert forger.sent > 100
        said = last_words(client, 60)
        return last_words(server, 60), said


@pytest.mark.alone
@either_way
def test_packets_of_strangers_are_nothing_to_a_connection(
    end: MakeEnd, sender: str, receiver: str
) -> None:
    server, client = transfer(
        end, (sender, receiver), [from_elsewhere, wrong_identifier, noise, handshakes]
    )
    assert_whole(server, client)
    assert client.document["seconds"] < SECONDS + 5


@pytest.mark.alone
def test_absurd_packets_of_somebody_on_the_path_are_refused(end: MakeEnd) -> None:
    """He knows addresses and identifiers; what he says cannot be true."""
    ways = ("farline", "farline")
    quiet_server, quiet_client = transfer(end, ways, [quiet])
    server, client = transfer(end, ways, [absurd])
    assert_whole(server, client)
    assert client.document["seconds"] < SECONDS + 5
    assert server.rss_kb < quiet_server.rss_kb + ROOM_KB
    assert client.rss_kb < quiet_client.rss_kb + ROOM_KB


def quiet(forger: Forger, seen: Seen) -> None:
    """Something that nobody listens to, to compare with."""
    forger.send(seen.client.port, 9, b"")
