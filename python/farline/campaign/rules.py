"""When a setting has been measured often enough: sequential stopping with fixed looks.

Looking at the interval after every run and stopping when it happens to be narrow makes it too
narrow too often. So the interval is looked at only at fixed numbers of runs (5, 8, 12, 18, 27),
and each look takes its share of the error: with L looks the interval is built at
1 - (1 - confidence) / L (Bonferroni). The run is the unit: interval samples of one run are not
independent.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from farline.errors import SpecError

LOOKS = (5, 8, 12, 18, 27)
MOST_RUNS = 1000


@dataclass(frozen=True, slots=True)
class Rules:
    """How often settings are run, and when to give up.

    A setting is done when the half-width of the confidence interval of its mean throughput is at
    most `relative_half_width` times the mean, or after `max_repetitions` blocks.
    """

    min_repetitions: int = 5
    max_repetitions: int = 27
    relative_half_width: float = 0.05
    confidence: float = 0.95
    retries: int = 2
    """How often a run that failed for a passing reason is tried again at once."""
    max_consecutive_failures: int = 5
    """Failed runs in a row, retries not counted, after which the campaign stops."""

    def __post_init__(self) -> None:
        """Refuses what makes no sense, naming the key and what is allowed."""
        _check("min_repetitions", self.min_repetitions, 1, MOST_RUNS)
        _check("max_repetitions", self.max_repetitions, self.min_repetitions, MOST_RUNS)
        _check("relative_half_width", self.relative_half_width, 0.001, 1.0)
        _check("confidence", self.confidence, 0.5, 0.999)
        _check("retries", self.retries, 0, 100)
        _check("max_consecutive_failures", self.max_consecutive_failures, 1, MOST_RUNS)

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of runs at which the interval is looked at; the cap is the last of them."""
        between = [n for n in LOOKS if self.min_repetitions < n < self.max_repetitions]
        return tuple(sorted({self.min_repetitions, *between, self.max_repetitions}))

    @property
    def look_confidence(self) -> float:
        """Confidence of the interval at each look, so that all looks together err as promised."""
        return 1 - (1 - self.confidence) / len(self.looks)

    @property
    def fixed(self) -> bool:
        """Whether the number of runs was decided beforehand."""
        return self.min_repetitions == self.max_repetitions


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SpecError(f"{name}: {value:g} is out of range; allowed: {low:g} to {high:g}")


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean of at least one value."""
    return math.fsum(values) / len(values)


def half_width(values: Sequence[float], confidence: float) -> float | None:
    """Half the width of Student's interval of the mean; None with fewer than two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    deviation = math.sqrt(math.fsum((v - centre) ** 2 for v in values) / (len(values) - 1))
    return quantile(len(values), confidence) * deviation / math.sqrt(len(values))


@functools.cache
def quantile(runs: int, confidence: float) -> float:
    """Two-sided quantile of Student's t for the mean of `runs` values."""
    from scipy.special import stdtrit

    return float(stdtrit(runs - 1, 0.5 + confidence / 2))


def narrow_enough(values: Sequence[float], rules: Rules) -> bool:
    """Whether the interval at a look is as narrow as was asked for."""
    width = half_width(values, rules.look_confidence)
    return width is not None and width <= rules.relative_half_width * mean(values)


def runs_needed(values: Sequence[float], rules: Rules) -> int:
    """The first look that the spread seen so far will satisfy; the cap if none."""
    later = [n for n in rules.looks if n > len(values)]
    if len(values) >= 2 and mean(values) > 0 and not rules.fixed:
        centre = mean(values)
        spread = math.fsum((v - centre) ** 2 for v in values) / (len(values) - 1)
        for n in later:
            width = quantile(n, rules.look_confidence) * math.sqrt(spread / n)
            if width <= rules.relative_half_width * centre:
                return n
        return rules.max_repetitions
    return later[0] if later else rules.max_repetitions
