"""Connections that cannot be, or end before their time: each end says so, and says when."""

from __future__ import annotations

import signal
import socket
import time
from contextlib import ExitStack

import pytest

from _udt.peers import free_ports, last_words, listening_port, running
from tests.interop.conditions import MakeEnd, either_way

NO_ANSWER, REFUSED, BROKEN = 1001, 1002, 2001


@either_way
@pytest.mark.parametrize("kind", ["stream", "message"])
def test_another_kind_of_socket_is_refused(
    end: MakeEnd, sender: str, receiver: str, kind: str
) -> None:
    other = "message" if kind == "stream" else "stream"
    with ExitStack() as stack:
        server = stack.enter_context(running(end(receiver).run("srv", "--mode", other)))
        to = ["--port", listening_port(server), "--mode", kind, "--bytes", 1000]
        client = stack.enter_context(running(end(sender).run("cli", *to)))
        said = last_words(client, 20)
    assert (said.error_code, said.exit_code) == (REFUSED, 1)
    assert said.document["seconds"] < 10


def test_a_caller_gives_up_after_three_seconds_of_silence(end: MakeEnd) -> None:
    """Somebody has the port, and does not answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        to = ["--port", mute.getsockname()[1], "--bytes", 1000]
        with running(end("farline").run("cli", *to)) as client:
            said = last_words(client, 20)
    assert said.error_code == NO_ANSWER
    assert 2.9 < said.document["seconds"] < 15


def test_a_port_that_nobody_has_is_no_server(end: MakeEnd) -> None:
    """The kernel says so at once, or nobody does for three seconds."""
    [port] = free_ports(1)
    with running(end("farline").run("cli", "--port", port, "--bytes", 1000)) as client:
        said = last_words(client, 20)
    assert (said.error_code, said.exit_code) == (NO_ANSWER, 1)
    assert said.document["seconds"] < 15


@pytest.mark.parametrize("is_sending", [True, False])
def test_a_killed_libudt_is_noticed(end: MakeEnd, is_sending: bool) -> None:
    """Nothing tells of a process that was killed, but that it says nothing any more."""
    roles = ("libudt", "farline") if is_sending else ("farline", "libudt")
    words = ["--bytes", 10_000_000_000, "--seconds", 100, "--linger", 1]
    with ExitStack() as stack:
        server = stack.enter_context(running(end(roles[0]).run("srv", *words)))
        to = ["--port", listening_port(server)]
        client = stack.enter_context(running(end(roles[1]).run("cli", *to, *words)))
        time.sleep(1.0)
        killed, survivor = (server, client) if is_sending else (client, server)
        killed.kill()
        begun_s = time.monotonic()
        said = last_words(survivor, 60)
    assert said.error_code == BROKEN
    assert time.monotonic() - begun_s < 60


def test_a_receiver_that_stands_still_stops_the_sender(end: MakeEnd) -> None:
    """Flow control holds while libudt's process is stopped, costs no memory, and goes on after."""
    words = ["--bytes", 300_000_000, "--send-buffer", 8_000_000, "--receive-buffer", 8_000_000]
    with ExitStack() as stack:
        server = stack.enter_context(running(end("libudt").run("srv", *words)))
        to = ["--port", listening_port(server)]
        client = stack.enter_context(running(end("farline").run("cli", *to, *words)))
        time.sleep(0.2)
        server.send_signal(signal.SIGSTOP)
        time.sleep(2.0)
        assert client.poll() is None
        server.send_signal(signal.SIGCONT)
        sent, received = last_words(client, 60), last_words(server, 60)
    assert (sent.error_code, received.error_code) == (0, 0)
    assert received.hashes("received_hash") == sent.hashes("sent_hash")
    assert sent.rss_kb < 100_000
