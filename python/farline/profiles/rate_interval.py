"""Confidence intervals that a rate can have: above 0, and only where runs tell them.

Student's interval m ± h of a mean rate reaches below 0 where few runs differ much; no rate does. On
the scale of logarithms the error of a mean m with standard error s is s / m to first order (the
delta method: Oehlert, "A note on the delta method", The American Statistician 46(1), 1992), so
that m e^(-h/m) to m e^(h/m) is the interval with the same h: it is above 0, and where h is small
beside m it is m ± h (at h = 10 % of m the ends differ from it by half a percent of m). Means of
skewed rates are covered better by it than by m ± h (Olsson, "Confidence intervals for the mean of a
log-normal distribution", Journal of Statistics Education 13(1), 2005). A bootstrap would not do:
with the two to five runs of a setting it cannot leave the span of what was measured, and covers too
little.

An interval whose ends are more than `WIDEST` apart says that nothing is known: none is shown then.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

WIDEST = 100.0
"""Upper over lower end of an interval beyond which it tells nothing."""


def rate_interval(mean: float, half: float) -> tuple[float, float] | None:
    """Lower and upper end (the unit of `mean`) from Student's half-width, however wide.

    None where no error is known. A mean of 0 or less has none, unless there is no error at all.
    """
    if not (math.isfinite(mean) and math.isfinite(half)):
        return None
    if half == 0:
        return mean, mean
    if mean <= 0 or half < 0:
        return None
    with contextlib.suppress(OverflowError):
        return mean * math.exp(-half / mean), mean * math.exp(half / mean)
    return None


def worth_saying(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    """The interval, or None where its ends are so far apart that it tells nothing."""
    if interval is None or interval[1] > WIDEST * interval[0] > 0:
        return None
    return interval


def ratio_interval(log_ratio: float, half: float) -> tuple[float, float] | None:
    """Ends of the interval of a ratio from its logarithm and Student's half-width of that.

    None where they are so far apart that nothing is known.
    """
    if not (math.isfinite(log_ratio) and 0 <= 2 * half <= math.log(WIDEST)):
        return None
    return math.exp(log_ratio - half), math.exp(log_ratio + half)


def rate_intervals(means: Floats, halves: Floats) -> tuple[Floats, Floats]:
    """Lower and upper ends (K,) and (K,) of K intervals, NaN where none is known."""
    import numpy as np

    found = [
        worth_saying(rate_interval(float(m), float(h))) for m, h in zip(means, halves, strict=True)
    ]
    ends = np.array([(math.nan, math.nan) if one is None else one for one in found])
    return ends.reshape(-1, 2)[:, 0], ends.reshape(-1, 2)[:, 1]
