"""Whether the rate of a setting has changed by itself, and how noisy it is."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

BLOCK_S = 1.0
_APART = 6
"""Blocks between two whose difference is noise: less would miss noise that changes slowly."""
_WEIGHT = 0.05
_TO_SD = 1.25
"""Mean absolute difference to standard deviation, of normal noise."""
_FIRST_NOISE = 0.06
_FOLLOW = 0.03
"""Part by which the reference follows each second."""
_MOST_PATIENCE = 4.0


@dataclass(slots=True)
class ChangeAlarm:
    """Takes the levels (ln bit/s) of one-second blocks of one setting; tells when it has changed.

    Two blocks in a row that are off by much, or a cumulative sum (Page 1954) that is off by little
    for long. `noise` is the standard deviation of what a setting gives, over some seconds.
    """

    noise: float = _FIRST_NOISE
    patience: float = 1.0
    """By which both limits of the sum grow after a false alarm, and shrink after a true one."""
    _blocks: deque[float] = field(default_factory=lambda: deque(maxlen=_APART))
    _high: float = 0.0
    _low: float = 0.0
    _was_off: float = 0.0

    def rest(self) -> None:
        """Another setting comes, or the same one anew: what was seen does not count any more."""
        self._blocks.clear()
        self._high = self._low = self._was_off = 0.0

    def judged(self, has_changed: bool) -> None:
        """A search that an alarm began has ended: whether it found another setting."""
        factor = 0.7 if has_changed else 1.5
        self.patience = min(_MOST_PATIENCE, max(1.0, self.patience * factor))

    def add(self, level: float, reference: float) -> tuple[float, float | None]:
        """One block more: the reference from now on, and the difference if that is an alarm."""
        off = level - reference
        if self._is_alarm(off):
            return reference, off
        if len(self._blocks) == _APART:
            apart = abs(level - self._blocks[0])
            self.noise += _WEIGHT * (_TO_SD * apart - self.noise)
        self._blocks.append(level)
        if not self._was_off:
            reference += _FOLLOW * off
        return reference, None

    def _is_alarm(self, off: float) -> bool:
        much = max(0.2, 3 * self.noise)
        twice = abs(off) > much and self._was_off * off > 0
        self._was_off = math.copysign(1.0, off) if abs(off) > much else 0.0
        slack = max(0.05, self.noise) * self.patience
        limit = max(0.6, 5 * self.noise) * self.patience
        self._high = max(0.0, self._high + off - slack)
        self._low = max(0.0, self._low - off - slack)
        return twice or max(self._high, self._low) > limit
