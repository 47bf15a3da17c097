"""Knots of a profile from cells: nearly equal round-trip times become one.

Two measurements of one path never have quite the same RTT, and two pairs of sites may be as good
as equally far apart. The rule: the RTT with most measurements is a centre and takes all that are
within the tolerance of it; of those left, the one with most measurements is the next centre. So a
knot spans at most twice the tolerance however closely RTTs follow one another, and what comes out
does not depend on the order of the measurements. The RTT of a knot is the mean of those taken,
weighted by n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farline.errors import SpecError
from farline.profiles.cell import Cell, add_cells
from farline.profiles.rate_histogram import Floats, Whole

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
