"""Whether an infrastructure got slower over time.

Rates of each path and setting are compared with themselves only, so that it does not matter what
was measured when. The slope of their logarithm over periods is fitted by weighted least squares,
for all paths and for those of each site; its error is the larger one of that from single cells
and that from whole periods, since a bad week hits many paths at once.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from farline.errors import SpecError
from farline.findings.bound_terms import Floats
from farline.findings.infrastructure_finding import Cause
from farline.findings.pair_rows import PairRow, measured_pairs, pooled_cv, same_rtt
from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.profiles.cells import Cell
    from farline.spec.infrastructure import Infrastructure

MIN_PERIODS, MIN_PATHS = 3, 2
DRIFT_MATTERS = 0.1
"""Fall over all periods from which it is a cause."""

_SITE_MARGIN = 10.0
"""By how much a fall of one site's paths alone must fit better than a fall of all."""


@dataclass(frozen=True)
class Series:
    """Cells by path and period; `time` runs 0 to 1.

    `block` numbers what is compared with itself: a path, by its RTT, with its settings.
    """

    rows: tuple[PairRow, ...]
    block: Floats
    period: Floats
    time: Floats
    log_rate: Floats
    weight: Floats

    def centred(self, values: Floats) -> Floats:
        """Values less their weighted mean over each block."""
        block = self.block.astype(np.int64)
        total = np.bincount(block, weights=self.weight)
        mean = np.bincount(block, weights=self.weight * values) / total
        return np.asarray(values - mean[block])


@dataclass(frozen=True)
class Slope:
    """Change of the logarithm from the first period to the last; `site` None: of all paths."""

    site: str | None
    change: float
    error: float
    degrees: int
    misfit: float

    @property
    def chance(self) -> float:
        """Probability of so large a change by chance, both ways (Student's t)."""
        from scipy.special import stdtr

        if self.error == 0.0 or self.degrees < 1:
            return 1.0
        return float(2 * stdtr(self.degrees, -abs(self.change) / self.error))


def drift(
    periods: Sequence[Cell],
    confidence: float = 0.95,
    infrastructure: Infrastructure | None = None,
    period_s: float | None = None,
) -> Cause | None:
    """The fall of rates over periods as a cause; None where there is none, or too few periods.

    Cells with other settings (`streams` and the like among their keys) or another RTT are not
    compared; cells without RTT are those of one path. With `period_s`, the length of a period of
    which number 0 begins with 1970, the line says dates.

    Raises:
        SpecError: where cells have no whole number `period` among their keys.
    """
    series = _series(periods, infrastructure)
    if series is None:
        return None
    found = _steepest(series)
    fall = -math.expm1(found.change)
    if found.change >= 0 or fall < DRIFT_MATTERS or found.chance > (1 - confidence) / 5:
        return None
    return _cause(series, found, fall, period_s)


def _series(periods: Sequence[Cell], infrastructure: Infrastructure | None) -> Series | None:
    """Blocks that were measured in two periods at least."""
    times: list[int] = []
    rows: list[PairRow] = []
    for cell in periods:
        period = cell.keys.get("period")
        if isinstance(period, bool) or not isinstance(period, int):
            raise SpecError(f"period: {period!r} is not a whole number")
        # A fall can be seen without any RTT.
        unplaced = replace(cell, rtt_ms=0.0)
        one = measured_pairs([cell], infrastructure).rows or measured_pairs([unplaced]).rows
        rows += one
        times += [period] * len(one)
    blocks = _blocks(rows)
    seen: dict[int, set[int]] = {}
    for block, time in zip(blocks, times, strict=True):
        seen.setdefault(block, set()).add(time)
    again = [index for index, block in enumerate(blocks) if len(seen[block]) > 1]
    rows, times = [rows[index] for index in again], [times[index] for index in again]
    if len(set(times)) < MIN_PERIODS or len({row.pair for row in rows}) < MIN_PATHS:
        return None
    period = np.array(times, dtype=np.float64)
    spread = pooled_cv(rows)
    number = np.unique([blocks[index] for index in again], return_inverse=True)[1]
    return Series(
        tuple(rows),
        number.astype(np.float64),
        period,
        (period - period.min()) / (period.max() - period.min()),
        np.log([row.mean_bps for row in rows]),
        np.array([row.n for row in rows]) / spread**2,
    )


