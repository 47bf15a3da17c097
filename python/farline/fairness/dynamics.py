"""Measures over time and distance: how soon a newcomer has its share, what nearness gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

DELTA = 0.2
"""A newcomer has its share when it has at least 1 - DELTA of it."""
SMOOTH_S = 0.5
"""Rates are means over this time: samples of a tenth of a second show single bursts."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Rates of both sides over one interval of time, which ends `end_s` after the newcomer came."""

    start_s: float
    end_s: float
    newcomer_bps: float
    other_bps: float


def convergence_s(
    moments: Sequence[Moment], share_bps: float, delta: float = DELTA, smooth_s: float = SMOOTH_S
) -> float | None:
    """Seconds until the newcomer first has `1 - delta` of its fair share; None if it never has.

    The delta-fair convergence time of RFC 5166 (section 2.4; Bansal et al. 2001) is that of two
    equal flows, from shares of 100/101 and 1/101 to (1 + delta)/2 and (1 - delta)/2; here the
    newcomer starts from nothing and the share may be any. Rates are means over `smooth_s`; the
    answer is the end of the first such interval.

    Raises:
        ValueError: for a delta outside of 0 to 1, or a share or time not above 0.
    """
    if not (0 <= delta < 1 and share_bps > 0 and smooth_s > 0):
        raise ValueError("delta must be in [0, 1), share and time above 0")
    for index, moment in enumerate(moments):
        if moment.end_s < smooth_s:
            continue
        rate = _mean_bps(moments[: index + 1], moment.end_s - smooth_s)
        if rate >= (1 - delta) * share_bps:
            return moment.end_s
    return None


def _mean_bps(moments: Sequence[Moment], since_s: float) -> float:
    """Mean rate of the newcomer from `since_s` on."""
    bits = time_s = 0.0
    for moment in reversed(moments):
        if moment.end_s <= since_s:
            break
        inside_s = moment.end_s - max(moment.start_s, since_s)
        bits += moment.newcomer_bps * inside_s
        time_s += inside_s
    return bits / time_s if time_s > 0 else 0.0


def rtt_exponent(rates: tuple[float, float], rtts: tuple[float, float]) -> float | None:
    """The power e of rate ~ 1 / RTT**e between two flows; 0 is fair to distance.

    RFC 5166, section 2.4, asks for it. Reno's is between 1 and 2, the more so where losses are
    synchronised (Lakshman and Madhow 1997); CUBIC is made for 1 (RFC 9438, section 3.3). None
    where both have the same RTT, or a rate is 0.

    Raises:
        ValueError: for an RTT not above 0 or a rate below 0.
    """
    if not (min(rtts) > 0 and min(rates) >= 0):
        raise ValueError("round-trip times must be above 0, rates not below")
    if min(rates) == 0 or math.isclose(rtts[0], rtts[1]):
        return None
    return -math.log(rates[0] / rates[1]) / math.log(rtts[0] / rtts[1])
