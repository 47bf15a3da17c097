"""Histograms of rates that every engine counts alike, and the quantiles they give.

A bucket is a 64th of an octave: bucket b holds the rates r with floor(64 log2 r) = b. Counts by
bucket add up over days, sites and engines, which quantiles do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

BUCKETS_PER_OCTAVE = 64
"""Buckets of the histogram of rates: bucket b holds rates r with floor(64 log2 r) = b, so a
quantile is known to ± 0.55 %."""

BUCKET_SLACK = 1e-9
"""Part of a bucket below its edge that counts as in it: logarithms of two engines may differ in
their last digit, and rates such as 2^30 are at an edge. The store's query has the same."""


def bucket_of(rate_bps: npt.ArrayLike) -> Whole:
    """Buckets of rates above 0 in bit/s, in the shape that they come in."""
    octaves = np.log2(np.asarray(rate_bps, dtype=np.float64))
    buckets: Whole = np.floor(BUCKETS_PER_OCTAVE * octaves + BUCKET_SLACK).astype(np.int64)
    return buckets


def middle_bps(bucket: npt.ArrayLike) -> Floats:
    """Geometric middle of buckets in bit/s: no rate of a bucket is further off than 0.55 %."""
    middle: Floats = np.exp2((np.asarray(bucket, dtype=np.float64) + 0.5) / BUCKETS_PER_OCTAVE)
    return middle


def add_histograms(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """One histogram of what all of them counted, in the order of buckets."""
    several = list(histograms)
    buckets = np.fromiter(chain.from_iterable(several), dtype=np.int64)
    counts = np.fromiter(chain.from_iterable(one.values() for one in several), dtype=np.int64)
    if not len(buckets):
        return {}
    first = buckets.min()
    total = np.zeros(buckets.max() - first + 1, dtype=np.int64)
    np.add.at(total, buckets - first, counts)
    filled = np.flatnonzero(total)
    return dict(zip((filled + first).tolist(), total[filled].tolist(), strict=True))


def quantiles_bps(
    histogram: Mapping[int, int], shares: Sequence[float], low_bps: float, high_bps: float
) -> Floats:
    """Quantiles of the rates that a histogram counted, in bit/s; NaN where it counted none.

    As with `numpy.quantile` a quantile is on the straight line between the two rates beside rank
    share × (n − 1). Each of these is taken for the middle of its bucket (the smallest and largest
    are known, and bound all), so that a quantile is at most 0.55 % off, however rates lie.

    Raises:
        SpecError: for a share outside 0 to 1.
    """
    wanted = checked_shares(shares)
    if not histogram:
        return np.full(len(wanted), np.nan)
    buckets = np.array(sorted(histogram), dtype=np.int64)
    ends = np.cumsum([histogram[int(bucket)] for bucket in buckets])
    middles = np.clip(middle_bps(buckets), low_bps, high_bps)
    rank = wanted * (ends[-1] - 1)
    below = np.floor(rank).astype(np.int64)
    above = np.minimum(below + 1, ends[-1] - 1)
    pair = [_ranked(place, ends, middles, low_bps, high_bps) for place in (below, above)]
    values: Floats = pair[0] + (rank - below) * (pair[1] - pair[0])
    return values


def _ranked(
    rank: Whole, ends: npt.NDArray[Any], middles: Floats, low_bps: float, high_bps: float
) -> Floats:
    """The rates at these ranks, 0 being the smallest."""
    values: Floats = middles[np.searchsorted(ends, rank, side="right")]
    values = np.where(rank == 0, low_bps, values)
    return np.where(rank == ends[-1] - 1, high_bps, values)


def checked_shares(shares: Sequence[float]) -> Floats:
    """Shares of quantiles as an array.

    Raises:
        SpecError: for one outside 0 to 1.
    """
    wanted = np.asarray(shares, dtype=np.float64)
    if not bool(np.all((wanted >= 0) & (wanted <= 1))):
        raise SpecError(f"quantiles: {list(shares)} are not all between 0 and 1")
    return wanted
