"""Histories in order: each transfer is estimated from those before it, then learnt."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from _estimate.generator import Event
from farline.estimating.confidence import cover_of
from farline.estimating.like_paths import LikePaths, level_of, like_paths
from farline.estimating.path_estimator import COVERS, PathEstimator

DEADLINE_CONFIDENCE = 0.9


@dataclass(frozen=True)
class Judged:
    """One transfer: what was estimated, and whether it held."""

    number: int
    after: str
    is_new_kind: bool
    held: dict[float, bool]
    half_widths: dict[float, float]
    """Upper end over the middle, by share."""
    error: float
    """|estimated / actual - 1|."""
    in_time: bool
    """Whether a reservation of 90 % confidence was long enough."""
    duration_s: float


def judge(events: Iterable[Event], like: LikePaths | None = None) -> list[Judged]:
    """Goes through the history of one path; `like` is what others say, if any do."""
    estimator: PathEstimator | None = None
    known = like_paths(()) if like is None else like
    found = []
    for number, event in enumerate(events):
        if estimator is None:
            level, _ = level_of(event.done.workload, known)
            asked = cover_of(DEADLINE_CONFIDENCE)
            estimator = PathEstimator(dict.fromkeys((*COVERS, asked)), level=level)
        found.append(_judged(number, event, estimator))
        estimator.learn(event.done, event.start_s)
    return found


def _judged(number: int, event: Event, estimator: PathEstimator) -> Judged:
    actual = event.done.rate_bps
    made = estimator.predict(event.done.workload, event.start_s)
    held, widths = {}, {}
    for cover in COVERS:
        one = estimator.interval(made, cover)
        # A path that fills its link is within an interval that ends there.
        held[cover] = one.rate_low_bps <= actual <= one.rate_high_bps
        reach = estimator.calibration.quantile(cover, made.is_new_kind)
        widths[cover] = math.exp(reach * made.deviation)
    sure = estimator.interval(made, cover_of(DEADLINE_CONFIDENCE))
    took_s = event.done.duration_s
    return Judged(
        number, event.after, made.is_new_kind, held, widths, abs(made.rate_bps / actual - 1),
        took_s <= sure.duration_high_s, took_s,
    )  # fmt: skip


def coverage(rows: Sequence[Judged], cover: float) -> float:
    """Share of transfers whose interval held, in percent."""
    return 100 * mean(row.held[cover] for row in rows)


def macro(paths: Sequence[Sequence[Judged]], cover: float) -> float:
    """Mean over paths of their coverage, in percent."""
    return mean(coverage(rows, cover) for rows in paths if rows)


def half_width(rows: Iterable[Judged], cover: float) -> float:
    """Median half width, as a factor."""
    return median(row.half_widths[cover] for row in rows)
