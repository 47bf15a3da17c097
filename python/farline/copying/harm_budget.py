"""A copy that keeps its harm to others within a budget: its samples in, wishes for a rate out.

What decides is `farline.fairness.rate_budget`; here is what it is told and how its rate comes into
force.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farline.copying.stage_rates import StageMeter
from farline.errors import FarlineError
from farline.fairness.rate_budget import PathLook, RateBudget
from farline.logs import Log
from farline.spec.units import rate_human
from farline.tools.events import (
    Adjusted,
    Notice,
    NoticeKind,
    SessionBegun,
    Stages,
    StreamSamples,
)

if TYPE_CHECKING:
    from farline.copying.adjusting import Adjusting
    from farline.spec._types import Adjustment
    from farline.tools.events import Event

_LOG = Log(__name__)

_WORTH = 0.04
"""A rate that differs by less is left as it is."""
_ANSWER_S = 10.0
"""A change that is not in force by then is asked for anew."""


@dataclass(eq=False, repr=False)
class HarmBudget:
    """Holds one copy, all its sessions, to the rate that its budget allows."""

    budget: RateBudget
    adjusting: Adjusting
    _meter: StageMeter = field(default_factory=StageMeter)
    _least_us: dict[int, int] = field(default_factory=dict)
    """The shortest round trip of each stream."""
    _queues: list[tuple[int, int, int]] = field(default_factory=list)
    """Queue, round trip and shortest round trip of every stream's samples since the last look."""
    _in_force_bps: float = 0.0
    _asked_s: float | None = None
    _is_over: bool = False

    def first_bps(self) -> int:
        """The rate that the copy begins with."""
        self._in_force_bps = self.budget.rate_bps
        return int(self.budget.rate_bps)

    def note(self, event: Event) -> Iterator[Event]:
        """Takes an event of the copy; what is to be told."""
        if self._is_over:
            return
        match event:
            case SessionBegun():
                # Streams of another session have another way, maybe.
                self._meter.begin()
                self._least_us.clear()
                self._asked_s = None
            case StreamSamples(columns):
                self._meter.note(columns)
                self._note_round_trips(columns)
            case Adjusted(change) if change["knob"] == "total-rate":
                yield from self._answered(change)
            case Stages(report):
                if (rates := self._meter.add(report)) is not None:
                    look = PathLook(rates.network_bps, self._round_trip_s(), rates.again_bps)
                    yield from self._ask(self.budget.step(look), report["at_us"] / 1e6)

    def wants(self, change: Adjustment) -> bool:
        """Whether this answers what was asked for here."""
        return change["knob"] == "total-rate" and self._asked_s is not None

    def label(self) -> dict[str, Any]:
        """What stands beside the record."""
        return {
            "budget": self.budget.max_harm, "rate_bps": round(self.budget.rate_bps),
            "line_bps": round(self.budget.line_bps), "floor_bps": round(self.budget.floor_bps),
        }  # fmt: skip

    def _note_round_trips(self, columns: Mapping[str, Any]) -> None:
        """Of all queues since the last look the middle one is believed."""
        names = ("end", "stream", "rtt_us")
        for end, stream, rtt_us in zip(*(columns[name] for name in names), strict=True):
            if end != 0 or rtt_us <= 0:
                continue
            least_us = self._least_us[stream] = min(rtt_us, self._least_us.get(stream, rtt_us))
            self._queues.append((rtt_us - least_us, rtt_us, least_us))

    def _round_trip_s(self) -> tuple[float, float] | None:
        seen, self._queues = sorted(self._queues), []
        if not seen:
            return None
        _, now_us, least_us = seen[len(seen) // 2]
        return now_us / 1e6, least_us / 1e6

    def _ask(self, rate_bps: float, at_s: float) -> Iterator[Event]:
        is_waiting = self._asked_s is not None and at_s < self._asked_s + _ANSWER_S
        if is_waiting or abs(rate_bps / self._in_force_bps - 1) < _WORTH:
            return
        self._asked_s = at_s
        try:
            self.adjusting.want({"total_rate_bps": int(rate_bps)})
        except FarlineError as error:
            yield self._end(error.message)

    def _answered(self, change: Adjustment) -> Iterator[Event]:
        if self._asked_s is None:
            yield self._end(f"the rate was set to {_rate_text(change.get('after'))} by hand")
            return
        self._asked_s = None
        if why := change.get("refused"):
            yield self._end(why)
            return
        self._in_force_bps = float(change.get("after") or self._in_force_bps)

    def _end(self, why: str) -> Event:
        self._is_over = True
        _LOG.warning("the budget of harm is no longer kept", reason=why)
        line = f"--max-harm: the rate is no longer held to the budget: {why}"
        return Notice(NoticeKind.NOT_TUNED, line)


def _rate_text(rate_bps: int | None) -> str:
    return rate_human(rate_bps) if rate_bps else "no limit"
