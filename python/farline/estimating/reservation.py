"""What to reserve on a network so that a transfer has what it can use.

The rate is the one that the hosts reach with the confidence asked for: more would lie idle in as
many cases, less would make the transfer late. Yildirim and Kosar's estimation service asks the same
of a reservation: the optimal rate for a time frame (FutureGrid project FG-113).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

WIRE_SHARE = 1538 / 1448
"""Bits on an Ethernet of 1500 bytes per bit of payload: networks reserve those, with headers."""

_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Reservation:
    """So much of the network, from when to when; POSIX seconds."""

    rate_bps: int
    """Bits per second on the wire, headers included."""
    start_s: float
    end_s: float


def reservation_of(payload_bytes: float, start_s: float, duration_s: float) -> Reservation:
    """The reservation within which a transfer of `duration_s` fits that begins at `start_s`.

    The rate is rounded up to three digits, the end to a whole second.
    """
    payload_bps = 8 * payload_bytes / duration_s
    return Reservation(
        rounded_up(WIRE_SHARE * payload_bps), start_s, math.ceil(start_s + duration_s)
    )


def rounded_up(rate_bps: float) -> int:
    """A rate with three significant digits, never less than asked."""
    if rate_bps < 1:
        return 1
    step: int = 10 ** max(0, math.floor(math.log10(rate_bps)) + 1 - _DIGITS)
    return math.ceil(rate_bps / step) * step
