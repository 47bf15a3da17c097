"""What measurements of one kind at one round-trip time came to: the bricks of every profile.

A cell is made by the store's query, in the engine, from any number of rows (`store.transfers`, then
`cells_from_table`), or from rows in memory (`cells_of`). Both give the same values: counts are
equal, sums agree to 1e-12, and quantiles come from the same histogram of rates. Cells of the same
keys can be added up (`merge_cells`), so that a year's profile is the sum of its days'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.cell import (
    BUCKETS_PER_OCTAVE,
    RATES_MAX,
    Cell,
    Floats,
    Whole,
    add_cells,
    bucket_of,
    merge_cells,
    order_of_cells,
)
from farline.profiles.frames import Frame, column_names, numbers, values

__all__ = [
    "BUCKETS_PER_OCTAVE",
    "RATES_MAX",
    "TABLE_COLUMNS",
    "Cell",
    "add_cells",
    "cells_from_table",
    "cells_of",
    "merge_cells",
]

TABLE_COLUMNS = (
    "rtt_ms",
    "bucket",
    "n",
    "sum_bps",
    "sum_square",
    "low_bps",
    "high_bps",
    "moved_bytes",
    "busy_s",
    "capacity_bps",
)
"""What the store's table has beside the keys: a row for each keys, round-trip time and bucket."""


def cells_of(rows: Frame, by: Sequence[str] = (), rtt_decimals: int = 2) -> list[Cell]:
    """Cells of rows in memory, one for each combination of the columns `by` and of RTTs.

    `rows` is a pandas DataFrame, an Arrow table or a mapping of arrays with columns named as in
    `farline.spec.transfers`. `rate_bps` has to be there; `rtt_ms` (rounded to `rtt_decimals`),
    `complete` (without it all are), `bytes`, `duration_s` and `capacity_bps` are used where they
    are. The order of rows does not matter.

    Raises:
        SpecError: for a column that is not there, a complete row without a rate above 0, or a
            round-trip time below 0.
    """
    names = column_names(rows)
    rate = numbers(rows, "rate_bps")
    complete = _complete(rows, names, len(rate))
    scale = 10.0**rtt_decimals
    # Half up, as the store's query rounds.
    rtt = np.floor(_optional(rows, names, "rtt_ms", len(rate)) * scale + 0.5) / scale
    _check_rows(rate, complete, rtt)
    rate = np.where(complete, rate, np.nan)
    groups = _groups(rows, by, rtt)
    # Sorted by rate inside each group: sums and what is kept do not depend on the order of rows.
    order = np.lexsort((rate, groups.of_row))
    moved, busy, capacity = (
        _optional(rows, names, name, len(rate))[order]
        for name in ("bytes", "duration_s", "capacity_bps")
    )
    sums = _Sums(groups.of_row[order], len(groups.keys))
    rate, complete = rate[order], complete[order]
    buckets = np.zeros(len(rate), dtype=np.int64)
    buckets[complete] = bucket_of(rate[complete])
    parts = _Parts(
        n=sums.add(complete),
        failed=sums.add(~complete),
        sum_bps=sums.add(np.where(complete, rate, 0.0)),
        sum_square=sums.add(np.where(complete, rate, 0.0) ** 2),
        low_bps=sums.least(rate),
        high_bps=sums.most(rate),
        moved_bytes=sums.add(np.where(complete, np.nan_to_num(moved), 0.0)),
        busy_s=sums.add(np.where(complete, np.nan_to_num(busy), 0.0)),
        capacity_bps=sums.most(capacity),
        histograms=_histograms(sums, buckets, complete.astype(np.int64)),
        rates=_rates(sums, rate, complete),
    )
    return _cells(groups, parts)


