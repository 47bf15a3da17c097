"""What a report of missing packets weighs, and what TCP makes of it.

He et al. 2002 has a bit for every packet and no slow start. farline sends the smaller of two forms:
a bitmap from the first missing packet to the last, or runs, each a gap and a length as LEB128
numbers (7 bits a byte), behind a byte that says which.
"""

from __future__ import annotations

import numpy as np

from farline.models.rbudp_passes import Floats

SEGMENT_BYTES = 1448
"""Payload of a TCP segment on Ethernet with timestamps."""

HEADER_BYTES = 21
"""What a report says besides the packets: its length and kind, blast, statement and number."""

_STEPS = 128.0 ** np.arange(1, 7)
"""Numbers from which a LEB128 number takes one byte more."""


def bitmap_bytes(packets: float, missing_share: Floats) -> Floats:
    """Mean size of a bitmap from the first missing packet to the last: a bit per packet.

    m places taken at random among n span (n + 1)(m - 1) / (m + 1) + 1 on average. Two bytes more
    say the form and where it begins.
    """
    missing = np.maximum(packets * missing_share, 1.0)
    span = (packets + 1) * (missing - 1) / (missing + 1) + 1
    return np.asarray(2 + np.ceil(np.clip(span, 1.0, packets) / 8), dtype=np.float64)


def runs_bytes(packets: float, missing_share: Floats) -> Floats:
    """Mean size as runs of missing packets: for each, how many came before it, and its length.

    n p (1 - p) runs (and one more where the last packet is missing); gaps and lengths are
    geometric. Both are sent less 1, so that P(gap >= t) = (1 - p)^t and P(length >= t) = p^t. A
    number takes one byte, and one more for each power of 128 that it reaches.
    """
    share = np.asarray(missing_share, dtype=np.float64)[..., np.newaxis]
    with np.errstate(divide="ignore"):
        gaps = np.exp(_STEPS * np.log1p(-share))
        lengths = np.exp(_STEPS * np.log(share))
    each = 2 + np.sum(np.where(share > 0, gaps + lengths, 0.0), axis=-1)
    flat = np.asarray(missing_share, dtype=np.float64)
    return np.asarray(1 + (packets * flat * (1 - flat) + flat) * each, dtype=np.float64)


def report_bytes(packets: float, missing_share: Floats) -> Floats:
    """Mean size of farline's report when each of `packets` is missing with that chance.

    `missing_share` is an array of chances; one size for each, the report's header included.
    """
    smaller = np.minimum(bitmap_bytes(packets, missing_share), runs_bytes(packets, missing_share))
    return HEADER_BYTES + smaller


def tcp_rounds(size_bytes: Floats, initial_window_segments: int) -> Floats:
    """Round trips that slow start needs for so many bytes: the smallest r that sends them all.

    IW (2^r - 1) segments have been sent after r rounds (RFC 5681, section 3.1, one ACK for each
    segment). 35 segments take 3 rounds from a window of 10, 5 from one of 2.
    """
    segments = np.maximum(np.ceil(np.asarray(size_bytes, dtype=np.float64) / SEGMENT_BYTES), 1.0)
    return np.ceil(np.log2(segments / initial_window_segments + 1) - 1e-12)
