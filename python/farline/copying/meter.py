"""How fast a copy is and how long it will take, from its reports of progress."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farline.models.copy_eta import CopyEta

if TYPE_CHECKING:
    from farline.spec._types import CopyProgress

NOW_S = 2.0
"""Seconds over which the rate of now is taken."""


@dataclass(eq=False, repr=False)
class Meter:
    """Takes reports, oldest first; sessions begun anew are told by `begin`."""

    latest: CopyProgress | None = None
    _eta: CopyEta = field(default_factory=CopyEta)
    _recent: deque[tuple[float, int]] = field(default_factory=deque)
    _before_s: float = 0.0
    _before_bytes: int = 0

    def begin(self, paused_s: float = 0.0) -> None:
        """A session begins; what earlier ones moved counts on."""
        if self.latest is not None:
            self._before_s += self.latest["elapsed_us"] / 1e6 + paused_s
            self._before_bytes += self.latest["moved_bytes"]
        self.latest = None
        self._recent.clear()

    def add(self, progress: CopyProgress) -> None:
        """A report."""
        self.latest = progress
        elapsed_s = progress["elapsed_us"] / 1e6
        # What a journal or the other end had already cost no time: it says nothing of the rest.
        worked = max(0, progress["settled_bytes"] - progress["spared_bytes"])
        self._eta.add(elapsed_s, self._settled(progress), worked)
        self._recent.append((elapsed_s, progress["moved_bytes"]))
        while len(self._recent) > 2 and elapsed_s - self._recent[1][0] >= NOW_S:
            self._recent.popleft()

    @staticmethod
    def _settled(progress: CopyProgress) -> int:
        return progress["settled_files"] + progress["failed_files"]

    @property
    def elapsed_s(self) -> float:
        """Seconds since the first session began, pauses between sessions included."""
        return self._before_s + (self.latest["elapsed_us"] / 1e6 if self.latest else 0.0)

    @property
    def moved_bytes(self) -> int:
        """Payload moved by all sessions."""
        return self._before_bytes + (self.latest["moved_bytes"] if self.latest else 0)

    def rate_now_bps(self) -> float:
        """Bits per second over the last two seconds."""
        if len(self._recent) < 2:
            return self.rate_mean_bps()
        (first_s, first), (last_s, last) = self._recent[0], self._recent[-1]
        return 8 * (last - first) / (last_s - first_s) if last_s > first_s else 0.0

    def rate_mean_bps(self) -> float:
        """Bits per second since the beginning."""
        return 8 * self.moved_bytes / self.elapsed_s if self.elapsed_s > 0 else 0.0

    def share(self) -> float | None:
        """Part of the bytes (of the names, where no file has any) settled; None while unknown."""
        one = self.latest
        if one is None or not one["all_found"]:
            return None
        if one["found_bytes"]:
            return min(1.0, one["settled_bytes"] / one["found_bytes"])
        return min(1.0, self._settled(one) / one["found_files"]) if one["found_files"] else 1.0

    def left_s(self) -> float | None:
        """Seconds left; None while not all is found, or nothing has moved."""
        one = self.latest
        if one is None or not one["all_found"]:
            return None
        files = one["found_files"] - self._settled(one)
        left_bytes = one["found_bytes"] - one["settled_bytes"]
        costs = self._eta.costs()
        if costs is None or (left_bytes > 0 and costs[1] <= 0):
            # No byte has been timed: only what has moved so far says how fast they go.
            rate_bps = self.rate_mean_bps()
            return 8 * left_bytes / rate_bps if left_bytes > 0 and rate_bps > 0 else None
        return self._eta.left_s(files, left_bytes)
