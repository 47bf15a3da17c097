"""Settings against each other: the best one, what it gains, which are not told apart from it.

Ratios of throughput are compared on a log scale by Welch's t, so that "twice" and "half" weigh
the same and settings may differ in spread. With many settings the best one is found by looking
at all of them, so the tests against it carry Holm's correction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from farline.profiles.rate_interval import ratio_interval
from farline.profiles.response import ResponsePoint


@dataclass(frozen=True, slots=True)
class Gain:
    """Ratio of two settings' means; the interval is None where one has fewer than two runs."""

    ratio: float
    low: float | None
    high: float | None


def best_point(points: Sequence[ResponsePoint]) -> ResponsePoint | None:
    """The setting with the highest mean; one run alone wins only where nothing was repeated."""
    measured = [point for point in points if point.mean is not None]
    repeated = [point for point in measured if point.n >= 2]
    return max(repeated or measured, key=lambda point: point.mean or 0.0, default=None)


def gain(point: ResponsePoint, reference: ResponsePoint, confidence: float = 0.95) -> Gain | None:
    """How many times the throughput of `reference` the setting `point` reaches.

    Geometric means, interval by Welch's t on logarithms. None where a mean is missing or not
    above zero.
    """
    from scipy.special import stdtrit

    if not (_positive(point) and _positive(reference)):
        return None
    difference, error, freedom = _welch(point.values, reference.values)
    if error is None:
        return Gain(math.exp(difference), None, None)
    half = float(stdtrit(freedom, 0.5 + confidence / 2)) * error if error > 0 else 0.0
    low, high = ratio_interval(difference, half) or (None, None)
    return Gain(math.exp(difference), low, high)


def not_told_apart(
    best: ResponsePoint, points: Sequence[ResponsePoint], confidence: float = 0.95
) -> list[ResponsePoint]:
    """Repeated settings that the runs do not tell apart from `best` (Welch on logs, Holm)."""
    others = [point for point in points if point.key != best.key and _testable(point)]
    if not _testable(best):
        return []
    ranked = sorted(((_p_value(best, point), i) for i, point in enumerate(others)))
    told_apart: set[int] = set()
    for rank, (p_value, index) in enumerate(ranked):
        if p_value > (1 - confidence) / (len(ranked) - rank):
            break
        told_apart.add(index)
    return [point for index, point in enumerate(others) if index not in told_apart]


def told_apart(
    best: ResponsePoint,
    reference: ResponsePoint,
    points: Sequence[ResponsePoint],
    confidence: float = 0.95,
) -> bool:
    """Whether the runs tell `best` apart from the reference, by the same test as above.

    A point that holds the reference's runs stands for it; else the reference joins the others.
    """
    runs = set(reference.run_ids)
    own = next((point for point in points if runs & set(point.run_ids)), None)
    family = list(points) if own is not None else [*points, reference]
    other = own or reference
    if not (_testable(best) and _testable(other)):
        return False
    return all(point is not other for point in not_told_apart(best, family, confidence))


def _positive(point: ResponsePoint) -> bool:
    return point.n > 0 and min(point.values) > 0


def _testable(point: ResponsePoint) -> bool:
    return point.n >= 2 and _positive(point)


def _p_value(one: ResponsePoint, other: ResponsePoint) -> float:
    from scipy.special import stdtr

    difference, error, freedom = _welch(one.values, other.values)
    if not error:
        return 0.0 if difference else 1.0
    return 2 * float(stdtr(freedom, -abs(difference / error)))


def _welch(left: Sequence[float], right: Sequence[float]) -> tuple[float, float | None, float]:
    """Difference of the mean logs, its standard error, degrees of freedom (Satterthwaite)."""
    mean_left, share_left = _log_moments(left)
    mean_right, share_right = _log_moments(right)
    difference = mean_left - mean_right
    if share_left is None or share_right is None:
        return difference, None, 0.0
    total = share_left + share_right
    if total == 0:
        return difference, 0.0, 1.0
    spread = share_left**2 / (len(left) - 1) + share_right**2 / (len(right) - 1)
    return difference, math.sqrt(total), total**2 / spread


def _log_moments(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean of the logarithms and its squared standard error."""
    logs = [math.log(value) for value in values]
    mean = math.fsum(logs) / len(logs)
    if len(logs) < 2:
        return mean, None
    variance = math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1)
    return mean, variance / len(logs)
