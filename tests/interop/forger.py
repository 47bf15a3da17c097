"""Packets of UDT that neither end sent, from any address: what a stranger on the network can do.

`Watch` learns socket identifiers and sequence numbers of a connection on loopback as somebody on
the path would; `Forger` puts datagrams with any source address on the wire. Both need root.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

LOOPBACK = socket.inet_aton("127.0.0.1")
HANDSHAKE, KEEP_ALIVE, ACK, NAK, DELAY_WARNING, SHUTDOWN, ACK2, DROP, PEER_ERROR = range(9)
CUSTOM = 0x7FFF
LARGEST_SEQUENCE = 2**31 - 1
ETH_P_IP = 0x0800
IP_UDP_BYTES = 28


def control(kind: int, info: int, destination: int, body: bytes = b"", subtype: int = 0) -> bytes:
    """A control packet."""
    first = 0x8000_0000 | kind << 16 | subtype
    return struct.pack(">IIII", first, info & 0xFFFF_FFFF, 0, destination) + body


def words(*values: int) -> bytes:
    """A body of 32-bit words."""
    return struct.pack(f">{len(values)}I", *(value & 0xFFFF_FFFF for value in values))


def data(sequence: int, message: int, destination: int, payload: bytes) -> bytes:
    """A data packet."""
    return struct.pack(">IIII", sequence & LARGEST_SEQUENCE, message, 0, destination) + payload


def handshake(request: int, identifier: int, cookie: int, destination: int) -> bytes:
    """A handshake of a stream socket, without a real address in it."""
    body = words(4, 1, random.getrandbits(31), 1500, 8192, request, identifier, cookie, 0, 0, 0, 0)
    return control(HANDSHAKE, 0, destination, body)


@dataclass(frozen=True)
class Side:
    """One end of a connection as seen on the wire."""

    port: int
    identifier: int


@dataclass(frozen=True)
class Seen:
    """A connection: who calls, who listens, the last data packet of the caller."""

    client: Side
    server: Side
    sequence: int

    def both_ways(self) -> Iterator[tuple[Side, Side]]:
        """(from, to) in both directions."""
        yield self.client, self.server
        yield self.server, self.client


def watch(server_port: int, limit_s: float = 5.0) -> Seen:
    """Waits until data flow to a server on loopback, and both identifiers are known.

    Raises:
        TimeoutError: if they are not within `limit_s`.
    """
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP)) as ear:
        ear.bind(("lo", ETH_P_IP))
        ear.settimeout(limit_s)
        end_s = time.monotonic() + limit_s
        identifiers: dict[int, int] = {}
        sequence = client_port = None
        while time.monotonic() < end_s:
            packet = ear.recv(128)
            source, target, head = _udp(packet)
            if server_port not in (source, target) or not head[3]:
                continue
            identifiers[target] = head[3]
            if target == server_port and not head[0] >> 31:
                sequence, client_port = head[0], source
            if sequence is not None and client_port in identifiers:
                client = Side(client_port, identifiers[client_port])
                return Seen(client, Side(server_port, identifiers[server_port]), sequence)
    raise TimeoutError(f"no connection seen on port {server_port}")


def _udp(packet: bytes) -> tuple[int, int, tuple[int, int, int, int]]:
    """Ports and the four words of the UDT header; zeros if it is something else."""
    if len(packet) < IP_UDP_BYTES + 16 or packet[9] != socket.IPPROTO_UDP or packet[0] != 0x45:
        return 0, 0, (0, 0, 0, 0)
    source, target = struct.unpack_from(">HH", packet, 20)
    first, second, third, fourth = struct.unpack_from(">IIII", packet, IP_UDP_BYTES)
    return source, target, (first, second, third, fourth)


class Forger:
    """Sends datagrams on loopback in anybody's name."""

    def __init__(self) -> None:
        """Opens a raw socket."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.sent = 0

    def __enter__(self) -> Forger:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, source: int, target: int, payload: bytes) -> None:
        """One datagram from port to port; without a checksum, which IPv4 allows."""
        udp = struct.pack(">HHHH", source, target, 8 + len(payload), 0) + payload
        head = struct.pack(
            ">BBHHHBBH4s4s",
            *(0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0, LOOPBACK, LOOPBACK),
        )
        self._socket.sendto(head + udp, ("127.0.0.1", 0))
        self.sent += 1


Attack = Callable[[Forger, Seen], None]


def from_elsewhere(forger: Forger, seen: Seen) -> None:
    """Right identifiers, plausible contents, another port."""
    for _, to in seen.both_ways():
        stranger = random.randrange(20_000, 30_000)
        for packet in plausible(to.identifier, seen.sequence):
            forger.send(stranger, to.port, packet)


def wrong_identifier(forger: Forger, seen: Seen) -> None:
    """Right address, plausible contents, other identifiers: the one of nobody among them."""
    for sender, to in seen.both_ways():
        for identifier in (random.getrandbits(30), to.identifier + 1, to.identifier - 1, 0):
            for packet in plausible(identifier, seen.sequence):
                forger.send(sender.port, to.port, packet)


def noise(forger: Forger, seen: Seen) -> None:
    """Right address, anything at all."""
    for sender, to in seen.both_ways():
        for length in (0, 1, 3, 15, 16, 17, 64, 1472):
            forger.send(sender.port, to.port, random.randbytes(length))


def handshakes(forger: Forger, seen: Seen) -> None:
    """Requests to connect from many addresses, none of which answers."""
    for _ in range(40):
        request = random.choice([1, 0, -1, -2, 1002, 7])
        identifier, cookie = random.getrandbits(30), random.getrandbits(32)
        forger.send(
            random.randrange(1024, 60_000), seen.server.port,
            handshake(request, identifier, cookie, 0),
        )  # fmt: skip


def absurd(forger: Forger, seen: Seen) -> None:
    """Right address and identifier, contents that cannot be true."""
    far = seen.sequence + 2**30
    for sender, to in seen.both_ways():
        name = to.identifier
        packets = [
            control(ACK, 5, name, words(far, 10, 10, 8192, 1, 1)),
            control(ACK, 0, name, words(far)),
            control(ACK, 5, name, b"\1\2"),
            control(ACK2, random.getrandbits(31), name, words(0)),
            control(NAK, 0, name, words(far | 1 << 31, far + 100_000)),
            control(NAK, 0, name, words(1 << 31 | seen.sequence)),
            control(NAK, 0, name, words(*(random.getrandbits(32) for _ in range(300)))),
            control(SHUTDOWN, 0, name, words(random.getrandbits(32))),
            control(SHUTDOWN, 0, name),
            control(DROP, 7, name, words(far, far + 2**29)),
            control(DROP, 7, name, words(0, LARGEST_SEQUENCE)),
            control(CUSTOM, 0, name, random.randbytes(8), subtype=0x4641),
            control(9, 0, name, random.randbytes(8)),
            data(far, 0xC000_0001, name, bytes(1456)),
            data(far, 0xC000_0001, name, b""),
            handshake(1002, random.getrandbits(30), 0, name),
            handshake(-1, random.getrandbits(30), 0, name),
        ]
        for packet in packets:
            forger.send(sender.port, to.port, packet)


def plausible(identifier: int, sequence: int) -> list[bytes]:
    """One packet of each kind that could end, stall or spoil a connection, were it believed."""
    return [
        control(SHUTDOWN, 0, identifier, words(0)),
        control(ACK, 1, identifier, words(sequence + 100, 10, 10, 2)),
        control(NAK, 0, identifier, words(1 << 31 | sequence, sequence + 1000)),
        control(DROP, 1, identifier, words(sequence, sequence + 1000)),
        control(PEER_ERROR, 4000, identifier, words(0)),
        control(DELAY_WARNING, 0, identifier, words(0)),
        data(sequence + 50, 0x0000_0001, identifier, b"\xff" * 1456),
        handshake(1002, identifier, 0, identifier),
    ]
