"""Notes when the host's kernel got UDP datagrams, and how long they were; keeps no payload.

Runs inside the receiving host: `python sniffer.py OUTPUT.npz DEVICE`. Prints `ready` when it
listens, ends at SIGTERM, then writes OUTPUT.npz with int64 columns, one entry per piece as the
kernel handed it on (a batch that was not cut yet is one piece): `at_ns` (SO_TIMESTAMPNS), `bytes`
(IP packet), `port` (UDP destination), and prints one JSON object: `pieces`, `dropped` (by the
kernel, because the socket's buffer was full).
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import struct
import sys
from array import array
from pathlib import Path
from typing import Any

import numpy as np

# asm-generic/socket.h, linux/if_ether.h and linux/if_packet.h; Python has no names for them.
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
ETH_P_IP = 0x0800
SOL_PACKET, PACKET_STATISTICS = 263, 6
OUTGOING = 4
RECEIVE_BUFFER = 1 << 27
STOP_CHECK_US = 100_000
ANCILLARY_ROOM = 128
# IPv4 without options, and the ports.
HEAD_BYTES = 24
UDP = 17


class Seen:
    """What was noted."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.columns = {name: array("q") for name in ("at_ns", "bytes", "port")}

    def note(self, head: bytes, size: int, at_ns: int) -> None:
        """Takes an IP packet of `size` bytes; only UDP counts."""
        if head[9] != UDP:
            return
        self.columns["at_ns"].append(at_ns)
        self.columns["bytes"].append(size)
        self.columns["port"].append(int.from_bytes(head[22:24], "big"))

    def write(self, path: Path) -> None:
        """All columns."""
        columns: dict[str, Any] = {
            name: np.array(kept, np.int64) for name, kept in self.columns.items()
        }
        np.savez(path, **columns)


class Told:
    """Whether SIGTERM came."""

    def __init__(self) -> None:
        """Starts to listen for it."""
        self.to_end = False
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, _number: int, _frame: object) -> None:
        self.to_end = True


def open_socket(device: str) -> socket.socket:
    """A packet socket without link headers, stamped by the kernel."""
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
    sniffer.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
    sniffer.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    timeout = struct.pack("qq", 0, STOP_CHECK_US)
    sniffer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
    sniffer.bind((device, ETH_P_IP))
    return sniffer


def sniff(sniffer: socket.socket, seen: Seen, told: Told) -> None:
    """Notes what comes in until told to end and nothing is left."""
    head = bytearray(HEAD_BYTES)
    while True:
        try:
            # MSG_TRUNC: the size as it was, of which only the head is kept.
            size, ancillary, _flags, sender = sniffer.recvmsg_into(
                [head], ANCILLARY_ROOM, socket.MSG_TRUNC
            )
        except BlockingIOError:
            if told.to_end:
                return
            continue
        # Loopback shows each packet twice: as it goes and as it comes.
        if sender[2] != OUTGOING:
            seen.note(bytes(head), size, stamp_ns(ancillary))


def stamp_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    """The kernel's timestamp."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("qq", data[:16])
            return int(seconds * 1_000_000_000 + nanoseconds)
    raise RuntimeError("a packet came without a timestamp")


def main() -> int:
    """Notes, writes, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("device")
    options = parser.parse_args()
    told, seen = Told(), Seen()
    with open_socket(options.device) as sniffer:
        print("ready", flush=True)
        sniff(sniffer, seen, told)
        statistics = sniffer.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
    seen.write(options.output)
    (dropped,) = struct.unpack("I", statistics[4:8])
    print(json.dumps({"pieces": len(seen.columns["at_ns"]), "dropped": dropped}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
