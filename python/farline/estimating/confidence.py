"""Confidence in a duration: the slow end of an interval; and how sure a duration is.

Of the transfers that an interval for a share `c` does not hold, half are slower: its slow end is
kept with the confidence (1 + c) / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from farline.spec.units import parse_probability

if TYPE_CHECKING:
    from farline.estimating.path_estimator import Interval, PathEstimator, Prediction

LEAST, MOST = 0.5, 0.99
"""Confidences that may be asked for: a deadline that holds less often than not is none."""

CONFIDENCES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99)
"""Those between which it is interpolated how sure a duration is."""


def parse_confidence(text: str) -> float:
    """A confidence from a text such as `90%` or `0.9`.

    Raises:
        ValueError: when it is not one, or out of range.
    """
    confidence = parse_probability(text)
    if not LEAST <= confidence <= MOST:
        raise ValueError(f"{text!r} is out of range; allowed: {LEAST:.0%} to {MOST:.0%}")
    return confidence


def cover_of(confidence: float) -> float:
    """The share of transfers in the interval whose slow end is kept with this confidence."""
    return round(2.0 * confidence - 1.0, 9)


def interval_of(estimator: PathEstimator, prediction: Prediction, cover: float) -> Interval:
    """The interval of a share; of none, the middle alone."""
    if cover <= 0:
        return prediction.interval(0.0, 0.0)
    return estimator.interval(prediction, cover)


def kept_within(duration_s: float, steps: Sequence[tuple[float, Interval]]) -> float:
    """How sure it is that a transfer takes at most `duration_s`, within 0.01 and 0.99.

    `steps` are confidences, from 0.5 upwards, with their intervals.
    """
    known = [(1.0 - confidence, one.duration_low_s) for confidence, one in reversed(steps)]
    known += [(confidence, one.duration_high_s) for confidence, one in steps[1:]]
    if duration_s < known[0][1]:
        return 0.01
    sure = known[0][0]
    for (low, shorter_s), (high, longer_s) in pairwise(known):
        if duration_s >= longer_s:
            sure = high
        elif duration_s >= shorter_s:
            sure = low + (high - low) * (duration_s - shorter_s) / (longer_s - shorter_s)
    return min(max(sure, 0.01), 0.99)
