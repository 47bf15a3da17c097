"""Where round-trip times stand on an axis, linear or logarithmic, zero included.

Rao et al. 2018 draws profiles over a linear axis; what lies below 50 ms is then in a corner. A log
axis has no place for an RTT of 0, which measurements within a host have: with one, the axis is
log(1 + RTT / knee), with the smallest RTT above zero as the knee.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

LABEL = "Round-trip time (ms)"
MARGIN = 0.04
BETWEEN = 240
"""Places along the whole axis at which a curve is drawn: a straight line is none on a log axis."""

_LEAST_APART = 0.055
"""Share of the axis between two labels of a log axis."""


@dataclass(frozen=True, slots=True)
class RttAxis:
    """An axis over [low_ms, high_ms]; `knee_ms` is 0 for a plain logarithm."""

    low_ms: float
    high_ms: float
    log: bool = False
    knee_ms: float = 0.0

    @property
    def label(self) -> str:
        """What is written along the axis."""
        return f"{LABEL[:-1]}, log scale)" if self.log else LABEL

    @property
    def limits(self) -> tuple[float, float]:
        """First and last place to draw, with a margin; also where there is one RTT only."""
        low, high = (float(place) for place in self.place([self.low_ms, self.high_ms]))
        margin = MARGIN * (high - low) if high > low else max(0.5, 0.5 * abs(low))
        return low - margin, high + margin

    def place(self, rtt_ms: ArrayLike) -> Floats:
        """Places of these round-trip times on a linear scale."""
        import numpy as np

        times = np.asarray(rtt_ms, dtype=float)
        if not self.log:
            return times
        return np.log10(1.0 + times / self.knee_ms) if self.knee_ms else np.log10(times)

    def along(self, rtt_ms: ArrayLike) -> Floats:
        """Round-trip times at which to draw a curve with these knots: the knots and between."""
        import numpy as np

        knots = np.asarray(rtt_ms, dtype=float)
        if not self.log or len(knots) < 2:
            return knots
        first, last = self.place([knots[0], knots[-1]]).tolist()
        places = np.linspace(first, last, BETWEEN)
        between = self.knee_ms * (10.0**places - 1.0) if self.knee_ms else 10.0**places
        between = between[(between > knots[0]) & (between < knots[-1])]
        return np.union1d(knots, between)

    def ticks(self, room: int = 7) -> list[tuple[float, str]]:
        """Places and texts of at most about `room` labels, round numbers."""
        times = self._log_times(room) if self.log else self._linear_times(room)
        return [(float(self.place([time])[0]), f"{time:g}") for time in times]

    def _linear_times(self, room: int) -> list[float]:
        low, high = self.limits
        return (
            _round_times(max(0.0, low), high, room) if self.high_ms > self.low_ms else [self.low_ms]
        )

    def _log_times(self, room: int) -> list[float]:
        low, high = self.low_ms or self.knee_ms, self.high_ms
        if high <= 4 * low and self.low_ms:
            return _round_times(low, high, room)
        found = [] if self.low_ms else [0.0]
        chosen = list(_decades(low, high, room - len(found)))
        for steps in ((1, 3), (1, 2, 5)):
            finer = [step * power for power in _powers(low, high) for step in steps]
            inside = [time for time in finer if low * 0.999 <= time <= high * 1.001]
            if len(inside) + len(found) <= room:
                chosen = inside
        return self._apart([*found, *chosen] or [low])

    def _apart(self, times: list[float]) -> list[float]:
        """Without those whose label would touch the one before."""
        low, high = self.limits
        kept: list[float] = []
        for time in times:
            near = float(self.place([time])[0])
            if not kept or near - float(self.place([kept[-1]])[0]) > _LEAST_APART * (high - low):
                kept.append(time)
        return kept


def rtt_axis(rtt_ms: Iterable[float], log: bool = False) -> RttAxis:
    """The axis that holds all of these round-trip times; from 0 to 1 ms where there are none."""
    times = sorted({float(time) for time in rtt_ms if math.isfinite(time)}) or [0.0, 1.0]
    above = [time for time in times if time > 0]
    if not log or not above:
        return RttAxis(times[0], times[-1])
    return RttAxis(times[0], times[-1], True, above[0] if times[0] <= 0 else 0.0)


def draw_rtt_axis(panel: Axes, axis: RttAxis, room: int = 7, label: bool = True) -> None:
    """Limits, labels and the axis's name along x."""
    places, texts = zip(*axis.ticks(room), strict=True)
    panel.set_xlim(*axis.limits)
    panel.set_xticks(places, texts)
    panel.minorticks_off()
    if label:
        panel.set_xlabel(axis.label)


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten from below `low` to above `high`."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**power for power in range(first, last + 1)]


def _decades(low: float, high: float, room: int) -> list[float]:
    """Powers of ten within, every second or third of them where there is little room."""
    inside = [power for power in _powers(low, high) if low * 0.999 <= power <= high * 1.001]
    return inside[:: max(1, math.ceil(len(inside) / max(1, room)))]


def _round_times(low: float, high: float, room: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between two times, at most `room`."""
    if high <= low:
        return [low]
    rough = (high - low) / room
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)] or [low, high]
