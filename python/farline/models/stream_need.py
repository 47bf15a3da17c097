"""How many TCP streams it takes to fill a path, from the buffers that the kernels allow.

A stream has at most a window of data under way per round trip (`window_bound`). Linux grows a
stream's buffers up to `tcp_wmem[2]` and `tcp_rmem[2]` by itself, and of both about half holds
payload: the rest is the kernel's own (tcp(7), `tcp_adv_win_scale`; skb overhead on the sender).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from farline.models.buffer_need import BUFFER_PER_WINDOW

PAYLOAD_SHARE = 1 / BUFFER_PER_WINDOW
"""Share of a buffer that is payload under way."""

MOST_STREAMS = 64
"""More streams cost more than they bring: each is a thread at both ends."""

UNKNOWN_RATE_BPS = 10_000_000_000
"""Rate aimed at where neither the caller nor the interface names one."""

CORE_RATE_BPS = 8_000_000_000
"""What one stream carries at most, hashed and sealed: it is one thread at each end."""


IDLE_CORES = "a single stream would keep one core busy and leave the others idle"
"""Why there are more streams than windows ask for."""

_STARTING = ((0.05, 8, 64), (0.02, 8, 16))
"""Round-trip times in seconds; streams from there on, and for many small files."""


@dataclass(frozen=True)
class StreamNeed:
    """A number of streams, and what it was found from."""

    streams: int
    rtt_s: float
    rate_bps: float
    window_bytes: float
    starting: int
    cores: int

    @property
    def reason(self) -> str:
        """Why it is that many, in one line."""
        plural = "" if self.streams == 1 else "s"
        word = "at most " if self.streams == MOST_STREAMS else ""
        said = f"{word}{self.streams} stream{plural}: RTT {1e3 * self.rtt_s:.3g} ms"
        if self.streams == 1:
            return f"{said}, more would not be faster"
        if self.streams == self.starting:
            return f"{said}, a single stream would take long to reach its rate"
        if self.streams == self.cores:
            return f"{said}, {IDLE_CORES}"
        carried_bps = self.window_bytes * 8 / self.rtt_s
        return (
            f"{said}, {carried_bps / 1e9:.3g} Gbit/s each with {self.window_bytes / 2**20:.3g} "
            f"MiB in flight, {self.rate_bps / 1e9:.3g} Gbit/s wanted"
        )


def starting_streams(rtt_s: float, small_files: bool = False) -> int:
    """Streams that begin together where one would be long in getting up to speed.

    A stream begins with ten segments and doubles them each round trip (RFC 6928): at 100 ms it
    takes 1.3 s to its first 100 MB, whatever the window; eight take 1 s, 64 take 0.7 s. Many small
    files are mostly such a beginning; where few large ones come, more streams than it takes only
    cost.
    """
    found = (row for row in _STARTING if rtt_s >= row[0])
    return next((small if small_files else large for _, large, small in found), 1)


def core_streams(rate_bps: float, cores: int) -> int:
    """Streams that keep as many of `cores` busy as the rate takes."""
    return max(1, min(math.ceil(rate_bps / CORE_RATE_BPS), cores))


def stream_need(
    rtt_s: float,
    send_buffer_bytes: int,
    receive_buffer_bytes: int,
    rate_bps: float | None = None,
    cores: int = 1,
    small_files: bool = False,
) -> StreamNeed:
    """Streams that carry `rate_bps` over a path with this round-trip time.

    `send_buffer_bytes` is the sender's `tcp_wmem[2]`, `receive_buffer_bytes` the receiver's
    `tcp_rmem[2]`. Where windows would let fewer do, it is still as many as the rate takes of the
    `cores` (`core_streams`), and `starting_streams` on a long path. A rate that takes all cores
    has no more of those than cores: from a second on, streams that share a core only cost, and each
    leaves more of the path's data to lie about in memory.
    """
    rate = rate_bps or UNKNOWN_RATE_BPS
    window = PAYLOAD_SHARE * min(send_buffer_bytes, receive_buffer_bytes)
    wanted = math.ceil(rate * max(rtt_s, 0.0) / (8 * max(window, 1.0)))
    starting, busy = starting_streams(rtt_s, small_files), core_streams(rate, cores)
    if busy >= cores and not small_files:
        starting = min(starting, cores)
    streams = min(max(wanted, starting, busy), MOST_STREAMS)
    return StreamNeed(streams, rtt_s, rate, window, starting, busy)
