"""Where a profile bends down (concave), up (convex), or not beyond its noise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

import numpy as np

from farline.profiles.interpolation import WeightRows, bend_rows

if TYPE_CHECKING:
    from farline.profiles.throughput_profile import ThroughputProfile

Shape = Literal["concave", "convex", "straight"]

_ROUNDING = 1e-9
"""Change of slope, against the slopes themselves, that is nothing but rounding."""


@dataclass(frozen=True, slots=True)
class Region:
    """Neighbouring knots that bend alike; regions cover the profile without a gap.

    A knot stands for the RTTs up to the middles between it and its neighbours. "straight" is where
    the bend is not told from none. `sure` is whether repeated measurements told: without them the
    bend of the means is taken as it is.
    """

    left_ms: float
    right_ms: float
    shape: Shape
    sure: bool


def regions(profile: ThroughputProfile, confidence: float = 0.95) -> tuple[Region, ...]:
    """Regions by the change of slope at every inner knot, each judged at `confidence` by itself.

    A profile of one or two knots is straight, and of that no measurement can be sure.
    """
    rtt_ms = profile.rtt_ms
    if len(rtt_ms) < 3:
        return (Region(float(rtt_ms[0]), float(rtt_ms[-1]), "straight", False),)
    rows = bend_rows(rtt_ms)
    bends = rows.of(profile.mean_bps)
    half = profile.spread.half_width(rows, confidence)
    sure = not bool(np.isnan(half).any())
    slopes = WeightRows(rows.places, np.abs(rows.weights)).of(np.abs(profile.mean_bps))
    noise = np.fmax(half, _ROUNDING * slopes)
    shapes = [_shape(bend, limit) for bend, limit in zip(bends, noise, strict=True)]
    middles = (rtt_ms[1:] + rtt_ms[:-1]) / 2.0
    edges = np.concatenate([[rtt_ms[0]], middles[1:-1], [rtt_ms[-1]]]).tolist()
    found = []
    for shape, places in groupby(range(len(shapes)), key=shapes.__getitem__):
        run = list(places)
        found.append(Region(edges[run[0]], edges[run[-1] + 1], shape, sure))
    return tuple(found)


def _shape(bend: float, noise: float) -> Shape:
    if abs(bend) <= noise:
        return "straight"
    return "concave" if bend < 0 else "convex"
