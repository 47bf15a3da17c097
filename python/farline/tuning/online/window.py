"""What a running copy shows twice a second, and the level of a setting in it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

TICK_S = 0.5
"""Time between two ticks."""

_KEPT = 64
"""Ticks that are kept: half a minute, more than any measurement takes."""
_SLACK_S = 0.01
"""Ticks come a little early or late."""
_LEAST_BPS = 1.0
"""Stands for a rate of nothing, which has no logarithm."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Mean rates of the three stages since the tick before, and what goes with them.

    Rates are payload bits per second. `loss` is the share of segments or packets that were sent
    again. `left_bytes` is None while not all files are found.
    """

    at_s: float
    read_bps: float
    network_bps: float
    write_bps: float
    loss: float = 0.0
    left_bytes: float | None = None


@dataclass(slots=True)
class Window:
    """The last half minute."""

    _ticks: deque[Tick] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def add(self, tick: Tick) -> None:
        """One more."""
        self._ticks.append(tick)

    def _since(self, at_s: float) -> Iterator[Tick]:
        for tick in reversed(self._ticks):
            if tick.at_s <= at_s + _SLACK_S:
                return
            yield tick

    def level(self, span_s: float) -> float:
        """ln of the slowest stage's rate: of the means over the last `span_s`, not of the minima.

        Buffers let stages be ahead of each other for seconds: the minimum of every tick would be
        less than what gets through.
        """
        ticks = list(self._since(self._ticks[-1].at_s - span_s))
        sums = (
            sum(tick.read_bps for tick in ticks),
            sum(tick.network_bps for tick in ticks),
            sum(tick.write_bps for tick in ticks),
        )
        return math.log(max(_LEAST_BPS, min(sums) / len(ticks)))

    def loss(self, span_s: float) -> float:
        """Mean loss over the last `span_s`."""
        ticks = list(self._since(self._ticks[-1].at_s - span_s))
        return sum(tick.loss for tick in ticks) / len(ticks)

    def is_rising(self, since_s: float, slack: float) -> bool:
        """Whether the level has risen by more than `slack` since the first tick after `since_s`."""
        ticks = list(self._since(since_s))
        first, last = (
            min(tick.read_bps, tick.network_bps, tick.write_bps) for tick in (ticks[-1], ticks[0])
        )
        return math.log(max(_LEAST_BPS, last) / max(_LEAST_BPS, first)) > slack
