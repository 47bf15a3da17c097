"""Readers and writers by themselves, by what waits between the stages of a copy.

Pure, as the controller. A buffer that runs empty wants more readers, one that is full more writers;
whether more of them bring more is measured, and fewer are tried where they do not: disks that seek
lose by too many.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from farline.tuning.online.controller import Decision, OnlineController
from farline.tuning.online.window import Tick

EVERY_S = 2.0
EMPTY, FULL = 0.15, 0.85
"""Fill of a buffer that counts as empty, and as full."""
_STEP = 1.5
_GAIN_UP, _GAIN_DOWN = 1.03, 1.02
_REST_S, _MOST_REST_S = 20.0, 160.0
_SLACK_S = 0.01


@dataclass(slots=True)
class SideRule:
    """The count of one side."""

    count: int
    most: int
    _phase: Literal["rest", "up", "down"] = "rest"
    _since_s: float = 0.0
    _rest_until_s: float = 0.0
    _rest_s: float = _REST_S
    _before: int = 0
    _before_bps: float = 0.0
    _rates: deque[float] = field(default_factory=lambda: deque(maxlen=4))

    def tick(self, at_s: float, rate_bps: float, is_wanted: bool) -> int:
        """Takes the side's rate, and whether it holds the others up; the count from now on."""
        self._rates.append(rate_bps)
        if at_s - self._since_s + _SLACK_S < EVERY_S:
            return self.count
        mean_bps = sum(self._rates) / len(self._rates)
        if self._phase == "rest":
            if is_wanted and at_s + _SLACK_S >= self._rest_until_s:
                self._begin(at_s, mean_bps)
        elif self._phase == "up":
            self._judge_up(at_s, mean_bps)
        else:
            self._judge_down(at_s, mean_bps)
        return self.count

    def _go(self, phase: Literal["rest", "up", "down"], at_s: float, count: int) -> None:
        self._phase, self._since_s, self.count = phase, at_s, max(1, min(self.most, count))

    def _begin(self, at_s: float, rate_bps: float) -> None:
        self._before, self._before_bps = self.count, rate_bps
        more = min(self.most, max(self.count + 1, round(self.count * _STEP)))
        if more > self.count:
            self._go("up", at_s, more)
        else:
            self._down(at_s)

    def _judge_up(self, at_s: float, rate_bps: float) -> None:
        if rate_bps > _GAIN_UP * self._before_bps:
            self._rest_s = _REST_S
            self._go("rest", at_s, self.count)
        else:
            self._down(at_s)

    def _down(self, at_s: float) -> None:
        fewer = min(self._before - 1, round(self._before / _STEP))
        if fewer < 1:
            self._give_up(at_s)
        else:
            self._go("down", at_s, fewer)

    def _judge_down(self, at_s: float, rate_bps: float) -> None:
        if rate_bps > _GAIN_DOWN * self._before_bps:
            self._before, self._before_bps, self._rest_s = self.count, rate_bps, _REST_S
            self._down(at_s)
        else:
            self._give_up(at_s)

    def _give_up(self, at_s: float) -> None:
        """The count before stays, for a while."""
        self._go("rest", at_s, self._before)
        self._rest_until_s = at_s + self._rest_s
        self._rest_s = min(_MOST_REST_S, 2 * self._rest_s)


@dataclass(slots=True)
class ThreeCounts:
    """Readers, streams and writers of one copy."""

    readers: SideRule
    streams: OnlineController
    writers: SideRule

    def tick(self, tick: Tick, send_fill: float, receive_fill: float) -> list[Decision]:
        """Takes what was seen, and how full the buffers are (0 to 1); decisions on streams."""
        is_held_up = receive_fill > FULL
        is_starved = send_fill < EMPTY and not is_held_up
        self.readers.tick(tick.at_s, tick.read_bps, is_starved)
        self.writers.tick(tick.at_s, tick.write_bps, is_held_up)
        if is_starved or is_held_up:
            return self.streams.tick(tick)
        rate = tick.network_bps
        return self.streams.tick(Tick(tick.at_s, rate, rate, rate, tick.loss, tick.left_bytes))

    @property
    def counts(self) -> tuple[int, int, int]:
        """Readers, streams and writers from now on."""
        return self.readers.count, self.streams.setting, self.writers.count
