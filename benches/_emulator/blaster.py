"""Datagrams at a stated pace, many to a call (UDP_SEGMENT), numbered on request.

Runs inside a host: `python blaster.py ADDRESS --datagrams-per-s N --count N`. With `--numbered`
the first eight bytes of every datagram are its number, from 0, little-endian. Prints one JSON
object: `sent` (datagrams), `seconds` (it took), `refused` (calls that the kernel refused for want
of room).
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import socket
import sys
import time
from dataclasses import dataclass

import numpy as np

# linux/udp.h and sys/prctl.h; Python has no names for them.
UDP_SEGMENT = 103
SO_SNDBUFFORCE = 32
PR_SET_TIMERSLACK = 29
SEND_BUFFER = 1 << 25
# Sleeping costs some tens of microseconds; a shorter wait is not worth one.
SHORTEST_SLEEP_S = 50e-6


@dataclass(frozen=True)
class Load:
    """What to send."""

    payload: int
    segments: int
    count: int
    per_s: float
    most_lag_s: float
    numbered: bool


@dataclass
class Sent:
    """What was sent."""

    datagrams: int = 0
    refused: int = 0


def open_socket(address: str, port: int, load: Load) -> socket.socket:
    """A connected socket that cuts what it is given into datagrams."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER)
    if load.segments > 1:
        udp.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, load.payload)
    udp.connect((address, port))
    return udp


class Pace:
    """When each datagram is due; what was missed beyond `most_lag_s` is not made up for.

    A sender that did not get the CPU for long would burst through any queue to make up for it.
    """

    def __init__(self, per_s: float, most_lag_s: float) -> None:
        """Starts now; a rate of 0 is none."""
        self.start, self.per_s, self.most_lag_s = time.monotonic(), per_s, most_lag_s

    def wait_for(self, number: int) -> None:
        """Returns when datagram `number` is due."""
        if not self.per_s:
            return
        while (left := self.start + number / self.per_s - time.monotonic()) > 0:
            if left > SHORTEST_SLEEP_S:
                time.sleep(left)
        if left < -self.most_lag_s:
            self.start -= left + self.most_lag_s


def send_call(udp: socket.socket, data: memoryview, sent: Sent, datagrams: int) -> None:
    """One call; what the kernel refuses is counted and not tried again."""
    try:
        udp.send(data)
        sent.datagrams += datagrams
    except OSError as refusal:
        if refusal.errno not in (errno.ENOBUFS, errno.EAGAIN):
            raise
        sent.refused += 1


def blast(udp: socket.socket, load: Load) -> Sent:
    """Sends the load; the last call carries what is left of the count."""
    buffer = memoryview(bytearray(load.payload * load.segments))
    numbers = np.ndarray((load.segments,), "<u8", buffer=buffer, strides=(load.payload,))
    steps = np.arange(load.segments, dtype=np.uint64)
    sent, pace = Sent(), Pace(load.per_s, load.most_lag_s)
    for number in range(0, load.count, load.segments):
        pace.wait_for(number)
        if load.numbered:
            np.add(steps, number, out=numbers)
        datagrams = min(load.segments, load.count - number)
        send_call(udp, buffer[: datagrams * load.payload], sent, datagrams)
    return sent


def parse() -> tuple[str, int, Load]:
    """Address, port and load from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--port", type=int, default=7077)
    parser.add_argument("--payload", type=int, default=1472)
    parser.add_argument("--segments", type=int, default=44, help="datagrams to a call")
    parser.add_argument("--datagrams-per-s", type=float, default=0.0, help="0: as fast as it goes")
    parser.add_argument("--most-lag-ms", type=float, default=5.0, help="made up for at most")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--numbered", action="store_true")
    options = parser.parse_args()
    if not 8 <= options.payload * options.segments <= 65_507 or options.payload < 8:
        parser.error("a call carries 8 to 65507 bytes, a datagram at least 8")
    load = Load(
        payload=options.payload,
        segments=options.segments,
        count=options.count,
        per_s=options.datagrams_per_s,
        most_lag_s=options.most_lag_ms / 1000,
        numbered=options.numbered,
    )
    return options.address, options.port, load


def main() -> int:
    """Sends, prints."""
    address, port, load = parse()
    # The default slack of 50 us would let half of the calls go in pairs.
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)
    with open_socket(address, port, load) as udp:
        start = time.monotonic()
        sent = blast(udp, load)
        seconds = time.monotonic() - start
    print(json.dumps({"sent": sent.datagrams, "refused": sent.refused, "seconds": seconds}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
