"""The number of streams of a copy, tuned while it runs: its events in, wishes and `Tuned` out.

What decides is a `Tuner`, which whoever makes the job hands in: this room knows none. Here is when
it begins, what it is told, how a wish becomes a change, and what becomes of one that is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from farline.copying.stage_rates import StageMeter, StageRates
from farline.errors import FarlineError
from farline.logs import Log
from farline.tools.events import (
    Adjusted,
    Notice,
    NoticeKind,
    Progress,
    SessionBegun,
    Stages,
    StreamSamples,
    Tuned,
)

if TYPE_CHECKING:
    from farline.copying.adjusting import Adjusting
    from farline.spec._types import Adjustment, CopyProgress, CopyStages
    from farline.tools.events import Event

_LOG = Log(__name__)

WORTH_S = 30.0
"""A copy that takes less is not tuned: from a wrong start every tuner is far behind by then."""
FIRST_LOOK_S = 3.0
"""Before that nobody can say how long it will take."""
MOST_STREAMS = 64
"""More are not tried by themselves."""
RAMP_TRIPS = 12
"""Round trips in which a new stream comes to 63 % of its rate."""
_UNKNOWN_RAMP_S = 1.0
_ANSWER_S = 30.0
"""A change that is neither in force nor refused by then will not be."""
_TRIES = 2
"""How often a wish is refused before that counts: an earlier change may still be under way."""
_AGAIN_S = 2.0
_MOST_SPAN_S = 2.5
"""Samples further apart than that tell too little of a probe of seconds."""
_KEPT = 4
"""Rates of the last two seconds are what a line shows."""


@dataclass(frozen=True)
class TunerStart:
    """What a tuner is told when it begins."""

    streams: int
    most_streams: int
    ramp_s: float
    is_known: bool
    """Whether the number of streams comes from experience with the path."""


class TunerDecision(Protocol):
    """From now on so many streams, and why."""

    @property
    def setting(self) -> int:
        """Streams."""

    @property
    def reason(self) -> str:
        """One of the reasons of `Tuned`."""


class Tuner(Protocol):
    """Decides on the number of streams; `farline.tuning.online` has one."""

    @property
    def setting(self) -> int:
        """Streams that it wants now."""

    @property
    def settled_bps(self) -> float | None:
        """The rate of its setting, while it tries nothing; else None."""

    @property
    def noise(self) -> float:
        """Standard deviation of rates of one setting, of logs."""

    def look(self, at_s: float, rates: StageRates, left_bytes: float | None) -> None:
        """What was seen before the first decision."""

    def tick(
        self, at_s: float, rates: StageRates, left_bytes: float | None
    ) -> Sequence[TunerDecision]:
        """What was seen; what changes now."""

    def restart(self, setting: int, most: int | None = None) -> None:
        """So many streams are in force for another reason."""


MakeTuner = Callable[[TunerStart], Tuner]


@dataclass(frozen=True)
class Settled:
    """What a copy ended with, for later copies over the path."""

    streams: int
    rate_bps: float
    noise: float
    tried: int
    rtt_ms: float | None
    loaded_rtt_ms: float | None = None
    """The mean while data flowed."""


@dataclass(eq=False, repr=False)
class LiveTuning:
    """Tunes one copy over all its sessions."""

    make: MakeTuner
    adjusting: Adjusting
    most_streams: int | None = None
    """For how many there are ports."""
    is_known: Callable[[], bool] = lambda: False
    _tuner: Tuner | None = None
    _meter: StageMeter = field(default_factory=StageMeter)
    _recent: deque[StageRates] = field(default_factory=lambda: deque(maxlen=8))
    _progress: CopyProgress | None = None
    _clock_s: float = 0.0
    """Seconds of the rates that were taken: what passes while a change is under way is not."""
    _at_s: float = 0.0
    _before_s: float = 0.0
    """Seconds that earlier sessions took."""
    _rtt_us: int = 0
    _round_trips: tuple[int, int] = (0, 0)
    """How many times they were seen, and the sum of the shortest, in microseconds."""
    _streams: int = 0
    _wanted: int | None = None
    """Streams that were asked for, until the answer."""
    _asked_s: float = 0.0
    _again_s: float | None = None
    _refusals: int = 0
    _limits: int = 0
    _current: int = 0
    """Streams by the last decision."""
    _base: int = 0
    """Streams before the one that is tried, and their rate."""
    _base_bps: float = 0.0
    _tried_bps: float = 0.0
    """The rate of the one that was tried last."""
    _kept_bps: float | None = None
    """The rate of one that was kept just now."""
    _tried: int = 0
    _is_over: bool = False

    def note(self, event: Event) -> Iterator[Event]:
        """Takes an event of the copy; what is to be told of the tuning."""
        if self._is_over:
            return
        match event:
            case SessionBegun():
                self._begin_session()
            case Progress(report):
                self._progress = report
            case StreamSamples(columns):
                self._meter.note(columns)
                self._note_round_trips(columns)
            case Adjusted(change) if change["knob"] == "streams":
                yield from self._answered(change)
            case Stages(report):
                yield from self._stages(report)

    def wants(self, change: Adjustment) -> bool:
        """Whether this answers what was asked for here."""
        if self._wanted is None or change["knob"] != "streams":
            return False
        return bool(change.get("refused")) or change.get("after") == self._wanted

    def settled(self) -> Settled | None:
        """What it has come to, if it holds a setting whose rate is known."""
        tuner = self._tuner
        if tuner is None or (rate_bps := tuner.settled_bps) is None:
            return None
        rtt_ms = self._rtt_us / 1000 if self._rtt_us else None
        seen, sum_us = self._round_trips
        loaded_ms = sum_us / seen / 1000 if seen else None
        return Settled(tuner.setting, rate_bps, tuner.noise, self._tried, rtt_ms, loaded_ms)

    def _begin_session(self) -> None:
        self._before_s += self._at_s
        self._at_s, self._wanted, self._again_s = 0.0, None, None
        self._meter.begin()
        self._recent.clear()
        if self._tuner is not None:
            self._tuner.restart(self._streams)

    def _note_round_trips(self, columns: Any) -> None:
        known = (
            rtt for end, rtt in zip(columns["end"], columns["rtt_us"], strict=True)
            if end == 0 and rtt > 0
        )  # fmt: skip
        least = min(known, default=0)
        if least and (not self._rtt_us or least < self._rtt_us):
            self._rtt_us = least
        if least:
            seen, sum_us = self._round_trips
            self._round_trips = seen + 1, sum_us + least

    def _stages(self, report: CopyStages) -> Iterator[Event]:
        self._at_s = report["at_us"] / 1e6
        if self._again_s is not None and self._at_s >= self._again_s:
            yield from self._ask(self._tuner.setting if self._tuner else self._streams)
            return
        if self._wanted is not None or self._again_s is not None or report["opening_streams"]:
            if self._wanted is not None and self._at_s > self._asked_s + _ANSWER_S:
                yield self._end(f"no answer to a change within {_ANSWER_S:g} s")
            return
        self._streams = report["streams"]
        rates = self._meter.add(report)
        if rates is None or rates.network_bps <= 0:
            # While nothing moves (files are compared, say) no number of streams is better.
            return
        if rates.span_s > _MOST_SPAN_S:
            yield self._end(f"--interval: a rate every {rates.span_s:.3g} s is too seldom")
            return
        yield from self._rated(rates)

    def _rated(self, rates: StageRates) -> Iterator[Event]:
        self._recent.append(rates)
        self._clock_s += rates.span_s
        if self._tuner is None:
            if not self._is_worth_it():
                return
            yield self._begin()
            return
        self._current, self._kept_bps = self._streams, None
        for decision in self._tuner.tick(self._clock_s, rates, self._left_bytes()):
            yield self._told(decision)
        if self._tuner.setting != self._streams:
            yield from self._ask(self._tuner.setting)

    def _left_bytes(self) -> float | None:
        one = self._progress
        if one is None or not one["all_found"]:
            return None
        return max(0.0, one["found_bytes"] - one["settled_bytes"])

    def _rate_bps(self) -> float:
        """What gets through, over the last two seconds."""
        last = list(self._recent)[-_KEPT:]
        stages = [(one.read_bps, one.network_bps, one.write_bps) for one in last]
        return min(map(sum, zip(*stages, strict=True))) / len(stages) if stages else 0.0

    def _is_worth_it(self) -> bool:
        elapsed_s = self._before_s + self._at_s
        if elapsed_s >= WORTH_S:
            return True
        left, rate_bps = self._left_bytes(), self._rate_bps()
        if elapsed_s < FIRST_LOOK_S or left is None or rate_bps <= 0:
            return False
        return elapsed_s + 8 * left / rate_bps >= WORTH_S

    def _begin(self) -> Event:
        ramp_s = RAMP_TRIPS * self._rtt_us / 1e6 if self._rtt_us else _UNKNOWN_RAMP_S
        most = max(MOST_STREAMS, self._streams)
        most = min(most, self.most_streams or most)
        start = TunerStart(self._streams, most, ramp_s, self.is_known())
        self._tuner = self.make(start)
        at_s = self._clock_s - sum(one.span_s for one in self._recent)
        for rates in self._recent:
            at_s += rates.span_s
            self._tuner.look(at_s, rates, None)
        _LOG.debug("tuning begins", streams=start.streams, most=most, ramp_s=ramp_s)
        line = f"the number of streams is tuned while the copy runs, from {self._streams} on"
        return Notice(NoticeKind.CHOICE, line)

    def _told(self, decision: TunerDecision) -> Event:
        before, streams, reason = self._current, decision.setting, decision.reason
        rate_bps, before_bps = self._rate_bps(), None
        if reason in ("probe", "small"):
            self._base, self._tried = before, self._tried + 1
            self._base_bps = self._kept_bps or rate_bps
        elif reason in ("back", "confirm"):
            self._tried_bps, before_bps = rate_bps, self._base_bps
        elif reason == "keep":
            # After it was measured once more, it is the one before that is in force.
            is_again = before != streams
            before_bps = rate_bps if is_again else self._base_bps
            rate_bps = self._tried_bps if is_again else rate_bps
            before, self._kept_bps = self._base, rate_bps
        self._current = streams
        _LOG.debug("tuned", streams=streams, reason=reason, rate_bps=round(rate_bps))
        return Tuned(self._at_s, before, streams, reason, before_bps, rate_bps)

    # Wishes and their answers.

    def _ask(self, streams: int) -> Iterator[Event]:
        self._again_s = None
        if streams == self._streams:
            return
        self._wanted, self._asked_s = streams, self._at_s
        try:
            self.adjusting.want({"streams": streams})
        except FarlineError as error:
            yield self._end(error.message)

    def _answered(self, change: Adjustment) -> Iterator[Event]:
        after, refused = change.get("after"), change.get("refused")
        if self._tuner is None:
            return
        if self._wanted is None or (not refused and after != self._wanted):
            yield self._end(f"the number of streams was set to {after} by hand")
            return
        wanted, self._wanted = self._wanted, None
        self._meter.begin()
        if not refused:
            self._refusals, self._streams = 0, wanted
            return
        # Of a change that was made in part, `after` is what there is now.
        self._streams = int((change.get("before") if after == wanted else after) or self._streams)
        yield from self._refused(wanted, refused)

    def _refused(self, wanted: int, why: str) -> Iterator[Event]:
        """Asks once more, then takes it for a limit, and a second limit for the end."""
        assert self._tuner is not None
        self._refusals += 1
        if self._refusals < _TRIES:
            self._again_s = self._at_s + _AGAIN_S
            return
        self._refusals, self._limits = 0, self._limits + 1
        if self._limits > 1 or wanted < self._streams:
            yield self._end(why)
            return
        self._tuner.restart(self._streams, self._streams)
        line = f"no more than {self._streams} streams: {why}"
        yield Notice(NoticeKind.NOT_TUNED, line)

    def _end(self, why: str) -> Event:
        self._is_over, self._tuner = True, None
        _LOG.debug("tuning ends", reason=why)
        return Notice(NoticeKind.NOT_TUNED, f"the number of streams is no longer tuned: {why}")
