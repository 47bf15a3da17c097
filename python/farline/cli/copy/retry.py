"""Whether a copy that broke off is begun again, and when."""

from __future__ import annotations

from dataclasses import dataclass, field

from farline.errors import FarlineError

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0


@dataclass(eq=False, repr=False)
class Retry:
    """Decides after each attempt that failed; times are seconds of one steady clock.

    What may pass (a cut, a stall, a server that is full) is tried again, first after 1 s, then
    after twice as long each time, 30 s at most; progress begins that anew. It ends when nothing
    has moved for `retry_for_s`, or after `retries` attempts more. Where no session ever came
    about, only a server that is full is waited for: a wrong name will not become right.
    """

    retry_for_s: float
    retries: int | None = None
    began: bool = False
    """Whether any session has come about."""
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
        return error.may_retry and (self.began or error.kind == "busy" or bool(self.retries))