def cells_from_table(table: Frame, by: Sequence[str]) -> list[Cell]:
    """Cells from the store's table: a row for each combination of `by`, RTT and bucket of rates.

    The columns are `by` and TABLE_COLUMNS; a row without a bucket counts failed measurements.
    Rows that say the same keys, RTT and bucket more than once add up.

    Raises:
        SpecError: for a column that is not there or holds no numbers.
    """
    column = {name: numbers(table, name) for name in TABLE_COLUMNS}
    complete = ~np.isnan(column["bucket"])
    groups = _groups(table, by, column["rtt_ms"])
    sums = _Sums(groups.of_row, len(groups.keys))
    n = np.nan_to_num(column["n"])

    def add(name: str) -> Floats:
        return sums.add(np.where(complete, np.nan_to_num(column[name]), 0.0))

    parts = _Parts(
        n=sums.add(np.where(complete, n, 0.0)),
        failed=sums.add(np.where(complete, 0.0, n)),
        sum_bps=add("sum_bps"),
        sum_square=add("sum_square"),
        low_bps=sums.least(np.where(complete, column["low_bps"], np.nan)),
        high_bps=sums.most(np.where(complete, column["high_bps"], np.nan)),
        moved_bytes=add("moved_bytes"),
        busy_s=add("busy_s"),
        capacity_bps=sums.most(column["capacity_bps"]),
        histograms=_histograms(
            sums,
            np.nan_to_num(column["bucket"]).astype(np.int64),
            np.where(complete, n, 0.0).astype(np.int64),
        ),
        rates=[None] * len(groups.keys),
    )
    return _cells(groups, parts)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Which group each row belongs to, and the keys and RTT of each group."""

    by: tuple[str, ...]
    of_row: Whole
    keys: list[tuple[Any, ...]]


def _groups(frame: Frame, by: Sequence[str], rtt: Floats) -> _Groups:
    columns = [values(frame, name) for name in by]
    of_row = np.unique(rtt, return_inverse=True)[1]
    for column in columns:
        found: dict[Any, int] = {}
        codes = [found.setdefault(value, len(found)) for value in column]
        # Codes stay small however many columns there are.
        of_row = np.unique(of_row * max(1, len(found)) + codes, return_inverse=True)[1]
    _, first = np.unique(of_row, return_index=True)
    places = [None if value != value else value for value in rtt[first].tolist()]
    keys = zip(
        *([column[row] for row in first.tolist()] for column in columns), places, strict=True
    )
    return _Groups(tuple(by), of_row.astype(np.int64), list(keys))


@dataclass(frozen=True, slots=True)
class _Sums:
    """Adds up rows by group; also smallest and largest, NaN where a group has none."""

    of_row: Whole
    groups: int

    def add(self, amounts: npt.NDArray[Any]) -> Floats:
        total = np.bincount(self.of_row, weights=amounts, minlength=self.groups)
        return total.astype(np.float64)

    def least(self, amounts: Floats) -> Floats:
        return -self.most(-amounts)

    def most(self, amounts: Floats) -> Floats:
        found = np.full(self.groups, np.nan)
        np.fmax.at(found, self.of_row, amounts)
        return found


@dataclass(frozen=True, slots=True)
class _Parts:
    """What the cells hold, an entry for each."""

    n: Floats
    failed: Floats
    sum_bps: Floats
    sum_square: Floats
    low_bps: Floats
    high_bps: Floats
    moved_bytes: Floats
    busy_s: Floats
    capacity_bps: Floats
    histograms: list[dict[int, int]]
    rates: list[tuple[float, ...] | None]


def _cells(groups: _Groups, parts: _Parts) -> list[Cell]:
    capacities = parts.capacity_bps.tolist()
    return order_of_cells(
        Cell(
            keys=dict(zip(groups.by, key, strict=False)),
            rtt_ms=key[-1],
            n=int(parts.n[place]),
            sum_bps=float(parts.sum_bps[place]),
            sum_square=float(parts.sum_square[place]),
            low_bps=float(parts.low_bps[place]),
            high_bps=float(parts.high_bps[place]),
            histogram=parts.histograms[place],
            capacity_bps=None if capacities[place] != capacities[place] else capacities[place],
            moved_bytes=int(parts.moved_bytes[place]),
            busy_s=float(parts.busy_s[place]),
            failed=int(parts.failed[place]),
            rates_bps=parts.rates[place],
        )
        for place, key in enumerate(groups.keys)
    )


def _histograms(sums: _Sums, buckets: Whole, counts: Whole) -> list[dict[int, int]]:
    """The histogram of each group, buckets in their order."""
    counted = counts > 0
    histograms: list[dict[int, int]] = [{} for _ in range(sums.groups)]
    if not counted.any():
        return histograms
    first = buckets[counted].min()
    span = buckets[counted].max() - first + 1
    codes = sums.of_row[counted] * span + (buckets[counted] - first)
    distinct, places = np.unique(codes, return_inverse=True)
    total = np.bincount(places, weights=counts[counted]).astype(np.int64)
    rows = ((distinct // span).tolist(), (distinct % span + first).tolist(), total.tolist())
    for group, bucket, count in zip(*rows, strict=True):
        histograms[group][bucket] = count
    return histograms


def _rates(
    sums: _Sums, rate: Floats, complete: npt.NDArray[np.bool_]
) -> list[tuple[float, ...] | None]:
    """Every rate of each group, rows being sorted by group; None where there are many or none."""
    starts = np.searchsorted(sums.of_row, np.arange(sums.groups + 1))
    kept: list[tuple[float, ...] | None] = []
    for first, end in pairwise(starts.tolist()):
        here = complete[first:end]
        few = 0 < int(here.sum()) <= RATES_MAX
        kept.append(tuple(rate[first:end][here].tolist()) if few else None)
    return kept


def _optional(rows: Frame, names: Sequence[str], name: str, count: int) -> Floats:
    """A column, or nothing in every row where there is no such column."""
    return numbers(rows, name) if name in names else np.full(count, np.nan)


def _complete(rows: Frame, names: Sequence[str], count: int) -> npt.NDArray[np.bool_]:
    if "complete" not in names:
        return np.ones(count, dtype=bool)
    said = values(rows, "complete")
    for place, value in enumerate(said):
        if not isinstance(value, (bool, np.bool_)):
            raise SpecError(f"row {place}: complete is {value!r}; allowed: true and false")
    return np.array(said, dtype=bool)


def _check_rows(rate: Floats, complete: npt.NDArray[np.bool_], rtt: Floats) -> None:
    wrong = np.flatnonzero(complete & ~((rate > 0) & np.isfinite(rate)))
    if len(wrong):
        place = wrong[0]
        raise SpecError(
            f"row {place}: rate_bps is {rate[place]:g}; a complete measurement has a rate above 0, "
            "one that failed is marked by complete = false"
        )
    wrong = np.flatnonzero((rtt < 0) | np.isinf(rtt))
    if len(wrong):
        raise SpecError(f"row {wrong[0]}: rtt_ms is {rtt[wrong[0]]:g}; it cannot be below 0")


MERGE_MS = 0.5
MERGE_SHARE = 0.01
"""Tolerance around a centre: the larger of 0.5 ms and 1 % of its RTT."""

QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class Knots:
    """What a profile is made of, an entry for each knot, and what is known beside them."""

    cells: tuple[Cell, ...]
    rtt_ms: Floats
    sd_bps: Floats
    failed: int
    unplaced: int


def knots_of(
    cells: Sequence[Cell], merge_ms: float = MERGE_MS, merge_share: float = MERGE_SHARE
) -> Knots:
    """Cells added up to knots, in the order of their RTTs; keys do not matter.

    Raises:
        SpecError: when no cell has both a complete measurement and a round-trip time, when one is
            below 0, or for a tolerance out of range.
    """
    _check_tolerance(merge_ms, merge_share)
    cells = list(cells)
    placed = [cell for cell in cells if cell.n and cell.rtt_ms is not None]
    if not placed:
        count = sum(cell.n + cell.failed for cell in cells)
        raise SpecError(
            f"no profile: none of {count} measurements is complete and has a round-trip time"
        )
    rtt_ms = np.array([cell.rtt_ms for cell in placed], dtype=np.float64)
    if not bool(np.all((rtt_ms >= 0) & np.isfinite(rtt_ms))):
        raise SpecError("no profile: the rtt_ms of a cell is not a number of 0 or more")
    n = np.array([cell.n for cell in placed], dtype=np.float64)
    groups = rtt_groups(rtt_ms, n, merge_ms, merge_share)
    members: list[list[Cell]] = [[] for _ in range(groups.max() + 1)]
    for place, cell in zip(groups.tolist(), placed, strict=True):
        members[place].append(cell)
    centre = np.bincount(groups, weights=rtt_ms * n) / np.bincount(groups, weights=n)
    # A mean of equal numbers is not always that number.
    least, most = (np.array([f(c.rtt_ms for c in m) for m in members]) for f in (min, max))  # type: ignore[type-var]
    centre = np.clip(centre, least, most)
    return Knots(
        cells=tuple(
            add_cells(group, {}, at) for group, at in zip(members, centre.tolist(), strict=True)
        ),
        rtt_ms=centre,
        sd_bps=np.array([sd_of(group) for group in members]),
        failed=sum(cell.failed for cell in cells),
        unplaced=sum(cell.n for cell in cells if cell.rtt_ms is None),
    )


def rtt_groups(rtt_ms: Floats, n: Floats, merge_ms: float, merge_share: float) -> Whole:
    """Which knot each RTT (N,) with `n` (N,) measurements belongs to, counted by rising RTT."""
    distinct, place = np.unique(rtt_ms, return_inverse=True)
    weight = np.bincount(place, weights=n)
    tolerance = np.maximum(merge_ms, merge_share * distinct)
    first = np.searchsorted(distinct, distinct - tolerance, side="left")
    end = np.searchsorted(distinct, distinct + tolerance, side="right")
    centre_of = np.full(len(distinct), -1)
    for centre in np.lexsort((distinct, -weight)).tolist():
        if centre_of[centre] < 0:
            reach = centre_of[first[centre] : end[centre]]
            reach[reach < 0] = centre
    ranks: Whole = np.unique(centre_of, return_inverse=True)[1]
    return ranks[place]


def sd_of(cells: Sequence[Cell]) -> float:
    """Sample standard deviation of all rates of several cells; NaN below two.

    Deviations inside the cells and between their means are added, so that nothing is lost to the
    difference of large numbers between cells.
    """
    n = np.array([cell.n for cell in cells], dtype=np.float64)
    if n.sum() < 2:
        return math.nan
    sums = np.array([cell.sum_bps for cell in cells])
    inside = math.fsum(cell.deviations for cell in cells)
    between = float((n * (sums / n - sums.sum() / n.sum()) ** 2).sum())
    return math.sqrt((inside + between) / float(n.sum() - 1))


def _check_tolerance(merge_ms: float, merge_share: float) -> None:
    if not (merge_ms >= 0 and math.isfinite(merge_ms)):
        raise SpecError(f"merge_ms: {merge_ms} is not a number of 0 or more")
    if not 0 <= merge_share < 1:
        raise SpecError(f"merge_share: {merge_share} is not a share from 0 to below 1")
