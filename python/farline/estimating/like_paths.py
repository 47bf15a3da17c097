"""What other paths say of one that has had no transfer: how far they are from the prior.

The published histories are of old hosts. If every path of this store is three times as fast as
they say, so will the next one be. Other paths move the middle and do not narrow the interval: what
a path that was never seen differs by is mostly its shape, and nothing but its own transfers shows
that (docs/design/estimating.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farline.estimating.features import SCALE, features, prior

if TYPE_CHECKING:
    import numpy.typing as npt

    from farline.estimating.features import Floats
    from farline.estimating.finished import Finished
    from farline.estimating.workload import Workload

MOST_OF_A_PATH = 200
"""Newest transfers of a path that are looked at."""

_SPREAD = 4.0
"""Kinds of data that a like transfer may be away, in the scale of `features`."""


@dataclass(frozen=True, eq=False)
class LikePaths:
    """Other paths, as far as they say something of this one; computed once, asked many times.

    All transfers stand in one table, those of a path together: numpy is asked once and not once
    for each path, which is most of what an estimate without transfers of its own costs.
    """

    known: Floats
    """Features of the newest transfers of all paths, a row of seven for each."""
    beside: Floats
    """How far each was from the prior: difference of log rates."""
    begins: npt.NDArray[np.intp]
    """Where the transfers of each path begin."""


def like_paths(paths: Iterable[Sequence[Finished]]) -> LikePaths:
    """What paths with at least one transfer each say, oldest first."""
    rows = [done[-MOST_OF_A_PATH:] for done in paths]
    known = np.array([features(one.workload) for done in rows for one in done])
    known = known.reshape(-1, len(SCALE))
    rates = [one.log_rate for done in rows for one in done]
    beside = np.array([rate - prior(row) for rate, row in zip(rates, known, strict=True)])
    counts = [0, *map(len, rows[:-1])] if rows else []
    return LikePaths(known, beside, np.cumsum(counts, dtype=np.intp))


def level_of(load: Workload, paths: LikePaths) -> tuple[float, float]:
    """Log rate that like paths add to the prior, and how many paths that rests on.

    A path weighs as much as its transfers nearest to `load` are like it, at most 1; the prior
    itself weighs 1 too.
    """
    if not len(paths.begins):
        return 0.0, 0.0
    begins = paths.begins
    distance = np.sum(((paths.known - features(load)) / SCALE) ** 2, axis=1)
    nearest = np.minimum.reduceat(distance, begins)
    counts = np.diff(begins, append=len(distance))
    near = np.exp(-(distance - np.repeat(nearest, counts)) / 2)
    levels = np.add.reduceat(near * paths.beside, begins) / np.add.reduceat(near, begins)
    weights = np.exp(-nearest / (2 * _SPREAD**2))
    total = float(weights.sum())
    return float(weights @ levels) / (total + 1.0), total