def _blocks(rows: Sequence[PairRow]) -> list[int]:
    """A number for each row: the same for the same direction, RTT, modality and settings."""
    group = [0] * len(rows)
    last: dict[tuple[str, str], tuple[float, int]] = {}
    for index in sorted(range(len(rows)), key=lambda index: rows[index].rtt_ms):
        row = rows[index]
        before_ms, number = last.get(row.pair, (row.rtt_ms, 0))
        number += not same_rtt(before_ms, row.rtt_ms)
        last[row.pair] = (row.rtt_ms, number)
        group[index] = number
    found: dict[object, int] = {}
    return [
        found.setdefault((row.sender, row.receiver, row.modality, row.setting, rtt), len(found))
        for row, rtt in zip(rows, group, strict=True)
    ]


def _steepest(series: Series) -> Slope:
    """A fall of all paths, or of one site's where this alone fits far better."""
    sites = sorted({site for row in series.rows for site in row.pair})
    whole = _slope(series, None)
    own = [_slope(series, site) for site in sites]
    best = min(own, key=lambda slope: slope.misfit)
    scale = max(1.0, best.misfit / max(1, best.degrees))
    return best if (whole.misfit - best.misfit) / scale > _SITE_MARGIN else whole


def _slope(series: Series, site: str | None) -> Slope:
    touched = np.array([site is None or site in row.pair for row in series.rows], dtype=np.float64)
    time = series.centred(series.time * touched)
    value = series.centred(series.log_rate)
    power = float(series.weight @ time**2)
    if power <= 1e-12:
        return Slope(site, 0.0, 0.0, 0, float(series.weight @ value**2))
    change = float(series.weight @ (time * value)) / power
    left = value - change * time
    misfit = float(series.weight @ left**2)
    cells = len(series.rows) - len(np.unique(series.block)) - 1
    error = math.sqrt(max(1.0, misfit / max(1, cells)) / power)
    by_period = _error_by_period(series, time, left, power)
    count = len(np.unique(series.period))
    if by_period > error:
        return Slope(site, change, by_period, count - 2, misfit)
    return Slope(site, change, error, cells, misfit)


def _error_by_period(series: Series, time: Floats, left: Floats, power: float) -> float:
    """Error of the slope where all paths of one period go up and down together."""
    pulls = [
        float(np.sum((series.weight * time * left)[series.period == period]))
        for period in np.unique(series.period)
    ]
    free = len(pulls) / max(1, len(pulls) - 2)
    return math.sqrt(free * sum(pull**2 for pull in pulls)) / power


def _cause(series: Series, found: Slope, fall: float, period_s: float | None) -> Cause:
    counts = np.array([row.n for row in series.rows], dtype=np.float64)
    rates = np.exp(series.log_rate)
    touched = np.array([found.site is None or found.site in row.pair for row in series.rows])
    back = np.where(touched, np.exp(-found.change * series.time), 1.0)
    mean = float(np.average(rates, weights=counts))
    gain = float(np.average(rates * back, weights=counts)) - mean
    who = "rates" if found.site is None else f"rates to and from {found.site}"
    low, high = (-math.expm1(found.change + side * 2 * found.error) for side in (1, -1))
    line = (
        f"{who} fell by {100 * fall:.0f} % {_span(series.period.tolist(), period_s)} on the same "
        f"paths with the same settings; at the initial level they would be {rate_human(gain)} "
        "higher on average"
    )
    evidence = (
        f"between {100 * low:.0f} and {100 * high:.0f} %, from {int(counts.sum())} measurements "
        f"of {len({row.pair for row in series.rows})} pairs in "
        f"{len(np.unique(series.period))} periods",
    )
    remedies = ("compare what changed since: kernels, tools, fill level of file systems, load",)
    strength = 1 - found.chance
    return Cause(
        "drift", "whole", found.site, line, gain, gain / mean, strength, evidence, remedies
    )


def _span(periods: Iterable[float], period_s: float | None) -> str:
    """From when to when, as dates in UTC where it is known how long a period is."""
    numbers = sorted({int(period) for period in periods})
    if period_s is not None:
        ends_s = (numbers[0] * period_s, (numbers[-1] + 1) * period_s)
        try:
            first, last = (datetime.datetime.fromtimestamp(end, datetime.UTC) for end in ends_s)
        except (OverflowError, OSError, ValueError):
            pass
        else:
            form = "%Y-%m-%d" if period_s % 86400 == 0 else "%Y-%m-%d %H:%M"
            return f"from {first.strftime(form)} to {last.strftime(form)} (UTC)"
    count = numbers[-1] - numbers[0] + 1
    return f"from period 1 to {count} of {count}"
