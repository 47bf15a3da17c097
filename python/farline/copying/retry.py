"""Whether a copy that broke off is begun again, and when; attempts with pauses between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.copying.session import Attempt, Sessions
from farline.copying.slow_lines import SlowLine
from farline.errors import FarlineError
from farline.logs import Log
from farline.tools import Stop, StopQuestion
from farline.tools.events import Progress, RetryScheduled

if TYPE_CHECKING:
    from farline.tools.events import Event, Steps

_LOG = Log(__name__)

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0


@dataclass(eq=False, repr=False)
class RetryPolicy:
    """Decides after each attempt that failed; times are seconds of one steady clock.

    What may pass (a cut, a stall, a server that is full) is tried again, first after 1 s, then
    after twice as long each time, 30 s at most; progress begins that anew. It ends when nothing
    has moved for `retry_for_s`, or after `retries` attempts more. Where no session has moved
    anything, only a server that is full is waited for, since a wrong name will not become right,
    and a session that ran until it was cut is begun again.
    """

    retry_for_s: float
    retries: int | None = None
    began: bool = False
    """Whether any session has moved something."""
    ran: bool = False
    """Whether any session has run. An end that breaks the protocol then will do so again."""
    _tried: int = field(default=0, init=False)
    _wait_s: float = field(default=FIRST_WAIT_S, init=False)
    _moved_s: float | None = field(default=None, init=False)

    def moved(self, now_s: float) -> None:
        """Something was settled or moved."""
        self._moved_s, self._wait_s, self.began = now_s, FIRST_WAIT_S, True

    def wait_s(self, error: FarlineError, now_s: float) -> float | None:
        """Seconds to wait before the next attempt; None when there is to be none."""
        if self._moved_s is None:
            self._moved_s = now_s
        if not self._may_pass(error):
            return None
        if self.retries is not None and self._tried >= self.retries:
            return None
        wait_s = max(self._wait_s, error.retry_after_s or 0.0)
        if now_s + wait_s - self._moved_s > self.retry_for_s:
            return None
        self._tried += 1
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)
        return wait_s

    def _may_pass(self, error: FarlineError) -> bool:
        if error.permanent:
            return False
        is_cut = self.ran and error.kind in ("timeout", "unreachable")
        may_pass = self.began or is_cut or error.kind == "busy" or bool(self.retries)
        return error.may_retry and may_pass


@dataclass(eq=False, repr=False)
class RepeatedSessions:
    """Attempts with pauses between, as the policy decides; `ended` is told of each that ends."""

    sessions: Sessions
    policy: RetryPolicy
    should_stop: StopQuestion
    ended: Callable[[Attempt], Iterable[Event]] = lambda _attempt: ()
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _tried: int = field(default=0, init=False)
    _line: SlowLine = field(default_factory=SlowLine, init=False)
    _best: tuple[int, ...] = (0, 0, 0)
    """Most names and bytes settled, and bytes moved, in any session: less than that is no news."""

    def run(self, document: Mapping[str, Any], receipt: Path | None) -> Steps[Attempt]:
        """The last attempt."""
        now = document
        while True:
            self._tried += 1
            _LOG.debug("attempt begins", attempt=self._tried)
            attempt = yield from self._attempt(now, receipt)
            self._say(attempt)
            yield from self.ended(attempt)
            if attempt.error is None or self.should_stop() is not Stop.GO_ON:
                return attempt
            wait_s = self.policy.wait_s(attempt.error, self.clock())
            if wait_s is None:
                return attempt
            _LOG.debug(
                "waiting before the next attempt", wait_s=wait_s, reason=attempt.error.message
            )
            yield RetryScheduled(attempt.error, wait_s)
            if not (yield from self._pause(wait_s)):
                return attempt
            streams = 1 if attempt.record is None else attempt.record["spec"].get("streams", 1)
            now = self._line.next_document(document, streams)

    def _say(self, attempt: Attempt) -> None:
        """What an attempt came to, in the log."""
        record, error = attempt.record, attempt.error
        _LOG.debug(
            "attempt ended", attempt=self._tried,
            run=None if record is None else record["run_id"],
            status="failed" if record is None else record["status"],
            kind=None if error is None else error.kind,
            reason=None if error is None else error.message,
        )  # fmt: skip

    def _attempt(self, document: Mapping[str, Any], receipt: Path | None) -> Steps[Attempt]:
        """One attempt, whose progress is noted."""
        steps = self.sessions.attempt(document, receipt, self.should_stop)
        try:
            while True:
                event = next(steps)
                if isinstance(event, Progress):
                    self._note(event)
                yield event
        except StopIteration as end:
            attempt: Attempt = end.value
            return attempt
        finally:
            steps.close()

    def _note(self, event: Progress) -> None:
        one = event.report
        # Whether or not anything has moved: RBUDP tells of a blast at its end.
        self.policy.ran = True
        self._line.note(one, self.clock())
        now = (one["settled_files"], one["settled_bytes"], one["moved_bytes"])
        best = tuple(map(max, now, self._best))
        if best != self._best:
            self._best = best
            self.policy.moved(self.clock())

    def _pause(self, wait_s: float) -> Steps[bool]:
        """Waits; says whether to go on then."""
        until = self.clock() + wait_s
        while self.should_stop() is Stop.GO_ON:
            left = until - self.clock()
            if left <= 0:
                return True
            yield None
            self.sleep(min(left, 0.1))
        return False
