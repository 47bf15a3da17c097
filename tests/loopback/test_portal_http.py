"""HTTP/1.1 at the service's port, as hostile and clumsy clients send it."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import uvicorn

from farline.portal import http_protocol
from farline.portal.http_protocol import MOST_FIELDS, MOST_HEAD, MOST_RECEIVED, MOST_WAITING
from farline.portal.server import config_of
from farline.portal.start import Address, listening

HOST = b"Host: h\r\n"
GET, POST = b"GET /a HTTP/1.1\r\n" + HOST, b"POST /a HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\n" + HOST + b"\r\n"
SOON_S = 0.3

REFUSED = {
    "no host": b"GET /a HTTP/1.1\r\n\r\n",
    "two hosts": GET + b"Host: other\r\n\r\n",
    "length and chunks": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a length twice": POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "a list of lengths": POST + b"Content-Length: 5, 5\r\n\r\nhello",
    "a length with a sign": POST + b"Content-Length: +5\r\n\r\nhello",
    "a length below zero": POST + b"Content-Length: -5\r\n\r\nhello",
    "a length of 23 digits": POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "another coding": POST + b"Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
    "two codings": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks twice": CHUNKED[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "nearly chunked": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a blank before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded field": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "line feeds alone": GET.replace(b"\r\n", b"\n") + b"\n",
    "one line feed alone": GET + b"X: y\n\r\n",
    "a carriage return alone": GET + b"X: y\rz\r\n\r\n",
    "a zero byte": GET + b"X: y\0z\r\n\r\n",
    "chunks in HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n",
    "a chunk that is no number": CHUNKED + b"zz\r\n",
    "a chunk below zero": CHUNKED + b"-1\r\n",
    "a chunk of 17 digits": CHUNKED + b"f" * 17 + b"\r\n",
    "a chunk without an end": CHUNKED + b"1\r\nab\r\n0\r\n\r\n",
    "another host's address": b"GET http://h/a HTTP/1.1\r\n" + HOST + b"\r\n",
    "no path": b"GET a HTTP/1.1\r\n" + HOST + b"\r\n",
    "a fragment": b"GET /a#b HTTP/1.1\r\n" + HOST + b"\r\n",
    "a target beyond ASCII": b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    "a tunnel": b"CONNECT h:80 HTTP/1.1\r\n" + HOST + b"\r\n",
    "an upgrade with a body": POST + UPGRADE + b"Content-Length: 9\r\n\r\n",
    "an upgrade with chunks": CHUNKED[:-2] + UPGRADE + b"\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100,
}  # fmt: skip

ENDLESS = {
    "a value": (GET + b"X: ", b"a" * 65_536, b"431"),
    "a name": (GET, b"a" * 65_536, b"431"),
    "fields": (GET, b"X: y\r\n" * 10_000, b"431"),
    "a target": (b"GET /", b"a" * 65_536, b"431"),
    "empty lines": (b"", b"\r\n" * 30_000, b"431"),
    "a chunk's words": (CHUNKED + b"1;", b"a" * 65_536, b"413"),
    "trailers": (CHUNKED + b"0\r\n", b"X: y\r\n" * 10_000, b"431"),
    "chunks of a byte": (CHUNKED, b"1\r\na\r\n" * 10_000, b"413"),
}


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers with what was asked; `/early` before the body has come, `/slow` after a while."""
    if scope["type"] != "http":
        await lifespan(receive, send)
        return
    body, more = b"", scope["path"] != "/early"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message.get("body", b""), message.get("more_body", False)
    names = [name.decode() for name, _ in scope["headers"]]
    text = json.dumps({"path": scope["path"], "body": body.decode(), "names": names}).encode()
    fields = [(b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": text})


async def lifespan(receive: Any, send: Any) -> None:
    """Begins and ends."""
    for word in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{word}.complete"})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server as the service has it, but for what it serves."""
    with listening(Address(port=0)) as listener:
        server = uvicorn.Server(config_of(app, listener))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield int(listener.getsockname()[1])
        server.should_exit = True
        thread.join()


def talk(port: int, *parts: bytes) -> tuple[list[bytes], bytes, bool]:
    """What comes back: the statuses, everything, and whether the connection was closed soon."""
    got, closed = b"", True
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(SOON_S)
        try:
            for part in parts:
                client.sendall(part)
            while some := client.recv(65_536):
                got += some
        except TimeoutError:
            closed = False
        except ConnectionError:
            pass
    return re.findall(rb"HTTP/1.1 (\d+)", got), got, closed


@pytest.mark.parametrize("name", REFUSED)
def test_what_two_readers_may_see_differently_is_refused(port: int, name: str) -> None:
    statuses, got, closed = talk(port, REFUSED[name], HIDDEN)
    assert closed and b"/hidden" not in got
    assert statuses in ([b"400"], []), "an end in the middle of sending may take the answer along"


@pytest.mark.parametrize("version", [b"0.9", b"2.0"])
def test_other_versions_are_refused(port: int, version: bytes) -> None:
    line = b"GET /a\r\n" if version == b"0.9" else b"GET /a HTTP/2.0\r\n"
    assert talk(port, line + HOST + b"\r\n")[::2] == ([b"505"], True)


def test_bodies_come_whole(port: int) -> None:
    for request in (
        POST + b"Content-Length: 5\r\n\r\nhello",
        CHUNKED + b"2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\n\r\n",
        POST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    ):
        statuses, got, closed = talk(port, *(request[at : at + 7] for at in range(0, 200, 7)))
        assert statuses[-1] == b"200" and b'"body": "hello"' in got and not closed


def test_fields_behind_a_body_are_no_fields_of_the_request(port: int) -> None:
    statuses, got, _ = talk(port, CHUNKED, b"1\r\na\r\n0\r\nX-Forwarded-For: me\r\n\r\n", HIDDEN)
    assert statuses == [b"200", b"200"] and b"forwarded" not in got


def test_an_upgrade_is_answered_as_if_none_was_asked_for_and_nothing_behind_it(port: int) -> None:
    upgrade = GET + UPGRADE + b"\r\n"
    for parts in ([upgrade + HIDDEN], [upgrade, HIDDEN]):
        statuses, got, closed = talk(port, *parts)
        assert statuses == [b"200"] and closed and b"/hidden" not in got


def test_answers_come_in_the_order_of_their_requests(port: int) -> None:
    asked = b"".join(GET.replace(b"/a", b"/%d" % n) + b"\r\n" for n in range(MOST_WAITING))
    _, got, closed = talk(port, asked)
    assert re.findall(rb'"path": "/(\d)"', got) == [b"%d" % n for n in range(MOST_WAITING)]
    assert not closed


@pytest.mark.parametrize("bad", [b"Bad Field: x\r\n\r\n", b"Content-Length: x\r\n\r\n"])
def test_what_came_before_a_bad_request_is_answered_and_nothing_behind_it(
    port: int, bad: bytes
) -> None:
    statuses, got, closed = talk(port, GET + b"\r\n" + POST + bad + HIDDEN)
    assert statuses == [b"200"] and closed and b"/hidden" not in got
    statuses, got, closed = talk(port, GET + b"\r\n" + CHUNKED + b"zz\r\n" + HIDDEN)
    assert statuses == [b"200"] and closed and b"/hidden" not in got


def test_of_endless_requests_on_one_connection_few_are_answered(port: int) -> None:
    statuses, _, closed = talk(port, (GET + b"\r\n") * 2000)
    assert closed and len(statuses) <= MOST_WAITING + 1


@pytest.mark.parametrize("name", ENDLESS)
def test_what_does_not_end_is_not_read_to_its_end(port: int, name: str) -> None:
    first, more, status = ENDLESS[name]
    assert taken(port, first, more) < 16 << 20
    # The answer may be lost where more has come than was read: here nothing more comes.
    statuses, _, closed = talk(port, first + more[: 3 * MOST_HEAD])
    assert closed and statuses in ([status], [])


def taken(port: int, first: bytes, more: bytes) -> int:
    """Bytes that could be sent before the connection ended."""
    sent = 0
    with socket.create_connection(("127.0.0.1", port)) as client, suppress(ConnectionError):
        client.settimeout(20)
        client.sendall(first)
        while sent < 1 << 30:
            sent += client.send(more)
    return sent


def test_a_body_that_nobody_reads_ends_the_connection(port: int) -> None:
    early = POST.replace(b"/a", b"/early") + b"Content-Length: 1000000000\r\n\r\n"
    assert taken(port, early, b"a" * 65_536) < MOST_RECEIVED + (16 << 20)


@pytest.mark.parametrize(
    "head",
    [
        GET + b"X: %s\r\n\r\n" % (b"a" * MOST_HEAD),
        GET + b"X: y\r\n" * MOST_FIELDS + b"\r\n",
        b"GET /" + b"a" * MOST_HEAD + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
)
def test_a_long_head_is_refused_though_it_came_at_once(port: int, head: bytes) -> None:
    assert talk(port, head)[::2] == ([b"431"], True)


def test_a_long_head_within_the_limits_is_taken(port: int) -> None:
    head = GET + b"X: %s\r\n" % (b"a" * 300) * (MOST_FIELDS - 1) + b"\r\n"
    assert len(head) < MOST_HEAD and talk(port, head)[0] == [b"200"]


@pytest.mark.parametrize(
    ("request_", "statuses"),
    [
        (b"", []),
        (GET, [b"408"]),
        (POST + b"Content-Length: 50\r\n\r\n", [b"408"]),
        (GET + b"\r\n" + GET, [b"200", b"408"]),
    ],
)
def test_who_sends_slowly_is_cut_off(
    port: int, monkeypatch: pytest.MonkeyPatch, request_: bytes, statuses: list[bytes]
) -> None:
    monkeypatch.setattr(http_protocol, "REQUEST_S", 1.0)
    got, ends_s = b"", time.monotonic() + 20
    with socket.create_connection(("127.0.0.1", port)) as client, suppress(ConnectionError):
        client.sendall(request_)
        client.settimeout(0.1)
        while time.monotonic() < ends_s:
            with suppress(TimeoutError):
                some = client.recv(65_536)
                if not some:
                    break
                got += some
            if request_:
                client.sendall(b"X")
    assert time.monotonic() < ends_s and re.findall(rb"HTTP/1.1 (\d+)", got) == statuses
