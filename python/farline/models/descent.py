"""From a start to the nearest least sum of squares (Levenberg and Marquardt, MINPACK)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_STEP = 1e-6
"""Half the width over which a slope is taken, where a figure is about 1."""


def descend(
    deviations: Callable[[Floats], Floats], start: Floats, steps: int
) -> tuple[Floats, float]:
    """The point it ends at after at most `steps`, and the sum of squares there.

    `deviations` turns a point into a row, and rows of points into rows. There must be no fewer
    deviations than figures in a point. Deviations that do not change with a figure are no error: it
    then stays as it is. The squares are never more than at the start.
    """
    from scipy.optimize import leastsq

    def slopes(point: Floats) -> Floats:
        """One row for each figure; all of them from one call, which is what makes this fast."""
        widths = np.diag(_STEP * (1 + np.abs(point)))
        rows = deviations(np.concatenate([point + widths, point - widths]))
        count = len(point)
        return np.asarray((rows[:count] - rows[count:]) / (2 * np.diag(widths)[:, np.newaxis]))

    found = leastsq(
        deviations,
        start,
        Dfun=slopes,
        col_deriv=True,
        full_output=True,
        ftol=_TOLERANCE,
        xtol=_TOLERANCE,
        maxfev=steps,
    )
    point = np.asarray(found[0], dtype=np.float64)
    squares, before = (float(np.sum(deviations(at) ** 2)) for at in (point, start))
    return (point, squares) if squares < before else (start, before)
