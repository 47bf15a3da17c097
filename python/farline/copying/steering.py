"""What changes a copy by itself while it runs: tuning of its streams, a budget of harm, a warning.

`CopyJob` hands every event in and tells what comes out. All of it is imported when it is needed: a
copy of a few small files is over before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from farline.spec.extras import has_analysis
from farline.tools.events import (
    Adjusted,
    Event,
    Notice,
    NoticeKind,
    Progress,
    SessionBegun,
    StreamSamples,
    Tuned,
)

if TYPE_CHECKING:
    from farline.copying.adjusting import Adjusting
    from farline.copying.harm_budget import HarmBudget
    from farline.copying.live_tuning import LiveTuning, MakeTuner
    from farline.copying.request import CopyRequest
    from farline.copying.session import Attempt, Sessions
    from farline.copying.shared_path import SharedPathWatch

_Told = TypeVar("_Told", bound="Event | None")

NO_ANALYSIS = (
    "the number of streams is not tuned while data move: that needs pip install 'farline[analysis]'"
)

AFTER_S = 1.0
"""Seconds of a session before its tuning is made ready."""


@dataclass(eq=False, repr=False)
class Steering:
    """Steers one copy over all its sessions."""

    request: CopyRequest
    sessions: Sessions
    adjusting: Adjusting
    make_tuner: MakeTuner | None = None
    clock: Callable[[], float] = time.monotonic
    _tuning: LiveTuning | None = None
    _budget: HarmBudget | None = None
    _watch: SharedPathWatch | None = None
    _tuned: list[Tuned] = field(default_factory=list)
    _begun_s: float = 0.0

    def __post_init__(self) -> None:
        """Where a budget is asked for the copy begins with a low rate."""
        if self.request.is_remote or not self.request.tunes_live:
            # A copy between two other hosts is tuned by the one that runs it.
            self.make_tuner = None
        if self.request.max_harm is not None:
            self._budget = self._harm_budget(self.request.max_harm)
            self.adjusting.want({"total_rate_bps": self._budget.first_bps()})
        if self.request.spec.get("transport", "tcp") == "tcp":
            return
        from farline.copying.shared_path import SharedPathWatch, stubborn_name

        if (name := stubborn_name(self.request.spec)) is not None:
            self._watch = SharedPathWatch(name)

    def _harm_budget(self, max_harm: float) -> HarmBudget:
        from farline.copying.harm_budget import HarmBudget
        from farline.fairness.rate_budget import RateBudget

        budget = RateBudget(max_harm)
        if most_bps := (self.request.spec.get("copy") or {}).get("total_rate_bps"):
            budget = RateBudget(max_harm, float(most_bps))
        return HarmBudget(budget, self.adjusting)

    def note(self, event: Event | None) -> Iterator[Event]:
        """Takes an event of the copy; what is to be told besides."""
        if event is None:
            return
        if isinstance(event, SessionBegun):
            self._begun_s = self.clock()
        yield from self._begin_tuning(event)
        for one in (self._budget, self._tuning):
            if one is not None:
                yield from map(self.marked, one.note(event))
        if self._watch is not None and isinstance(event, StreamSamples):
            line = self._watch.add(event.columns)
            if line is not None:
                yield Notice(NoticeKind.SHARED, line)

    def _begin_tuning(self, event: Event) -> Iterator[Event]:
        """Once the copy has gone on for a moment."""
        is_due = isinstance(event, Progress) and self.clock() >= self._begun_s + AFTER_S
        if self.make_tuner is None or not is_due:
            return
        from farline.copying.live_tuning import WORTH_S, LiveTuning

        if not has_analysis():
            # Shorter copies would not be tuned either.
            if self.clock() >= self._begun_s + WORTH_S:
                self.make_tuner = None
                yield Notice(NoticeKind.NOT_TUNED, NO_ANALYSIS)
            return
        sessions, most = self.sessions, self.request.most_streams
        self._tuning = LiveTuning(
            self.make_tuner, self.adjusting, most, lambda: sessions.is_known
        )  # fmt: skip
        self.make_tuner = None

    def marked(self, event: _Told) -> _Told | Adjusted:
        """Remembers what tuning decided, and knows changes made here from those of people."""
        if isinstance(event, Tuned):
            self._tuned.append(event)
        if isinstance(event, Adjusted):
            known = (one for one in (self._tuning, self._budget) if one is not None)
            if any(one.wants(event.change) for one in known):
                return Adjusted(event.change, by_tuning=True)
        return event

    def labels(self) -> dict[str, Any]:
        """What stands beside the record of the session that has ended."""
        found: dict[str, Any] = {}
        if self._tuned:
            from farline.copying.tuned_record import tuning_label

            settled = None if self._tuning is None else self._tuning.settled()
            found["tuning"] = tuning_label(self._tuned, settled)
            self._tuned = []
        if self._budget is not None:
            found["max_harm"] = self._budget.label()
        return found

    def learn(self, attempt: Attempt) -> None:
        """Later copies over the path begin with what this one found."""
        settled = None if self._tuning is None else self._tuning.settled()
        paths, record = self.request.paths, attempt.record
        if settled is None or paths is None or record is None or attempt.error is not None:
            return
        from farline.copying.tuned_record import keep_settled

        keep_settled(record, settled, self.sessions.far, paths)
