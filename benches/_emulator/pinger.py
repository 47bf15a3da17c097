"""ICMP echo from a raw socket: from user space's send to the kernel's receive timestamp.

Runs inside a host: `python pinger.py ADDRESS --count 300 --interval-ms 10`. Prints one JSON object:
`sent`, and `rtt_ns`, a list in the order in which replies came. IPv4 alone.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator

# asm-generic/socket.h; Python's socket module has no name for it.
SO_TIMESTAMPNS = 35
ECHO_REQUEST, ECHO_REPLY = 8, 0
HEADER = struct.Struct("!BBHHH")
PADDING = bytes(48)
REPLY_ROOM = 512


def checksum(data: bytes) -> int:
    """Internet checksum (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def request(identifier: int, number: int) -> bytes:
    """An echo request (RFC 792)."""
    blank = HEADER.pack(ECHO_REQUEST, 0, 0, identifier, number) + PADDING
    return HEADER.pack(ECHO_REQUEST, 0, checksum(blank), identifier, number) + PADDING


def reply_number(packet: bytes, identifier: int) -> int | None:
    """Number of the echo reply in an IPv4 packet; none if it is something else or another's."""
    start = (packet[0] & 15) * 4
    kind, _code, _sum, owner, number = HEADER.unpack_from(packet, start)
    return int(number) if kind == ECHO_REPLY and owner == identifier else None


def received_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    """The kernel's receive timestamp, in nanoseconds of the real-time clock."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("qq", data[:16])
            return int(seconds * 1_000_000_000 + nanoseconds)
    raise RuntimeError("the kernel gave no receive timestamp")


def replies(raw: socket.socket, identifier: int, until: float) -> Iterator[tuple[int, int]]:
    """(number, timestamp) of what comes until a moment of the monotonic clock."""
    while (left := until - time.monotonic()) > 0:
        raw.settimeout(left)
        try:
            packet, ancillary, _flags, _peer = raw.recvmsg(REPLY_ROOM, REPLY_ROOM)
        except TimeoutError:
            return
        number = reply_number(packet, identifier)
        if number is not None:
            yield number, received_ns(ancillary)


def ping(address: str, count: int, interval_s: float, wait_s: float) -> list[int]:
    """Round trips in nanoseconds, of those that came back."""
    identifier = os.getpid() & 0xFFFF
    sent_ns: dict[int, int] = {}
    round_trips: list[int] = []
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        start = time.monotonic()
        for number in range(count):
            packet = request(identifier, number)
            sent_ns[number] = time.time_ns()
            raw.sendto(packet, (address, 0))
            pause = wait_s if number == count - 1 else 0.0
            until = start + (number + 1) * interval_s + pause
            for seen, at_ns in replies(raw, identifier, until):
                round_trips.append(at_ns - sent_ns.pop(seen))
                if not sent_ns and pause:
                    return round_trips
    return round_trips


def main() -> int:
    """Pings, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--interval-ms", type=float, default=10.0)
    parser.add_argument("--wait-ms", type=float, default=1500.0)
    options = parser.parse_args()
    if not 1 <= options.count <= 65_536:
        parser.error(f"--count {options.count}: allowed are 1 to 65536")
    found = ping(options.address, options.count, options.interval_ms / 1000, options.wait_ms / 1000)
    print(json.dumps({"sent": options.count, "rtt_ns": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
