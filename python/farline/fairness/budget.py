"""Harm to others that is estimated from one's own rates alone, and what a budget of it allows.

Nobody can ask those who share a line what they lose. But a transfer that changes its number of
streams sees what it gains by it, and that says how many flows it competes with: n streams among m
others get `L n / (n + m)` of a line L (docs/design/fairness.md). Lu et al. 2005 use the same law to
bound the effect of parallel TCP on cross traffic. docs/design/fairness-budget.md has the error of
these estimates, measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_NOBODY = 0.25
"""Fewer others than this are none: two rates of one line never agree to the last bit."""
_UNBOUND = 1.02
"""Rates that grow in proportion to streams, but for this, are not bound by the line."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a transfer had with so many streams of equal round-trip time."""

    streams: int
    rate_bps: float


def competing_flows(few: Probe, many: Probe) -> float | None:
    """How many flows share the line, from two numbers of streams; 0 for nobody.

    From `T = L n / (n + m)` at both: `m = (n2 - r n1) / (r - 1)` with `r = T1 n2 / (T2 n1)`. None
    where rates grow in proportion to streams: the line is not full, or others are very many.

    Raises:
        ValueError: when the second probe has not more streams, or a rate is not above 0.
    """
    if not 0 < few.streams < many.streams:
        raise ValueError("the second probe needs more streams than the first, which needs one")
    if not min(few.rate_bps, many.rate_bps) > 0:
        raise ValueError("rates must be above 0")
    growth = many.rate_bps * few.streams / (few.rate_bps * many.streams)
    ratio = 1 / growth
    if ratio <= _UNBOUND:
        return None
    found = (many.streams - ratio * few.streams) / (ratio - 1)
    return found if found >= _NOBODY else 0.0


def estimated_harm(streams: int, others: float) -> float:
    """Harm to flows that want the whole line: `n / (n + m)`; 0 where there is nobody.

    Flows that want less than that are harmed less: this is the most that is done to anybody.

    Raises:
        ValueError: for no stream, or others below 0.
    """
    if streams < 1 or others < 0:
        raise ValueError("streams must be at least 1, others not below 0")
    return streams / (streams + others) if others > 0 else 0.0


def streams_within(max_harm: float, others: float) -> int:
    """The most streams whose estimated harm is within a budget; 0 if one stream is too much.

    `n / (n + m) <= h` is `n <= m h / (1 - h)`. Without others 256, the most of a run.

    Raises:
        ValueError: for a budget outside of 0 to 1, or others below 0.
    """
    _check_budget(max_harm)
    if others < 0:
        raise ValueError("others must not be below 0")
    if others == 0 or max_harm == 1:
        return 256
    return min(256, math.floor(others * max_harm / (1 - max_harm) + 1e-9))


def rate_within(max_harm: float, capacity_bps: float, free_bps: float) -> float:
    """The largest rate whose harm is within a budget: what is free, and so much of the rest.

    `free_bps` is what others leave while they have all that they want: the largest rate at which
    no queue grows. Beyond it each bit is taken from them: `h (L - free)` is what a budget allows.

    Raises:
        ValueError: for a budget outside of 0 to 1, or rates that make no sense.
    """
    _check_budget(max_harm)
    if not 0 <= free_bps <= capacity_bps or capacity_bps <= 0:
        raise ValueError("free_bps must be between 0 and capacity_bps")
    return free_bps + max_harm * (capacity_bps - free_bps)


def line_rate(probe: Probe, others: float) -> float:
    """The rate of the line: `T (n + m) / n`.

    Raises:
        ValueError: for others below 0.
    """
    if others < 0:
        raise ValueError("others must not be below 0")
    return probe.rate_bps * (probe.streams + others) / probe.streams


def _check_budget(max_harm: float) -> None:
    if not 0 <= max_harm <= 1:
        raise ValueError("max_harm must be between 0 and 1")
