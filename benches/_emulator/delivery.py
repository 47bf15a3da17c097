"""Receive timestamps to delivered rates on the wire, over windows of a second. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IPV4_UDP_BYTES = 28
FRAMING_BYTES = 38

Ints = NDArray[np.int64]


def wire_bytes(payload_bytes: Ints, datagrams: Ints) -> Ints:
    """Bytes on the wire: payload, and IPv4, UDP and framing for every datagram."""
    return payload_bytes + datagrams * (IPV4_UDP_BYTES + FRAMING_BYTES)


def rates_bps(at_ns: Ints, size_bytes: Ints, skip_s: float, until_s: float) -> list[float]:
    """Rates over windows of at least a second, from `skip_s` to `until_s` after the start.

    A window goes from one arrival to another; an arrival is the end of what it brought, so the
    bytes of a window are those after its first arrival up to its last.
    """
    since_s = (at_ns - at_ns[0]) / 1e9
    total = np.cumsum(size_bytes)
    found, start = [], int(np.searchsorted(since_s, skip_s))
    while start < len(since_s):
        end = int(np.searchsorted(since_s, since_s[start] + 1.0))
        if end >= len(since_s) or since_s[end] > until_s:
            break
        bits = 8 * int(total[end] - total[start])
        found.append(bits / float(since_s[end] - since_s[start]))
        start = end
    return found


def sampled_rates_bps(end_us: Ints, out_bytes: Ints, skip_s: float, until_s: float) -> list[float]:
    """The same from samples of a link: bytes that left it by the end of each interval."""
    busy = np.flatnonzero(out_bytes > 0)
    if len(busy) == 0:
        return []
    start = busy[0]
    return rates_bps(end_us[start:] * 1000, out_bytes[start:], skip_s, until_s)
