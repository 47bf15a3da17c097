"""The sawtooth of one flow over a drop-tail queue: computed, and read from the queue's occupancy.

Computed: window and queue grow by `growth` packets per round trip from `backoff` times the
largest window W to W; a round trip lasts as long as the window needs at the bottleneck's rate,
and at least the path's own. The loss is noticed one round trip (with a full queue) after it
happens, and recovery takes another. Reno: 1 and 1/2 (RFC 5681). CUBIC while it is slower than
Reno would be: 3 (1 - b) / (1 + b) and b = 0.7 (RFC 9438, section 4.3). Read: intervals between
bouts of drops, and autocorrelation. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CUBIC_SCALE = 0.4
CUBIC_BACKOFF = 0.7

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Growth:
    """How a congestion control's window moves."""

    name: str
    packets_per_rtt: float
    backoff: float


RENO = Growth("reno", 1.0, 0.5)
CUBIC = Growth("cubic", 3 * (1 - CUBIC_BACKOFF) / (1 + CUBIC_BACKOFF), CUBIC_BACKOFF)


@dataclass(frozen=True)
class Bottleneck:
    """A link with a drop-tail queue, and the size of the packets on it (all bytes on the wire)."""

    rate_bps: float
    rtt_s: float
    buffer_bytes: float
    packet_bytes: float

    @property
    def largest_window(self) -> float:
        """Packets that pipe and queue hold together."""
        return (self.rate_bps * self.rtt_s / 8 + self.buffer_bytes) / self.packet_bytes

    def round_trip_s(self, window: float) -> float:
        """Round trip with so many packets under way."""
        return max(self.rtt_s, window * self.packet_bytes * 8 / self.rate_bps)


def period_s(path: Bottleneck, growth: Growth) -> float:
    """Seconds from one loss to the next."""
    full = path.largest_window
    windows = np.arange(growth.backoff * full, full, growth.packets_per_rtt)
    climb = sum(path.round_trip_s(float(window)) for window in windows)
    return climb + 2 * path.round_trip_s(full)


def cubic_plateau_s(path: Bottleneck) -> float:
    """K: seconds until CUBIC's curve is back at the window of the last loss (RFC 9438, equation 2).

    `period_s` holds for CUBIC if it is well below this.
    """
    return float(np.cbrt(path.largest_window * (1 - CUBIC_BACKOFF) / CUBIC_SCALE))


def drop_intervals_s(at_s: Floats, drops: NDArray[np.int64], quiet_s: float) -> Floats:
    """Seconds between the starts of bouts of drops, which end after `quiet_s` without one."""
    hit = at_s[drops > 0]
    if len(hit) == 0:
        return np.empty(0)
    starts = hit[np.concatenate(([True], np.diff(hit) > quiet_s))]
    return np.diff(starts)


def autocorrelation(values: Floats) -> Floats:
    """Autocorrelation at every lag, 1 at lag 0, each lag by the number of its pairs."""
    centred = values - values.mean()
    size = len(centred)
    spectrum = np.fft.rfft(centred, 2 * size)
    products = np.fft.irfft(spectrum * np.conj(spectrum))[:size]
    means = products / np.arange(size, 0, -1)
    return np.asarray(means / means[0])


def main_period_s(values: Floats, step_s: float) -> float:
    """Period of a series by the first peak of its autocorrelation, finer than its steps.

    # Errors
    ValueError if the series does not repeat: fewer than two periods, or no peak above one half.
    """
    found = autocorrelation(values)[: len(values) // 2]
    below = np.flatnonzero(found < 0)
    above = np.flatnonzero(found[below[0] :] > 0) if len(below) else below
    if len(above) == 0:
        raise ValueError("the series does not repeat within half of its length")
    start = int(below[0] + above[0])
    fall = np.flatnonzero(found[start:] < 0)
    end = start + int(fall[0]) if len(fall) else len(found)
    peak = start + int(np.argmax(found[start:end]))
    if found[peak] < 0.5 or peak + 1 >= len(found):
        raise ValueError(f"no clear period: the autocorrelation's peak is {found[peak]:.2f}")
    return (peak + _vertex(found[peak - 1 : peak + 2])) * step_s


def _vertex(three: Floats) -> float:
    """Where a parabola through three points at −1, 0 and 1 has its vertex."""
    left, middle, right = (float(value) for value in three)
    curvature = left - 2 * middle + right
    return 0.0 if curvature == 0 else (left - right) / (2 * curvature)
