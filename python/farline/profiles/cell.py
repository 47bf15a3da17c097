"""One cell: what measurements of one kind at one round-trip time came to; adding cells up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.response import setting_order

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


RATES_MAX = 1000
"""Rates up to which a cell keeps every one; quantiles of such cells are exact."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Complete measurements with the same keys; failed ones are counted beside them.

    `keys` are columns that the rows have in common, such as `from_site` or `streams`. `rtt_ms` is
    None where no round-trip time is known. `sum_bps` and `sum_square` are over rates;
    `histogram` counts rates by bucket. `moved_bytes` and `busy_s` are sums over the same rows.
    `capacity_bps` is the largest that a row states. Of failed rows alone, `n` is 0 and `low_bps`
    and `high_bps` are NaN.
    """

    keys: Mapping[str, object]
    rtt_ms: float | None
    n: int
    sum_bps: float
    sum_square: float
    low_bps: float
    high_bps: float
    histogram: Mapping[int, int] = field(default_factory=dict)
    capacity_bps: float | None = None
    moved_bytes: int = 0
    busy_s: float = 0.0
    failed: int = 0
    rates_bps: tuple[float, ...] | None = None
    """Every rate, where there are few."""

    @property
    def mean_bps(self) -> float:
        """Arithmetic mean of the rates: the response mean of Rao et al. 2018. NaN where n is 0."""
        return self.sum_bps / self.n if self.n else math.nan

    @property
    def deviations(self) -> float:
        """Sum of the squared deviations from the mean, in (bit/s)², never below 0.

        From the rates themselves where they are kept, else sum_square − sum²/n: that takes the
        difference of two near numbers, and cannot tell a standard deviation below about 1e-7 of
        the mean from 0. Measured rates differ by a thousandth at least.
        """
        if self.n < 2 or self.low_bps == self.high_bps:
            return 0.0
        if self.rates_bps is not None:
            return math.fsum((rate - self.mean_bps) ** 2 for rate in self.rates_bps)
        return max(0.0, self.sum_square - self.sum_bps * self.mean_bps)

    @property
    def sd_bps(self) -> float:
        """Sample standard deviation (n − 1) of the rates; NaN where n is below 2."""
        return math.sqrt(self.deviations / (self.n - 1)) if self.n > 1 else math.nan

    @property
    def mean_duration_s(self) -> float:
        """How long a measurement took on average; NaN where that is not known."""
        return self.busy_s / self.n if self.n and self.busy_s > 0 else math.nan

    def quantiles_bps(self, shares: Sequence[float]) -> tuple[float, ...]:
        """Quantiles of the rates: exact where they are kept, else ± 0.55 %; NaN where n is 0.

        Raises:
            SpecError: for a share outside 0 to 1.
        """
        import numpy as np

        if self.rates_bps:
            return tuple(np.quantile(self.rates_bps, checked_shares(shares)).tolist())
        found = quantiles_bps(self.histogram, shares, self.low_bps, self.high_bps)
        return tuple(found.tolist())


def merge_cells(cells: Iterable[Cell], by: Sequence[str] | None = None) -> list[Cell]:
    """Cells with equal keys and round-trip times added up, in the order of both.

    With `by`, only these keys are kept: what differs in others alone is added up too.

    Raises:
        SpecError: when a cell lacks a key of `by`.
    """
    groups: dict[tuple[tuple[object, ...], float | None], list[Cell]] = {}
    for cell in cells:
        kept = tuple(sorted(cell.keys)) if by is None else tuple(by)
        if not set(kept) <= set(cell.keys):
            lacking = next(name for name in kept if name not in cell.keys)
            raise SpecError(f"by {lacking}: cells have no such key; their keys are {_listed(cell)}")
        place = (tuple((name, cell.keys[name]) for name in kept), cell.rtt_ms)
        groups.setdefault(place, []).append(cell)
    return order_of_cells(
        add_cells(group, dict(keys), rtt_ms)  # type: ignore[arg-type]
        for (keys, rtt_ms), group in groups.items()
    )


def add_cells(cells: Sequence[Cell], keys: Mapping[str, object], rtt_ms: float | None) -> Cell:
    """One cell of what all of them measured, under other keys and another round-trip time."""
    filled = [cell for cell in cells if cell.n]
    n = sum(cell.n for cell in filled)
    capacities = [cell.capacity_bps for cell in cells if cell.capacity_bps is not None]
    return Cell(
        keys=keys,
        rtt_ms=rtt_ms,
        n=n,
        sum_bps=math.fsum(cell.sum_bps for cell in filled),
        sum_square=math.fsum(cell.sum_square for cell in filled),
        low_bps=min((cell.low_bps for cell in filled), default=math.nan),
        high_bps=max((cell.high_bps for cell in filled), default=math.nan),
        histogram=add_histograms(cell.histogram for cell in filled),
        capacity_bps=max(capacities, default=None),
        moved_bytes=sum(cell.moved_bytes for cell in filled),
        busy_s=math.fsum(cell.busy_s for cell in filled),
        failed=sum(cell.failed for cell in cells),
        rates_bps=all_rates(filled, n),
    )


def all_rates(cells: Sequence[Cell], n: int) -> tuple[float, ...] | None:
    """Every rate of the cells, sorted; None where there are many, or a cell kept none."""
    if not 0 < n <= RATES_MAX:
        return None
    rates: list[float] = []
    for cell in cells:
        if cell.rates_bps is None:
            return None
        rates.extend(cell.rates_bps)
    return tuple(sorted(rates))


def order_of_cells(cells: Iterable[Cell]) -> list[Cell]:
    """Cells in the order of their keys' values, then of their round-trip times, unknown last."""
    return sorted(
        cells,
        key=lambda cell: (
            [setting_order(value) for value in cell.keys.values()],  # type: ignore[arg-type]
            math.inf if cell.rtt_ms is None else cell.rtt_ms,
        ),
    )


def _listed(cell: Cell) -> str:
    return ", ".join(cell.keys) or "none"
