"""What one TCP connection reaches in the long run, from round-trip time and loss alone.

Formulas as published, over arrays: every argument is a number or an array, and they broadcast.
Rates are payload bits per second. Loss is the share of segments lost; with many connections in
one queue the formulas hold for the share of halvings of the window rather than of lost segments.
None of them knows a capacity: take the smaller of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from farline.errors import SpecError
from farline.models.quantities import loss_share, positive
from farline.models.window_bound import window_bound_bps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

SEGMENT_BYTES = 1460
"""Payload of a segment in an Ethernet frame, without TCP options."""

CUBIC_C = 0.4
CUBIC_BETA = 0.7
"""CUBIC's constants (RFC 9438, section 5)."""

RENO_RESPONSE = 1.2
"""Reno's mean window times the square root of loss, as RFC 9438 rounds √(3/2)."""


def mathis_bps(
    rtt_ms: ArrayLike,
    loss: ArrayLike,
    segment_bytes: float = SEGMENT_BYTES,
    segments_per_ack: float = 1,
) -> Floats:
    """Reno in congestion avoidance: MSS/τ · √(3/(2b)) / √p (Mathis et al. 1997).

    Holds for small loss, without timeouts and with a window that is no limit.

    Raises:
        SpecError: for an RTT, loss or size that is not positive, or a loss above 1.
    """
    rtt_s, share = _path(rtt_ms, loss, segment_bytes, segments_per_ack)
    segments = np.sqrt(1.5 / (segments_per_ack * share))
    return np.asarray(8 * segment_bytes / rtt_s * segments)


def pftk_bps(
    rtt_ms: ArrayLike,
    loss: ArrayLike,
    segment_bytes: float = SEGMENT_BYTES,
    segments_per_ack: float = 1,
    timeout_s: ArrayLike | None = None,
    window_bytes: float = np.inf,
) -> Floats:
    """Reno with timeouts and a largest window (Padhye, Firoiu, Towsley, Kurose 1998, full form).

    min{ W/τ, MSS / (τ√(2bp/3) + T₀ min(1, 3√(3bp/8)) p (1 + 32p²)) }. The timeout T₀ is the larger
    of 1 s and four round trips unless given.

    Raises:
        SpecError: for a quantity that is not positive, or a loss above 1.
    """
    rtt_s, share = _path(rtt_ms, loss, segment_bytes, segments_per_ack)
    waited_s = positive("timeout_s", np.maximum(1, 4 * rtt_s) if timeout_s is None else timeout_s)
    window_bits = 8 * positive("window_bytes", window_bytes)
    chance = np.minimum(1.0, _timeout_chance(share, segments_per_ack))
    segment_s = _avoidance_s(rtt_s, share, segments_per_ack) + waited_s * chance * _backoff(share)
    return np.asarray(np.minimum(window_bits / rtt_s, 8 * segment_bytes / segment_s))


def tfrc_bps(
    rtt_ms: ArrayLike,
    loss: ArrayLike,
    segment_bytes: float = SEGMENT_BYTES,
    segments_per_ack: float = 1,
) -> Floats:
    """The same as TFRC simplifies it (RFC 5348, section 3.1): T₀ = 4τ, no min(1, ·), no window.

    Loss is the rate of loss events.

    Raises:
        SpecError: for a quantity that is not positive, or a loss above 1.
    """
    rtt_s, share = _path(rtt_ms, loss, segment_bytes, segments_per_ack)
    chance = _timeout_chance(share, segments_per_ack)
    segment_s = _avoidance_s(rtt_s, share, segments_per_ack) + 4 * rtt_s * chance * _backoff(share)
    return np.asarray(8 * segment_bytes / segment_s)


def cubic_window_segments(
    rtt_ms: ArrayLike, loss: ArrayLike, c: float = CUBIC_C, beta: float = CUBIC_BETA
) -> Floats:
    """CUBIC's mean window by its own growth: (C(3+β)/(4(1−β)))^¼ (τ/p)^¾ (RFC 9438, section 5.1).

    Raises:
        SpecError: for a quantity that is not positive, a loss above 1, or β of 1 or more.
    """
    rtt_s, share = _path(rtt_ms, loss)
    positive("c", c)
    if not 0 < beta < 1:
        raise SpecError(f"beta: {beta:g} is out of range; allowed: between 0 and 1")
    return np.asarray((c * (3 + beta) / (4 * (1 - beta))) ** 0.25 * (rtt_s / share) ** 0.75)


def reno_window_segments(loss: ArrayLike) -> Floats:
    """Reno's mean window, 1.2/√p; it is also what CUBIC keeps to where that is more.

    Raises:
        SpecError: for a loss that is not positive, or above 1.
    """
    _, share = _path(1.0, loss)
    return np.asarray(RENO_RESPONSE / np.sqrt(share))


def cubic_bps(
    rtt_ms: ArrayLike,
    loss: ArrayLike,
    segment_bytes: float = SEGMENT_BYTES,
    c: float = CUBIC_C,
    beta: float = CUBIC_BETA,
) -> Floats:
    """CUBIC's rate, its Reno-friendly region included: the larger window of the two, over τ.

    Falls as τ^−¼ where its own growth leads: convex, but far flatter than Reno's τ^−1.

    Raises:
        SpecError: for a quantity that is not positive, a loss above 1, or β of 1 or more.
    """
    rtt_s, share = _path(rtt_ms, loss, segment_bytes)
    own = cubic_window_segments(rtt_ms, loss, c, beta)
    return np.asarray(8 * segment_bytes / rtt_s * np.maximum(own, reno_window_segments(share)))


def bbr_bound_bps(
    rtt_ms: ArrayLike, capacity_bps: ArrayLike, window_bytes: float = np.inf
) -> Floats:
    """What BBR does not exceed: it paces at the bottleneck's rate, so min(C, W/τ).

    Loss does not enter, and a flat profile with a fall at the window's knee is what is expected.
    Probing for the round-trip time, for 200 ms in 10 s, takes up to 2 % of it.

    Raises:
        SpecError: for a quantity that is not positive.
    """
    return window_bound_bps(rtt_ms, capacity_bps, window_bytes)


def _avoidance_s(rtt_s: Floats, share: Floats, segments_per_ack: float) -> Floats:
    """Time per segment in congestion avoidance."""
    return np.asarray(rtt_s * np.sqrt(2 * segments_per_ack * share / 3))


def _timeout_chance(share: Floats, segments_per_ack: float) -> Floats:
    """Chance that a loss ends in a timeout, as approximated for small loss; may exceed 1."""
    return np.asarray(3 * np.sqrt(3 * segments_per_ack * share / 8))


def _backoff(share: Floats) -> Floats:
    """Timeouts per segment and how they grow."""
    return np.asarray(share * (1 + 32 * share**2))


def _path(
    rtt_ms: ArrayLike, loss: ArrayLike, segment_bytes: float = 1, segments_per_ack: float = 1
) -> tuple[Floats, Floats]:
    """RTT in seconds and loss; all four checked."""
    positive("segment_bytes", segment_bytes)
    positive("segments_per_ack", segments_per_ack)
    return positive("rtt_ms", rtt_ms) / 1000, loss_share("loss", loss)
