"""How large TCP's buffers must be for a path: the one place that says it.

Every advice on buffers comes from here (the verdict of a run or copy, `host`, `explain`, the
report), so that one path has one answer. A stream has a window of data under way per round trip,
its share of the bandwidth-delay product. Of a receive buffer about half becomes window (tcp(7),
`tcp_adv_win_scale`; since Linux 6.6 the share is measured per socket and begins at one half), and a
send buffer is grown to twice the congestion window (`tcp_sndbuf_expand`): both take twice the
window, rounded up to a power of two.
"""

from __future__ import annotations

BUFFER_PER_WINDOW = 2
"""Bytes of a socket buffer for each byte of the window in it."""

MAX_BUFFER_BYTES = 2**31 - 1
"""Largest socket buffer that the kernel takes."""


def round_up(size_bytes: int) -> int:
    """The next power of two that is not below `size_bytes`: a value one can remember."""
    return 1 << max(0, size_bytes - 1).bit_length()


def window_bytes(rate_bps: float, rtt_s: float, streams: float = 1) -> int:
    """What each of the streams has under way on a full path, in bytes."""
    product = round(rate_bps / 8 * rtt_s)
    return int(-(-product // max(1, streams)))


def buffer_bytes(window: float, share: float = 1 / BUFFER_PER_WINDOW) -> int:
    """Maximum that holds a window of that many bytes, or the largest that the kernel takes.

    `share` is what becomes window on a kernel that was told to keep more than half for itself.
    """
    wanted = window / min(share, 1 / BUFFER_PER_WINDOW)
    return min(round_up(round(wanted)), MAX_BUFFER_BYTES)


def asked_bytes(window: float) -> int:
    """What a program asks for (`-w`, SO_RCVBUF) to hold such a window: the kernel doubles it."""
    return min(round_up(round(window)), MAX_BUFFER_BYTES)


def is_beyond_kernel(window: float) -> bool:
    """Whether no buffer holds such a window, so that more streams have to share the path."""
    return BUFFER_PER_WINDOW * window > MAX_BUFFER_BYTES


def streams_for(window: float, streams: int = 1) -> int:
    """Streams among which the windows of `streams` are small enough for the kernel's buffers."""
    return int(-(-BUFFER_PER_WINDOW * window * streams // MAX_BUFFER_BYTES))


def raise_maximum(name: str, now: str, maximum_bytes: int) -> str:
    """The command that raises the third value of `tcp_rmem` or `tcp_wmem`; `now` is its text."""
    least, start = now.split()[:2]
    return f'sysctl -w {name}="{least} {start} {maximum_bytes}"'


def raise_limit(name: str, limit_bytes: int) -> str:
    """The command that lets programs ask for so much: `net.core.rmem_max` or `wmem_max`."""
    return f"sysctl -w {name}={min(limit_bytes, MAX_BUFFER_BYTES)}"
