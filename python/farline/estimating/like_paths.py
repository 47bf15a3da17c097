"""What other paths say of one that has had no transfer: how far they are from the prior.

The published histories are of old hosts. If every path of this store is three times as fast as
they say, so will the next one be. Other paths move the middle and do not narrow the interval: what
a path that was never seen differs by is mostly its shape, and nothing but its own transfers shows
that (docs/design/estimating.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farline.estimating.features import SCALE, features, prior

if TYPE_CHECKING:
    from farline.estimating.features import Floats
    from farline.estimating.finished import Finished
    from farline.estimating.workload import Workload

MOST_OF_A_PATH = 200
"""Newest transfers of a path that are looked at."""

_SPREAD = 4.0
"""Kinds of data that a like transfer may be away, in the scale of `features`."""


@dataclass(frozen=True, eq=False)
class LikePath:
    """Another path, as far as it says something of this one; computed once, asked many times."""

    known: Floats
    """Features of its newest transfers, a row of seven for each."""
    beside: Floats
    """How far each was from the prior: difference of log rates."""


def like_path(done: Sequence[Finished]) -> LikePath:
    """What a path with at least one transfer says, oldest first."""
    rows = done[-MOST_OF_A_PATH:]
    known = np.array([features(one.workload) for one in rows])
    beside = np.array([one.log_rate - prior(row) for one, row in zip(rows, known, strict=True)])
    return LikePath(known, beside)


def level_of(load: Workload, paths: Iterable[LikePath]) -> tuple[float, float]:
    """Log rate that like paths add to the prior, and how many paths that rests on.

    A path weighs as much as its transfers nearest to `load` are like it, at most 1; the prior
    itself weighs 1 too.
    """
    x = features(load)
    total = weights = 0.0
    for path in paths:
        distance = np.sum(((path.known - x) / SCALE) ** 2, axis=1)
        nearest = float(distance.min())
        near = np.exp(-(distance - nearest) / 2)
        weight = math.exp(-nearest / (2 * _SPREAD**2))
        total += weight * float(near @ path.beside / near.sum())
        weights += weight
    return total / (weights + 1.0), weights
