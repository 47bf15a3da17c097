"""What chance allows: is a series of losses what independent draws would give?

All tests answer in standard deviations of a normal variable with the same two-sided p-value, so
that one limit, `LIMIT_Z` (99 %), serves for all. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.99
LIMIT_Z = 2.5758293035489004
# Classes of the test of gaps; each should hold this many, or there are fewer classes.
MOST_CLASSES = 20
FEWEST_PER_CLASS = 5

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Losses:
    """Which of `total` packets, numbered from 0, were lost: `first` and `length` of each burst."""

    total: int
    first: Ints
    length: Ints

    @property
    def lost(self) -> int:
        """Packets lost."""
        return int(self.length.sum())

    @property
    def fraction(self) -> float:
        """Part of the packets that was lost."""
        return self.lost / self.total

    def positions(self) -> Ints:
        """Number of each lost packet."""
        before = np.cumsum(self.length) - self.length
        positions: Ints = np.arange(self.lost) + np.repeat(self.first - before, self.length)
        return positions


def losses_of_runs(first: Ints, length: Ints, total: int) -> Losses:
    """Losses from runs of numbers that came, in any order and possibly twice."""
    order = np.argsort(first, kind="stable")
    ends = np.maximum.accumulate((first + length)[order])
    gap_first = np.concatenate(([0], ends))
    gap_length = np.concatenate((first[order], [total])) - gap_first
    real = gap_length > 0
    return Losses(total, gap_first[real].astype(np.int64), gap_length[real].astype(np.int64))


def late_packets(first: Ints, length: Ints) -> int:
    """Packets that came after one with a higher number, or a second time."""
    if len(first) == 0:
        return 0
    highest = np.maximum.accumulate(first + length)[:-1]
    overlap = np.minimum(highest, (first + length)[1:]) - first[1:]
    return int(np.maximum(overlap, 0).sum())


def z_of_p(p_value: float) -> float:
    """Standard deviations of a normal variable with this two-sided p-value."""
    from scipy.stats import norm

    return float(norm.isf(min(max(p_value, 1e-300), 1.0) / 2))


def binomial_half_width(lost: int, total: int, probability: float) -> float:
    """Distance from the stated probability to the 99 % limit on the side of what was seen."""
    from scipy.stats import binom

    low, high = binom.interval(CONFIDENCE, total, probability)
    limit = high if lost >= total * probability else low
    return abs(float(limit) / total - probability)


def two_sided(lower: float, upper: float) -> float:
    """Two-sided p-value from both tails of a discrete variable, what was seen included."""
    return min(1.0, 2 * min(lower, upper))


def runs_z(losses: Losses) -> float:
    """Runs test (Wald and Wolfowitz 1940), exact: are losses neighbours as often as by chance?

    Given how many were lost, the number of bursts is hypergeometric; this holds for rare losses,
    where the normal approximation does not.
    """
    from scipy.stats import hypergeom

    bursts, lost = len(losses.length), losses.lost
    if lost in (0, losses.total):
        raise ValueError(f"{lost} of {losses.total} packets lost: nothing to test")
    law = hypergeom(losses.total, losses.total - lost + 1, lost)
    return z_of_p(two_sided(float(law.cdf(bursts)), float(law.sf(bursts - 1))))


def lag_one_z(losses: Losses) -> float:
    """Correlation of neighbouring packets' fates, in its standard deviations under independence."""
    lost, total = losses.lost, losses.total
    pairs = lost - len(losses.length)
    mean = lost / total
    correlation = (pairs / (total - 1) - mean * mean) / (mean * (1 - mean))
    return abs(correlation) * math.sqrt(total)


def gaps_z(losses: Losses) -> float:
    """Chi-square test: are the distances between losses geometric, as independence asks?"""
    from scipy.stats import chi2, geom

    gaps = np.diff(losses.positions())
    classes = min(MOST_CLASSES, len(gaps) // FEWEST_PER_CLASS)
    if classes < 3:
        raise ValueError(f"{len(gaps)} distances between losses are too few for a test")
    law = geom(losses.fraction)
    edges = np.unique(law.ppf(np.arange(1, classes) / classes))
    expected = np.diff(np.concatenate(([0.0], law.cdf(edges), [1.0]))) * len(gaps)
    seen = np.bincount(np.searchsorted(edges, gaps, side="left"), minlength=len(expected))
    statistic = float(((seen - expected) ** 2 / expected).sum())
    # One degree less: the probability comes from the same data.
    return z_of_p(float(chi2.sf(statistic, max(1, len(expected) - 2))))


def burst_length_limit(leave: float, bursts: int) -> float:
    """Half of the 99 % interval of the mean of `bursts` geometric lengths of mean 1 / `leave`."""
    return LIMIT_Z * math.sqrt(1 - leave) / leave / math.sqrt(bursts)


def burst_loss_limit(enter: float, leave: float, total: int) -> float:
    """Half of the 99 % interval of the part of its time that a two-state chain is bad."""
    bad = enter / (enter + leave)
    memory = 1 - enter - leave
    variance = bad * (1 - bad) * (1 + memory) / (1 - memory) / total
    return LIMIT_Z * math.sqrt(variance)


def jain_index(shares: list[float]) -> float:
    """Jain's fairness index (Jain, Chiu and Hawe 1984): 1 if all are equal, 1/n if one has all."""
    total = sum(shares)
    return total * total / (len(shares) * sum(share * share for share in shares))
