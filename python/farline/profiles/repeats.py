"""How many runs a mean needs to be known well enough."""

from __future__ import annotations

import math

from farline.errors import SpecError
from farline.profiles.interpolation import checked_confidence

REPEATS_MAX = 1_000_000
"""More runs than this are no answer."""


def repeats_needed(cv: float, half_width: float, confidence: float = 0.95) -> int:
    """Runs until the interval of their mean is ± `half_width` of it, by Student's t.

    `cv` is the standard deviation of a run over the mean; both are shares, 0.05 is 5 %. The unit
    is the run: seconds inside a run are not independent.

    Raises:
        SpecError: when a share is not above 0, or more than a million runs would be needed.
    """
    from scipy.special import stdtrit

    for name, share in (("cv", cv), ("half_width", half_width)):
        if not (share > 0 and math.isfinite(share)):
            raise SpecError(f"{name}: {share} is not a share above 0")
    point = 0.5 + checked_confidence(confidence) / 2

    def enough(n: int) -> bool:
        return bool(stdtrit(n - 1, point) * cv / math.sqrt(n) <= half_width)

    high = 2
    while not enough(high):
        high *= 2
        if high > REPEATS_MAX:
            raise SpecError(
                f"half_width: ± {half_width:g} with a variation of {cv:g} needs more than "
                f"{REPEATS_MAX} runs"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
