"""The largest packet that a path passes, by echo requests that no router may cut in pieces.

Where a router drops what is too large and its message ("fragmentation needed", RFC 1191) is
filtered, the kernel learns nothing: large packets vanish while small ones pass (an MTU black hole,
RFC 2923). Echo requests (RFC 792, RFC 4443) of many sizes at once find the border between both
(as RFC 8899 does one by one). Needs no privilege where `net.ipv4.ping_group_range` holds the user.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from dataclasses import dataclass

LEAST = {socket.AF_INET: 576, socket.AF_INET6: 1280}
"""Packets that every path passes: RFC 1122, RFC 8200."""

_ROUNDS, _AT_ONCE = 3, 24
_WAIT_S = 0.7
_ECHO = {
    socket.AF_INET: (socket.IPPROTO_ICMP, 8, 28),
    socket.AF_INET6: (socket.IPPROTO_ICMPV6, 128, 48),
}
"""Protocol, type of an echo request, and bytes of headers before the data."""

_REPLIES = (0, 129)
"""Types of an echo reply, of IPv4 and of IPv6."""

_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _PMTUDISC_PROBE = 10, 23, 3
"""linux/in.h, linux/in6.h: set the flag that forbids fragments, whatever is cached of the path."""


def passing_bytes(host: str, largest: int, rtt_s: float = 0.0) -> int | None:
    """The largest IP packet, up to `largest` bytes, that comes back from `host`.

    None where not even the smallest one is answered, or the system does not let one ask.
    """
    try:
        family, address = _resolve(host)
        with _opened(family) as channel:
            return _search(_Echo(channel, family, address), largest, _WAIT_S + 2 * rtt_s)
    except OSError:
        return None


def _resolve(host: str) -> tuple[int, tuple[object, ...]]:
    family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
    return family, address


@dataclass(frozen=True)
class _Echo:
    """Where echo requests go out and answers come in, and to whom."""

    channel: socket.socket
    family: int
    address: tuple[object, ...]

    @property
    def is_raw(self) -> bool:
        return self.channel.type == socket.SOCK_RAW

    def send(self, token: bytes, size: int) -> None:
        """An echo request in an IP packet of `size` bytes; its number says how large it is."""
        _, kind, headers = _ECHO[socket.AddressFamily(self.family)]
        data = token.ljust(max(8, size - headers), b"\0")
        head = struct.pack("!BBHHH", kind, 0, 0, 0, size & 0xFFFF)
        if self.is_raw and self.family == socket.AF_INET:
            # The kernel fills the sum of all others in (RFC 792).
            head = struct.pack("!BBHHH", kind, 0, _checksum(head + data), 0, size & 0xFFFF)
        with contextlib.suppress(OSError):  # larger than the interface takes
            self.channel.sendto(head + data, self.address)

    def receive(self, token: bytes, left_s: float) -> int | None:
        """The size of a packet that came back, or None."""
        self.channel.settimeout(left_s)
        try:
            packet = self.channel.recv(65_536)
        except OSError:
            return None
        if self.is_raw and self.family == socket.AF_INET and packet:
            packet = packet[4 * (packet[0] & 15) :]
        if len(packet) < 16 or packet[0] not in _REPLIES or packet[8:16] != token:
            return None
        size: int = struct.unpack_from("!H", packet, 6)[0]
        return size


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    words: int = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) // 2 * 2]))
    words += data[-1] << 8 if len(data) % 2 else 0
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    return ~words & 0xFFFF


def _opened(family: int) -> socket.socket:
    """A socket for echo requests: one that anybody may have, else one that root may have.

    Raises:
        OSError: when the system gives neither.
    """
    protocol, _, _ = _ECHO[socket.AddressFamily(family)]
    try:
        channel = socket.socket(family, socket.SOCK_DGRAM, protocol)
    except PermissionError:
        channel = socket.socket(family, socket.SOCK_RAW, protocol)
    if family == socket.AF_INET6:
        channel.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_PROBE)
    else:
        channel.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_PROBE)
    return channel


def _search(echo: _Echo, largest: int, wait_s: float) -> int | None:
    """Rounds of sizes, each in the gap that the round before left between passing and lost."""
    low, high, known = LEAST[socket.AddressFamily(echo.family)], largest, None
    for _ in range(_ROUNDS):
        sizes = spread_sizes(low, high)
        back = _echoes(echo, sizes, wait_s)
        if back:
            known = max(back)
        if known is None or known >= high:
            break
        lost = [size for size in sizes if size > known]
        if not lost or lost[0] - known <= 1:
            break
        low, high = known + 1, lost[0] - 1
    return known


def spread_sizes(low: int, high: int) -> list[int]:
    """Some sizes from `low` to `high`, both ends among them."""
    if high <= low:
        return [low]
    count = min(_AT_ONCE, high - low + 1)
    return sorted({low + round(step * (high - low) / (count - 1)) for step in range(count)})


def _echoes(echo: _Echo, sizes: list[int], wait_s: float) -> set[int]:
    """The sizes that came back. Each is asked twice, for a packet may be lost by chance."""
    token = os.urandom(8)
    for _ in range(2):
        for size in sizes:
            echo.send(token, size)
    found: set[int] = set()
    until = time.monotonic() + wait_s
    while len(found) < len(sizes) and (left_s := until - time.monotonic()) > 0:
        size_back = echo.receive(token, left_s)
        if size_back in sizes:
            found.add(size_back)
    return found
