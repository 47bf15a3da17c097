"""Throughput of a transfer over the applied background rate: the ideal curve, and its knee.

Yu et al. 2014, Fig. 3: a transfer at line rate beside background of 1 to 10 Gb/s on a line of 10.
The transfer gives way until both flatten out; where they do, is the knee (the paper reads 6 Gb/s).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = 400
"""Places between the first and the last load at which a knee is looked for."""
_EXPLAINED = 0.5
"""Part of the variance that a knee must explain: a curve that does not fall has none."""


@dataclass(frozen=True, slots=True)
class Knee:
    """Where a falling curve becomes flat: the load, the level from there on, the slope before.

    `slope` is what the transfer gives up of each added unit of background; 1 is all of it.
    """

    load_bps: float
    plateau_bps: float
    slope: float


def ideal_rates(
    load_bps: float, capacity_bps: float, flows: int = 1, background_flows: int = 1
) -> tuple[float, float]:
    """Transfer and background under max-min fairness per flow; equal round-trip times.

    With n flows against m the transfer keeps `L n / (n + m)` and the knee is at `L m / (n + m)`.
    """
    fair = capacity_bps * background_flows / (flows + background_flows)
    background = min(load_bps, fair)
    return capacity_bps - background, background


def find_knee(loads_bps: Sequence[float], rates_bps: Sequence[float]) -> Knee | None:
    """The knee of a measured curve: least squares of `plateau + slope * max(knee - load, 0)`.

    For each place the other two follow by linear regression; the place with the least error is
    taken. None with fewer than four loads, or where no fall explains half of the variance.

    Raises:
        ValueError: when there are not as many rates as loads.
    """
    if len(loads_bps) != len(rates_bps):
        raise ValueError(f"{len(rates_bps)} rates for {len(loads_bps)} loads")
    if len(set(loads_bps)) < 4:
        return None
    first, last = min(loads_bps), max(loads_bps)
    places = [first + (last - first) * step / _STEPS for step in range(1, _STEPS + 1)]
    # Of places that fit equally well the first: the knee is where the curve stops to fall.
    error, knee = min(
        (_hinge(loads_bps, rates_bps, place) for place in places),
        key=lambda found: (round(found[0], 9), found[1].load_bps),
    )
    mean = math.fsum(rates_bps) / len(rates_bps)
    spread = math.fsum((rate - mean) ** 2 for rate in rates_bps)
    if spread == 0 or knee.slope <= 0 or error > 1 - _EXPLAINED:
        return None
    return knee


def _hinge(loads: Sequence[float], rates: Sequence[float], place: float) -> tuple[float, Knee]:
    """Unexplained part of the variance, and the curve with its knee at `place`."""
    below = [max(place - load, 0.0) for load in loads]
    x_mean, y_mean = math.fsum(below) / len(below), math.fsum(rates) / len(rates)
    xx = math.fsum((x - x_mean) ** 2 for x in below)
    xy = math.fsum((x - x_mean) * (y - y_mean) for x, y in zip(below, rates, strict=True))
    yy = math.fsum((y - y_mean) ** 2 for y in rates)
    slope = xy / xx if xx > 0 else 0.0
    error = max(0.0, yy - slope * xy) / yy if yy > 0 else 0.0
    return error, Knee(place, y_mean - slope * x_mean, slope)
