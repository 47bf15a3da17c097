"""What trying other settings may cost a copy."""

from __future__ import annotations

import math
from dataclasses import dataclass

_MOST_SHARE = 0.03
"""Of all its time."""
_LEAST_PROBES = 3.0
"""Probes that must still fit into what is left."""
_LARGE = 0.3
"""A change of the path beyond which all that was learnt is worth nothing."""
_FREE_UP, _FREE_DOWN = 0.2, 0.15


@dataclass(slots=True)
class ProbeAccount:
    """Seconds lost to probes, against all seconds of the copy. Without a known end all may go."""

    lost_s: float = 0.0
    is_free: bool = False
    """The last step gained so much that the next costs nothing against it."""

    def allows(self, length_s: float, likely_share: float, age_s: float, left_s: float) -> bool:
        """Whether a probe of `length_s` may be made that may lose `likely_share` of it."""
        if left_s < _LEAST_PROBES * length_s:
            return False
        if self.is_free:
            return True
        return self.lost_s + likely_share * length_s <= _MOST_SHARE * (age_s + left_s)

    def add(self, difference: float, length_s: float) -> None:
        """A probe was `difference` (of logs) from the setting before, for so long."""
        self.lost_s += lost_share(difference) * length_s
        self.is_free = False

    def gain(self, difference: float, is_up: bool) -> None:
        """A step was kept."""
        self.is_free = difference > (_FREE_UP if is_up else _FREE_DOWN)

    def changed(self, difference: float) -> None:
        """The path has changed: what was lost was lost to another path."""
        self.lost_s = 0.0 if abs(difference) > _LARGE else self.lost_s / 2


def lost_share(difference: float) -> float:
    """Part of the data that a probe costs, by its difference of logs."""
    return max(0.0, -math.expm1(difference))


def likely_share(factor: float, is_up: bool) -> float:
    """Part that a step by `factor` may cost before anything is known of it."""
    return (0.15 if is_up else 0.5) * (1 - 1 / factor)
