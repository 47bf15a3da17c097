"""What an experiment of two sides on one line comes to: measures per load, knee, intervals.

A repetition measures the transfer alone, the background alone at each load, and both together. Each
measure is formed within a repetition, from trials that saw the same machine, and only then averaged
over repetitions: the repetition is the unit of the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from farline.fairness import measures
from farline.fairness.curve import Knee, find_knee
from farline.fairness.dynamics import Moment, convergence_s, rtt_exponent
from farline.fairness.wire import Seen
from farline.profiles.rate_interval import rate_interval, worth_saying

SUBJECT, BACKGROUND = "subject", "background"
"""The two sides: the transfer that is judged, and who was there before."""

RATES = ("subject_bps", "background_bps", "background_alone_bps")
"""Measures that are rates: their intervals stay above 0."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of one side or of both.

    `subject` is None where the background ran alone, `load_bps` where the transfer did.
    """

    subject: str | None
    load_bps: float | None
    repetition: int
    seen: Mapping[str, Seen]
    moments: tuple[Moment, ...] = ()


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over repetitions with its confidence interval, where there are two or more."""

    mean: float
    low: float | None
    high: float | None
    values: tuple[float, ...]

    @property
    def half(self) -> float:
        """Half of the interval; 0 where there is none."""
        return 0.0 if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Point:
    """One load: the mean of each measure that is known, by name.

    `subject_bps`, `background_bps`, `background_alone_bps`: rates. `utilisation`, `jain`,
    `jain_demand`, `max_min_distance`, `min_max`: of both together. `share`: the transfer over its
    max-min fair share. `harm`, `harm_delay`, `harm_loss`: done to the background; `harm_fair`: what
    a fair sharer would do to it; `harm_subject`: done to the transfer. `convergence_s`: until the
    transfer has its share. `rtt_exponent`: where the sides' round-trip times differ.
    """

    load_bps: float
    measures: Mapping[str, Estimate]

    def mean(self, name: str) -> float | None:
        """The mean of a measure, None where it is not known."""
        found = self.measures.get(name)
        return None if found is None else found.mean


@dataclass(frozen=True, slots=True)
class Contest:
    """One transfer beside the background: alone, and at each load in ascending order."""

    subject: str
    capacity_bps: float
    alone_bps: Estimate
    points: tuple[Point, ...]
    knee: Knee | None

    @property
    def full(self) -> Point:
        """The largest load, where both want the line."""
        return self.points[-1]


def contests(
    trials: Iterable[Trial],
    capacity_bps: float,
    confidence: float = 0.95,
    rtts_s: Mapping[str, tuple[float, float]] | None = None,
) -> list[Contest]:
    """Every transfer that has a whole repetition, in the order of its first trial.

    `rtts_s` has the round-trip times of the empty path, of each transfer and of its background.
    """
    kept = list(trials)
    names = dict.fromkeys(trial.subject for trial in kept if trial.subject is not None)
    found = []
    for name in names:
        points = _points(kept, name, capacity_bps, confidence, (rtts_s or {}).get(name))
        alone = [
            trial.seen[SUBJECT].rate_bps
            for trial in kept
            if trial.subject == name and trial.load_bps is None
        ]
        if points and alone:
            rates = [point.measures["subject_bps"].mean for point in points]
            knee = find_knee([point.load_bps for point in points], rates)
            estimate_alone = estimate(alone, confidence, above_zero=True)
            found.append(Contest(name, capacity_bps, estimate_alone, tuple(points), knee))
    return found


def _points(
    trials: Sequence[Trial],
    name: str,
    capacity_bps: float,
    confidence: float,
    rtts_s: tuple[float, float] | None,
) -> list[Point]:
    at = {(one.subject, one.load_bps, one.repetition): one for one in trials}
    rows: dict[float, list[dict[str, float]]] = {}
    for (subject, load, repetition), both in at.items():
        alone = at.get((name, None, repetition))
        quiet = at.get((None, load, repetition))
        if subject == name and load is not None and alone and quiet:
            row = _measured(both, alone.seen[SUBJECT], quiet.seen[BACKGROUND], capacity_bps)
            rows.setdefault(load, []).append({**row, **_distance(both, rtts_s)})
    return [Point(load, _estimates(rows[load], confidence)) for load in sorted(rows)]


def _measured(both: Trial, alone: Seen, quiet: Seen, capacity_bps: float) -> dict[str, float]:
    """Every measure of one repetition at one load."""
    mine, theirs = both.seen[SUBJECT], both.seen[BACKGROUND]
    rates = (mine.rate_bps, theirs.rate_bps)
    demands = (alone.rate_bps, quiet.rate_bps)
    fair = measures.max_min_shares(demands, capacity_bps)
    found = {
        "subject_bps": mine.rate_bps,
        "background_bps": theirs.rate_bps,
        "background_alone_bps": quiet.rate_bps,
        "utilisation": measures.utilisation(rates, capacity_bps),
        "jain": measures.jain(rates),
        "jain_demand": measures.demand_jain(rates, demands, capacity_bps),
        "max_min_distance": measures.max_min_distance(rates, demands, capacity_bps),
        "min_max": measures.min_max_ratio(rates),
        "harm": measures.harm_to_rate(quiet.rate_bps, theirs.rate_bps),
        "harm_fair": measures.fair_harm(quiet.rate_bps, fair[1]),
        "harm_subject": measures.harm_to_rate(alone.rate_bps, mine.rate_bps),
    }
    if fair[0] > 0:
        found["share"] = measures.share_taken(mine.rate_bps, fair[0])
        came = convergence_s(both.moments, fair[0]) if both.moments else None
        if came is not None:
            found["convergence_s"] = came
    return found | _costs(quiet, theirs)


def _costs(quiet: Seen, theirs: Seen) -> dict[str, float]:
    found = {}
    if quiet.rtt_s is not None and theirs.rtt_s is not None:
        found["harm_delay"] = measures.harm_to_cost(quiet.rtt_s, theirs.rtt_s)
    if quiet.loss is not None and theirs.loss is not None:
        harm = measures.harm_to_cost(quiet.loss, theirs.loss)
        if math.isfinite(harm):
            found["harm_loss"] = harm
    return found


def _distance(both: Trial, rtts_s: tuple[float, float] | None) -> dict[str, float]:
    if rtts_s is None:
        return {}
    rates = (both.seen[SUBJECT].rate_bps, both.seen[BACKGROUND].rate_bps)
    found = rtt_exponent(rates, rtts_s)
    return {} if found is None else {"rtt_exponent": found}


def _estimates(rows: Sequence[Mapping[str, float]], confidence: float) -> dict[str, Estimate]:
    """The mean of each measure that every repetition has."""
    names = [name for name in rows[0] if all(name in row for row in rows)]
    return {
        name: estimate([row[name] for row in rows], confidence, above_zero=name in RATES)
        for name in names
    }


def estimate(
    values: Sequence[float], confidence: float = 0.95, above_zero: bool = False
) -> Estimate:
    """Mean and Student's interval of at least one value; of rates one that stays above 0."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Estimate(mean, None, None, tuple(values))
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = _quantile(len(values), confidence) * math.sqrt(variance / len(values))
    ends = worth_saying(rate_interval(mean, half)) if above_zero else (mean - half, mean + half)
    low, high = ends if ends is not None else (None, None)
    return Estimate(mean, low, high, tuple(values))


def _quantile(count: int, confidence: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, 0.5 + confidence / 2))
