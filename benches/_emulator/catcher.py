"""Receives datagrams in batches (UDP_GRO) with the kernel's receive timestamps, until told to end.

Runs inside a host: `python catcher.py OUTPUT.npz --keep times|numbers|nothing`. Prints `ready`
when it listens, ends at SIGTERM, then writes OUTPUT.npz and prints one JSON object: `datagrams`,
`dropped` (by the kernel, because the socket's buffer was full). What OUTPUT.npz holds, int64
each:

- times: `at_ns`, `payload_bytes`, `datagrams`, an entry per receive call;
- numbers: `first`, `length`: runs of consecutive numbers in the order they came.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import struct
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

# asm-generic/socket.h and linux/udp.h; Python has no names for them.
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
SO_RXQ_OVFL = 40
UDP_GRO = 104
# The largest there is: the kernel doubles it.
RECEIVE_BUFFER = (1 << 30) - 1
LARGEST = 65_535
ANCILLARY_ROOM = 256
STOP_CHECK_US = 100_000
HEAD = 8


class Keeper(Protocol):
    """What is kept of each receive call."""

    room: int

    def keep(self, data: bytearray, size: int, segment: int, at_ns: int) -> None:
        """Takes `size` bytes that came in datagrams of `segment` (the last may be shorter)."""

    def arrays(self) -> dict[str, np.ndarray]:
        """What to write."""


def datagrams_in(size: int, segment: int) -> int:
    """Datagrams in a batch."""
    return -(-size // segment)


class Nothing:
    """Keeps nothing, and copies no payload."""

    room = 1

    def keep(self, data: bytearray, size: int, segment: int, at_ns: int) -> None:
        """Takes it and forgets it."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}


class Times:
    """Keeps when how much came, and copies no payload."""

    room = 1

    def __init__(self) -> None:
        """Starts with nothing."""
        self.columns = {name: array("q") for name in ("at_ns", "payload_bytes", "datagrams")}

    def keep(self, data: bytearray, size: int, segment: int, at_ns: int) -> None:
        """Notes time and size."""
        self.columns["at_ns"].append(at_ns)
        self.columns["payload_bytes"].append(size)
        self.columns["datagrams"].append(datagrams_in(size, segment))

    def arrays(self) -> dict[str, np.ndarray]:
        """The three columns."""
        return {name: np.array(values, np.int64) for name, values in self.columns.items()}


class Numbers:
    """Keeps runs of consecutive numbers in the order they came."""

    room = LARGEST

    def __init__(self) -> None:
        """Starts with nothing."""
        self.first, self.length = array("q"), array("q")

    def keep(self, data: bytearray, size: int, segment: int, at_ns: int) -> None:
        """Reads the numbers of a batch, and cuts them where they are not consecutive."""
        count = max(1, (size - HEAD) // segment + 1)
        numbers = np.ndarray((count,), "<i8", buffer=data, strides=(segment,))
        cuts = (np.flatnonzero(np.diff(numbers) != 1) + 1).tolist()
        for start, end in zip([0, *cuts], [*cuts, count], strict=True):
            self.add(int(numbers[start]), end - start)

    def add(self, first: int, length: int) -> None:
        """Joins a run to the one before if it goes on from there."""
        if self.first and self.first[-1] + self.length[-1] == first:
            self.length[-1] += length
        else:
            self.first.append(first)
            self.length.append(length)

    def arrays(self) -> dict[str, np.ndarray]:
        """Both columns."""
        return {"first": np.array(self.first, np.int64), "length": np.array(self.length, np.int64)}


KEEPERS: dict[str, Callable[[], Keeper]] = {"times": Times, "numbers": Numbers, "nothing": Nothing}


def open_socket(port: int, family: socket.AddressFamily) -> socket.socket:
    """A socket that takes batches, stamps them and counts what it had no room for."""
    udp = socket.socket(family, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
    udp.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    udp.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
    udp.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    # Not settimeout(), which would add a poll() to every call.
    timeout = struct.pack("qq", 0, STOP_CHECK_US)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
    udp.bind(("", port))
    return udp


class Told:
    """Whether SIGTERM came."""

    def __init__(self) -> None:
        """Starts to listen for it."""
        self.to_end = False
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, _number: int, _frame: object) -> None:
        self.to_end = True


class Facts:
    """What came beside the data: timestamp, size of a datagram, drops so far."""

    def __init__(self) -> None:
        """Nothing came."""
        self.at_ns, self.segment, self.dropped = 0, 0, 0

    def read(self, size: int, ancillary: list[tuple[int, int, bytes]]) -> None:
        """Reads control messages; a datagram alone comes without its size."""
        self.segment = size
        for level, kind, data in ancillary:
            if level == socket.IPPROTO_UDP and kind == UDP_GRO:
                (self.segment,) = struct.unpack("i", data[:4])
            elif level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                seconds, nanoseconds = struct.unpack("qq", data[:16])
                self.at_ns = seconds * 1_000_000_000 + nanoseconds
            elif level == socket.SOL_SOCKET and kind == SO_RXQ_OVFL:
                (self.dropped,) = struct.unpack("I", data[:4])


def catch(udp: socket.socket, keeper: Keeper, told: Told) -> tuple[int, int]:
    """Receives until told to end and nothing is left; (datagrams, dropped by the kernel)."""
    buffer, facts, datagrams = bytearray(LARGEST), Facts(), 0
    room = [memoryview(buffer)[: keeper.room]]
    while True:
        try:
            # MSG_TRUNC: the size as it came, also of what there was no room for.
            size, ancillary, _flags, _peer = udp.recvmsg_into(
                room, ANCILLARY_ROOM, socket.MSG_TRUNC
            )
        except BlockingIOError:
            if told.to_end:
                return datagrams, facts.dropped
            continue
        facts.read(size, ancillary)
        datagrams += datagrams_in(size, facts.segment)
        keeper.keep(buffer, size, facts.segment, facts.at_ns)


def main() -> int:
    """Receives, writes, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--keep", choices=sorted(KEEPERS), default="nothing")
    parser.add_argument("--port", type=int, default=7077)
    parser.add_argument("-6", "--ipv6", action="store_true")
    options = parser.parse_args()
    keeper, told = KEEPERS[options.keep](), Told()
    family = socket.AF_INET6 if options.ipv6 else socket.AF_INET
    with open_socket(options.port, family) as udp:
        print("ready", flush=True)
        datagrams, dropped = catch(udp, keeper, told)
    arrays: dict[str, Any] = dict(keeper.arrays())
    np.savez(options.output, **arrays)
    print(json.dumps({"datagrams": datagrams, "dropped": dropped}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
