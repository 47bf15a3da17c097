"""Which pair of nodes carries which part: taken in order, given back by those that failed. Pure.

Every pair takes the next part when it has ended one, so that a slow one carries fewer. A pair that
fails gives its part back; what it proved of it, whoever carries it next goes on from. A pair that
fails `MOST_FAILURES` times in a row is given up, and so is the copy when none is left; one that
comes back later is given up at its first failure. A part that
the node before still holds (a server that has not noticed yet that nobody is there) is no failure
of whoever finds it so: it is waited for.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from farline.cluster.plan import Part
from farline.errors import FarlineError

MOST_FAILURES = 3
MOST_TRIES = 8
"""A part that so many attempts failed at is not the fault of nodes."""
FIRST_PAUSE_S = 1.0
LONGEST_BUSY_S = 600.0
"""So long a part may be held by a node that is given up."""


class PartsQueue:
    """Parts that are to be carried by `lanes` pairs. May be asked from any thread."""

    def __init__(
        self, parts: Iterable[Part], lanes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Nothing is taken yet."""
        self._waiting = deque(parts)
        self._under_way = 0
        self._lanes = lanes
        self._tries: dict[int, int] = {}
        self._failures: dict[int, int] = {}
        self._returned: set[int] = set()
        """Pairs that came back, and have carried nothing since."""
        self._busy_s: dict[int, float] = {}
        self._clock = clock
        self._changed = threading.Condition()
        self.error: FarlineError | None = None
        """Why not all of them can be carried."""

    def take(self, timeout_s: float, share: float = 1.0) -> Part | None:
        """The next part; None where there is none now. `is_over` says whether there may be.

        A pair that is slower than others, by `share` of the fastest, takes the first part that is
        shorter than the longest by as much: its first one does not last to the end of the copy.
        """
        with self._changed:
            if not self._waiting and not self._is_over():
                self._changed.wait(timeout_s)
            if not self._waiting or self.error is not None:
                return None
            self._under_way += 1
            return self._fitting(share)

    def _fitting(self, share: float) -> Part:
        if share >= 1.0:
            return self._waiting.popleft()
        most = share * max(part.size for part in self._waiting)
        fits = next((part for part in self._waiting if part.size <= most), None)
        part = fits or min(self._waiting, key=lambda one: one.size)
        self._waiting.remove(part)
        return part

    @property
    def is_over(self) -> bool:
        """Whether nothing will be waiting any more."""
        with self._changed:
            return self._is_over()

    def _is_over(self) -> bool:
        return self.error is not None or not (self._waiting or self._under_way)

    def done(self, lane: int, part: Part) -> None:
        """A part has been carried."""
        with self._changed:
            self._under_way -= 1
            self._failures[lane] = 0
            self._returned.discard(lane)
            self._tries.pop(part.number, None)
            self._changed.notify_all()

    def failed(self, lane: int, part: Part, error: FarlineError) -> float | None:
        """A part has not: it waits for another pair. Seconds to wait before this one goes on; None
        where it is given up."""
        with self._changed:
            self._under_way -= 1
            if error.kind == "busy":
                return self._held(part, error)
            self._waiting.appendleft(part)
            if lane not in self._returned:
                self._tries[part.number] = self._tries.get(part.number, 0) + 1
            failures = self._failures[lane] = self._failures.get(lane, 0) + 1
            if self._tries.get(part.number, 0) >= MOST_TRIES:
                self.error = self.error or error
            self._changed.notify_all()
            if failures >= MOST_FAILURES:
                self._give_up(error)
                return None
            return FIRST_PAUSE_S * 2.0 ** (failures - 1)

    def _held(self, part: Part, error: FarlineError) -> float:
        """A part that another node still has: after all others."""
        self._waiting.append(part)
        now_s = self._clock()
        if now_s - self._busy_s.setdefault(part.number, now_s) > LONGEST_BUSY_S:
            self.error = self.error or error
        self._changed.notify_all()
        return FIRST_PAUSE_S

    def stopped(self, part: Part) -> None:
        """A part was not carried to its end, because somebody stopped the copy."""
        with self._changed:
            self._under_way -= 1
            self._waiting.appendleft(part)
            self._changed.notify_all()

    @property
    def left(self) -> list[Part]:
        """Parts that nobody has carried."""
        with self._changed:
            return list(self._waiting)

    def lost(self, error: FarlineError) -> None:
        """A pair could not begin at all."""
        with self._changed:
            self._give_up(error)
            self._changed.notify_all()

    def joined(self, lane: int) -> None:
        """A pair takes parts from now on that did not before: a new one, or one that is back."""
        with self._changed:
            self._lanes += 1
            self._failures[lane] = MOST_FAILURES - 1
            self._returned.add(lane)

    @property
    def lanes(self) -> int:
        """How many pairs carry parts."""
        with self._changed:
            return self._lanes

    def _give_up(self, error: FarlineError) -> None:
        self._lanes -= 1
        if self._lanes == 0 and (self._waiting or self._under_way):
            self.error = self.error or error
