"""What a window allows: no more than it in each round trip, whatever the line can carry.

The bound that explains most convex profiles that were measured (Rao et al. 2018, section 5): socket
buffers of TCP, credits of a file system's routers, requests in flight of a tool.
Arguments are numbers or arrays, and they broadcast. Sizes are bytes, rates payload bits per second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from farline.models.quantities import not_negative, positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


def window_bound_bps(
    rtt_ms: ArrayLike, capacity_bps: ArrayLike, window_bytes: ArrayLike, streams: ArrayLike = 1
) -> Floats:
    """min(C, nW/τ): `streams` connections, each with up to `window_bytes` in flight. C at τ = 0.

    Raises:
        SpecError: for a negative RTT, or another quantity that is not positive.
    """
    in_flight_bits = 8 * _all_windows(window_bytes, streams)
    capacity = positive("capacity_bps", capacity_bps)
    rtts_ms = not_negative("rtt_ms", rtt_ms)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.minimum(capacity, 1000 * in_flight_bits / rtts_ms))


def knee_rtt_ms(capacity_bps: ArrayLike, window_bytes: ArrayLike, streams: ArrayLike = 1) -> Floats:
    """τ_W = nW/C in ms: up to it the line is the limit, beyond it the window.

    Raises:
        SpecError: for a quantity that is not positive.
    """
    capacity = positive("capacity_bps", capacity_bps)
    return np.asarray(8000 * _all_windows(window_bytes, streams) / capacity)


def bdp_bytes(capacity_bps: ArrayLike, rtt_ms: ArrayLike) -> Floats:
    """The bandwidth-delay product: bytes in flight that fill a line, so the window it needs.

    Raises:
        SpecError: for a negative RTT or a capacity that is not positive.
    """
    capacity = positive("capacity_bps", capacity_bps)
    return np.asarray(capacity * not_negative("rtt_ms", rtt_ms) / 8000)


def _all_windows(window_bytes: ArrayLike, streams: ArrayLike) -> Floats:
    return np.asarray(positive("window_bytes", window_bytes) * positive("streams", streams))
