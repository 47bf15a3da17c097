"""How long a copy will still take: a cost per file plus a rate, fitted to what was seen.

The model is time = a * files + b * bytes, both costs at least zero: a file costs names, answers
and syncs whatever its length, a byte costs what disk and path cost. Many small files after a
large one are then told apart, which a rate alone gets wrong by orders of magnitude. Least
squares over the intervals between reports, older ones weighing less, so that a path that
changes is followed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FORGET = 0.98
"""Weight of an interval against the one that follows it."""

_SCALE = float(1 << 20)
"""Bytes are counted in MiB in the sums, which keeps them of one magnitude with files."""


@dataclass(eq=False, repr=False)
class CopyEta:
    """Takes reports of progress; answers with seconds left."""

    _ff: float = 0.0
    _fm: float = 0.0
    _mm: float = 0.0
    _ft: float = 0.0
    _mt: float = 0.0
    _last: tuple[float, float, float] | None = field(default=None)

    def add(self, elapsed_s: float, files: int, size_bytes: int) -> None:
        """A report: so many files and bytes were done after `elapsed_s`."""
        now = (elapsed_s, float(files), size_bytes / _SCALE)
        last = self._last or (0.0, 0.0, 0.0)
        seconds, count, amount = (new - old for new, old in zip(now, last, strict=True))
        if count == 0 and amount == 0 and seconds >= 0:
            # Standing still is part of what comes next: its time is not lost.
            return
        self._last = now
        if seconds <= 0 or count < 0 or amount < 0:
            # A session begun anew counts from its start: only what follows is worth anything.
            return
        sums = (count * count, count * amount, amount * amount, count * seconds, amount * seconds)
        old = (self._ff, self._fm, self._mm, self._ft, self._mt)
        self._ff, self._fm, self._mm, self._ft, self._mt = (
            FORGET * before + more for before, more in zip(old, sums, strict=True)
        )

    def costs(self) -> tuple[float, float] | None:
        """Seconds per file and per byte; None while nothing was done."""
        solved = self._both()
        if solved is None:
            return None
        per_file, per_mib = solved
        return per_file, per_mib / _SCALE

    def _both(self) -> tuple[float, float] | None:
        """The least squares; where one cost comes out negative, the other alone."""
        determinant = self._ff * self._mm - self._fm * self._fm
        if determinant > 1e-9 * self._ff * self._mm > 0:
            per_file = (self._ft * self._mm - self._mt * self._fm) / determinant
            per_mib = (self._mt * self._ff - self._ft * self._fm) / determinant
            if per_file >= 0 and per_mib >= 0:
                return per_file, per_mib
        alone = [(0.0, self._mt / self._mm)] if self._mm > 0 else []
        alone += [(self._ft / self._ff, 0.0)] if self._ff > 0 else []
        return min(alone, key=self._error) if alone else None

    def _error(self, costs: tuple[float, float]) -> float:
        """Sum of squares up to what is the same for all: t'(t - 2 X c) + c' X'X c."""
        file, mib = costs
        fitted = file * file * self._ff + 2 * file * mib * self._fm + mib * mib * self._mm
        return fitted - 2 * (file * self._ft + mib * self._mt)

    def left_s(self, files: int, size_bytes: int) -> float | None:
        """Seconds that `files` more files of `size_bytes` in all will take; None if unknown."""
        costs = self.costs()
        if costs is None:
            return None
        return costs[0] * max(files, 0) + costs[1] * max(size_bytes, 0)
