"""The peers' harness itself, with libudt at both ends: what later tests rest on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from _udt.peers import End, exchange, rendezvous

MakeEnd = Callable[[str], End]


def test_two_ends_report_the_same_bytes_and_hash(end: MakeEnd) -> None:
    server, client = exchange(end("libudt"), end("libudt"), "--bytes", 1_000_003)
    assert (server.exit_code, client.exit_code) == (0, 0)
    assert server.total("received_bytes") == client.total("sent_bytes") == 1_000_003
    assert server.hashes("received_hash") == client.hashes("sent_hash")


def test_another_seed_gives_another_hash(end: MakeEnd) -> None:
    seeds = [["--seed", 1], ["--seed", 2], ["--seed", 1]]
    found = [
        exchange(end("libudt"), end("libudt"), "--bytes", 5000, client_words=seed)[0]
        for seed in seeds
    ]
    first, second, again = [server.hashes("received_hash") for server in found]
    assert first == again != second


def test_a_timed_run_gives_a_rate_and_its_cost(end: MakeEnd) -> None:
    words = ["--bytes", 0, "--seconds", 0.6, "--omit", 0.2, "--pattern", "constant", "--linger", 0]
    server, client = exchange(end("libudt"), end("libudt"), *words)
    assert 0.3 < server.connections[0]["steady_s"] < 0.9
    assert 1e7 < server.steady_bps < 1e11
    assert server.cpu_s > 0 and client.cpu_s > 0
    assert client.statistic("pktSent") > 100


def test_a_connection_that_was_cut_short_is_an_error(end: MakeEnd) -> None:
    """The receiver is told how much is to come, so an early end is seen."""
    server, client = exchange(
        end("libudt"), end("libudt"), server_words=["--bytes", 2000], client_words=["--bytes", 1000]
    )
    assert client.error_code == 0
    assert (server.error_code, server.exit_code) == (2001, 1)


@pytest.mark.parametrize("both", [True, False])
def test_rendezvous_sends_from_the_smaller_port(end: MakeEnd, both: bool) -> None:
    more = ["--receive-back"] if both else []
    receiver, sender = rendezvous(end("libudt"), end("libudt"), "--bytes", 100_000, *more)
    assert receiver.hashes("received_hash") == sender.hashes("sent_hash")
    assert receiver.total("sent_bytes") == (100_000 if both else 0)
