"""The algorithms as published, in floating point: what the programs are held against.

Windows are in packets, times in seconds. Sources: draft-leith-tcp-htcp-06 (H-TCP), Kelly 2003
(Scalable TCP), RFC 3649 (HighSpeed TCP). Nothing here knows the programs under test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

SCALABLE_INCREASE = 0.01
SCALABLE_DECREASE = 0.125
SCALABLE_LEGACY_WINDOW = 16
HTCP_DELTA_L_S = 1.0
HTCP_REFERENCE_RTT_S = 0.1
HSTCP_LOW_WINDOW, HSTCP_LOW_LOSS = 38, 1e-3
HSTCP_HIGH_WINDOW, HSTCP_HIGH_LOSS = 83_000, 1e-7
HSTCP_HIGH_DECREASE = 0.1


def htcp_alpha(since_event_s: float) -> float:
    """Packets per round trip, before scaling and before the factor 2 (1 − beta)."""
    beyond_s = since_event_s - HTCP_DELTA_L_S
    return 1.0 if beyond_s <= 0 else 1 + 10 * beyond_s + (beyond_s / 2) ** 2


def htcp_scale(rtt_min_s: float) -> float:
    """Factor of RTT scaling."""
    return min(max(rtt_min_s / HTCP_REFERENCE_RTT_S, 0.1), 2.0)


def htcp_increase(since_event_s: float, beta: float, rtt_min_s: float | None) -> float:
    """Packets per round trip; without RTT scaling if `rtt_min_s` is None."""
    alpha = htcp_alpha(since_event_s)
    if rtt_min_s is not None:
        alpha = max(alpha * htcp_scale(rtt_min_s), 1.0)
    return 2 * (1 - beta) * alpha


def htcp_growth(start_s: float, end_s: float, beta: float, rtt_s: float, scaled: bool) -> float:
    """Packets by which a window grows between two times after an event, at a constant RTT."""
    rtt_min_s = rtt_s if scaled else None
    steps = 2000
    width_s = (end_s - start_s) / steps
    middles = (start_s + (step + 0.5) * width_s for step in range(steps))
    return sum(htcp_increase(at_s, beta, rtt_min_s) for at_s in middles) * width_s / rtt_s


def scalable_growth(window: float, packets: int) -> float:
    """Packets by which a window grows when so many are acknowledged."""
    return packets * (SCALABLE_INCREASE if window > SCALABLE_LEGACY_WINDOW else 1 / window)


def scalable_epoch_round_trips() -> float:
    """Round trips from a congestion event to the window before it."""
    return math.log(1 / (1 - SCALABLE_DECREASE)) / math.log(1 + SCALABLE_INCREASE)


def scalable_response(loss: float) -> float:
    """Mean window at a loss rate: growth of ln w by 0.01 per round trip balances its loss."""
    return math.log(1 + SCALABLE_INCREASE) / (loss * math.log(1 / (1 - SCALABLE_DECREASE)))


def hstcp_decrease(window: float) -> float:
    """b(w), RFC 3649 section 5."""
    if window <= HSTCP_LOW_WINDOW:
        return 0.5
    share = math.log(window / HSTCP_LOW_WINDOW) / math.log(HSTCP_HIGH_WINDOW / HSTCP_LOW_WINDOW)
    return (HSTCP_HIGH_DECREASE - 0.5) * share + 0.5


def hstcp_increase(window: float) -> float:
    """a(w), RFC 3649 section 5."""
    if window <= HSTCP_LOW_WINDOW:
        return 1.0
    loss = 0.078 / math.pow(window, 1.2)
    decrease = hstcp_decrease(window)
    return window * window * loss * 2 * decrease / (2 - decrease)


def hstcp_response(loss: float) -> float:
    """Mean window at a loss rate: 0.12 / p^0.835 below 10^-3, else that of standard TCP."""
    return 0.12 / loss**0.835 if loss < HSTCP_LOW_LOSS else 1.2 / math.sqrt(loss)


@dataclass(frozen=True)
class Cycle:
    """The steady cycle when every so many packets one is lost."""

    mean_window: float
    """Packets per round trip, over the whole cycle."""
    peak_window: float
    round_trips: float


def steady_cycle(
    loss: float,
    rtt_s: float,
    increase: Callable[[float, float], float],
    keep: Callable[[float], float],
    recovery_round_trips: float = 0.0,
) -> Cycle:
    """Follows one flow through losses at every 1/`loss` packets until its cycles are alike.

    `increase(window, since_event_s)` is in packets per round trip, `keep(window)` the window after
    a congestion event. During `recovery_round_trips` after an event the window does not grow: fast
    recovery takes one, which the published formulas leave out.
    """
    window, between = 1.2 / math.sqrt(loss), 1.0 / loss
    cycle = Cycle(0.0, 0.0, 0.0)
    for _ in range(400):
        before = cycle
        window, cycle = one_cycle(window, between, rtt_s, increase, recovery_round_trips)
        if math.isclose(cycle.mean_window, before.mean_window, rel_tol=1e-6):
            break
        window = keep(window)
    return cycle


def one_cycle(
    window: float,
    between: float,
    rtt_s: float,
    increase: Callable[[float, float], float],
    recovery_round_trips: float,
) -> tuple[float, Cycle]:
    """Follows one flow until `between` packets are sent: the window then, and the way to it."""
    sent, at_s, step = 0.0, 0.0, 0.02
    while sent < between:
        part = min(step, (between - sent) / window)
        sent += part * window
        at_s += part * rtt_s
        if at_s > recovery_round_trips * rtt_s:
            window += part * increase(window, at_s)
    return window, Cycle(between / (at_s / rtt_s), window, at_s / rtt_s)
