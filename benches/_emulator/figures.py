"""A row of the emulator's benches: stated, measured, allowed, and whether it holds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from _contract import Row

# A ratio that would be infinite (nothing deviates) is written as this.
LARGEST_RATIO = 1000.0


@dataclass(frozen=True)
class Figure(Row):
    """A row: `ours` is what was measured (median), `peer` what is stated."""

    group: str = ""
    allowed: str = ""
    note: str = ""
    measured: list[float] = field(default_factory=list)
    stamps: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """Whether the emulator vouches for every run behind the row."""
        return all(stamp["valid"] for stamp in self.stamps)

    @property
    def reached(self) -> bool:
        """Whether the ratio is what it must be, from valid runs alone."""
        return self.valid and self.ratio >= self.must


@dataclass(frozen=True)
class Seen:
    """What was measured, repeatedly, with the stamps of the runs."""

    values: Sequence[float]
    stamps: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        """Refuses to make a row of nothing."""
        if not self.values:
            raise ValueError("nothing was measured")


@dataclass(frozen=True)
class Label:
    """What a row is called, and the group of cases it belongs to."""

    group: str
    case: str
    unit: str
    note: str = ""


def bounded(ratio: float) -> float:
    """A ratio that JSON can hold."""
    return min(ratio, LARGEST_RATIO)


def spread(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile; all the same for one value."""
    if len(ratios) == 1:
        return ratios[0], ratios[0], ratios[0]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return low, middle, high


def figure(
    label: Label, seen: Seen, stated: float, ratios: Sequence[float], must: float, allowed: str
) -> Figure:
    """A row whose ratio is the median of `ratios`, and what was measured the median of `seen`."""
    low, middle, high = spread([bounded(ratio) for ratio in ratios])
    return Figure(
        case=label.case,
        ours=statistics.median(seen.values),
        peer=stated,
        unit=label.unit,
        ratio=middle,
        low=low,
        high=high,
        must=must,
        group=label.group,
        allowed=allowed,
        note=label.note,
        measured=list(seen.values),
        stamps=list(seen.stamps),
    )


def within(label: Label, seen: Seen, stated: float, allowed: float) -> Figure:
    """A row whose ratio is allowed error / measured error."""
    errors = [abs(value - stated) for value in seen.values]
    ratios = [allowed / error if error else math.inf for error in errors]
    return figure(label, seen, stated, ratios, 1.0, f"± {allowed:.3g}")


def at_least(label: Label, seen: Seen, floor: float) -> Figure:
    """A row whose ratio is measured / floor."""
    ratios = [value / floor for value in seen.values]
    return figure(label, seen, floor, ratios, 1.0, f"at least {floor:.4g}")


def share_of(label: Label, seen: Seen, whole: float, must: float) -> Figure:
    """A row whose ratio is measured / whole, and must be a share of it."""
    ratios = [value / whole for value in seen.values]
    return figure(label, seen, whole, ratios, must, f"at least {must:.0%} of it")


def at_most(label: Label, seen: Seen, ceiling: float) -> Figure:
    """A row whose ratio is ceiling / measured; every run must be within it, so the worst counts."""
    worst = max(seen.values)
    ratios = [ceiling / worst if worst else math.inf]
    return figure(label, seen, ceiling, ratios, 1.0, f"at most {ceiling:.4g}")


def none_of(label: Label, seen: Seen) -> Figure:
    """A row about something that must never happen: ratio 1 if it did not, else 0."""
    ratios = [0.0 if any(seen.values) else 1.0]
    return figure(label, seen, 0.0, ratios, 1.0, "none")


def always(label: Label, seen: Seen) -> Figure:
    """A row about something that must happen every time (values 1 and 0)."""
    ratios = [1.0 if all(seen.values) else 0.0]
    return figure(label, seen, 1.0, ratios, 1.0, "always")
