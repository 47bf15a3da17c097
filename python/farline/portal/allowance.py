"""How often somebody may ask: a bucket of tokens for each name, filled at a steady rate."""

from __future__ import annotations

import threading
from collections.abc import Callable

from farline.errors import BusyError

MOST_NAMES = 10_000
"""Names that are remembered; those that asked longest ago are forgotten first."""


class Allowance:
    """Allows `per_s` on average, and `burst` at once."""

    def __init__(self, per_s: float, burst: float, now: Callable[[], float]) -> None:
        self._per_s, self._burst, self._now = per_s, burst, now
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}
        """What each name has left, and when that was."""

    def take(self, name: str, what: str) -> None:
        """Takes one.

        Raises:
            BusyError: when none is left; it says when there will be one.
        """
        with self._lock:
            left, at_s = self._refilled(name)
            if left < 1:
                wait_s = (1 - left) / self._per_s
                raise BusyError(f"too many {what}: try again in {wait_s:.1f} s", wait_s)
            self._left.pop(name, None)
            self._left[name] = (left - 1, at_s)
            if len(self._left) > MOST_NAMES:
                del self._left[next(iter(self._left))]

    def _refilled(self, name: str) -> tuple[float, float]:
        now = self._now()
        left, then = self._left.get(name, (self._burst, now))
        return min(self._burst, left + (now - then) * self._per_s), now
