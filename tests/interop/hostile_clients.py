"""Clients that no server wants: noise, lies and silence, against the server at an address.

    python tests/interop/hostile_clients.py HOST PORT

Prints how many came and how many the server kept for longer than it may; ends with 1 if it kept
any.
"""

from __future__ import annotations

import json
import random
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

CONNECT_S = 30.0
KEPT_S = 12.0
"""Longest that a client may be heard which says nothing that makes sense."""
FLOOD = 1200
"""Silent connections at once."""

Client = Callable[[tuple[str, int]], None]


class Kept(Exception):
    """The server listens for longer than it may."""


def connected(address: tuple[str, int]) -> socket.socket:
    """A connection; a host that is slow to take it keeps nobody."""
    one = socket.create_connection(address, CONNECT_S)
    one.settimeout(KEPT_S)
    return one


def to_the_end(one: socket.socket) -> None:
    """Reads until the server has closed; a reset is an end too."""
    try:
        while one.recv(65_536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        raise Kept from None


def raw(words: bytes, *, closes: bool = True) -> Client:
    """One that says `words` without TLS."""

    def come(address: tuple[str, int]) -> None:
        with connected(address) as one:
            one.sendall(words)
            if closes:
                one.shutdown(socket.SHUT_WR)
            to_the_end(one)

    return come


def secure(*frames: bytes, protocol: str = "farline") -> Client:
    """One that says `frames` over TLS, after what the server says first."""

    def come(address: tuple[str, int]) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols([protocol])
        with connected(address) as plain:
            try:
                with context.wrap_socket(plain) as one:
                    for frame in frames:
                        one.sendall(frame)
                    to_the_end(one)
            except ssl.SSLError:
                pass

    return come


def slow(address: tuple[str, int]) -> None:
    """One byte at a time, for ever."""
    began = time.monotonic()
    with connected(address) as one:
        try:
            while True:
                one.sendall(b"\x16")
                time.sleep(0.05)
                if time.monotonic() - began > KEPT_S:
                    raise Kept
        except ConnectionError:
            return


def gone(address: tuple[str, int]) -> None:
    """Connects and resets."""
    with connected(address) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def frame(message: object) -> bytes:
    """As the wire has it: four bytes of length, then JSON."""
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    return len(text).to_bytes(4, "big") + text


def greeting(**content: object) -> bytes:
    """A HANDSHAKE."""
    return frame({"HANDSHAKE": {"version": 1, "task": {"profile": {}}, **content}})


def clients() -> Iterator[Client]:
    """Every kind of them."""
    draw = random.Random(32)
    yield from (raw(words) for words in (
        b"", b"\0", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\3\1\xff\xff", b"\x16\3\1\0\5\1\0\0\1\0", b"EHLO x\r\n", draw.randbytes(5000),
        b"\xff" * 70_000, b"\x80\x2e\1\3\1\0\x15\0\0\0\x10", b"A" * 58,
    ))  # fmt: skip
    yield from (raw(words, closes=False) for words in (b"", b"\x16\3\1", b"A" * 57))
    yield from (slow, gone)
    yield from (secure(protocol=name) for name in ("h2", "http/1.1"))
    yield from (secure(words) for words in (
        b"\xff\xff\xff\xff", b"\0\x10\0\1", b"\0\0\0\0", b"\0\0\0\5{", frame(b"{"),
        frame(b"\xff\xfe"), frame("PROFILING_START"), frame({"HELLO": 1}), frame([]),
        frame(b"[" * 100_000), frame(b'{"HANDSHAKE":' * 5000),
        frame({"ERROR": {"kind": "x", "message": "\x1b[2J"}}),
        frame({"ERROR": {"kind": "interrupted", "message": "m" * 900_000}}),
    ))  # fmt: skip
    odd: tuple[dict[str, object], ...] = (
        {}, {"version": 0}, {"version": 4_000_000_000}, {"version": -1}, {"ticket": "v1.e30.AAAA"},
        {"ticket": "v1." + "A" * 200_000 + ".A"}, {"ticket": "../../etc/passwd"}, {"ticket": "\0"},
        {"task": {"profile": {"streams": 1_000_000}}}, {"task": {"profile": {"total_bytes": -1}}},
        {"task": {"names": {}}}, {"task": None}, {"keeps": True, "task": {"profile": {}}},
    )  # fmt: skip
    yield from (secure(greeting(**content)) for content in odd)
    yield secure(greeting(), frame("CREATE_STREAMS"), frame("PROFILING_START"), frame("TPG_DONE"))


def flood(address: tuple[str, int]) -> list[socket.socket]:
    """Connections that say nothing, which the caller closes."""
    opened = []
    for _ in range(FLOOD):
        try:
            opened.append(connected(address))
        except OSError:
            break
    return opened


def main(host: str, port: str) -> int:
    """Lets all of them come, five times each, while a flood of silent ones waits."""
    address = host, int(port)
    silent = flood(address)
    everyone = [one for one in clients() for _ in range(5)]
    kept = 0
    with ThreadPoolExecutor(24) as pool:
        for coming in [pool.submit(one, address) for one in everyone]:
            try:
                coming.result()
            except Kept:
                kept += 1
            except OSError:
                # A reset in the middle of a word.
                continue
    for one in silent:
        one.close()
    print(f"{len(everyone) + len(silent)} came, {kept} were kept")
    return kept > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
