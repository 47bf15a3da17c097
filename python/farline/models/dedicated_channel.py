"""A transfer over a line of its own: an exponential ramp, then all that line and window allow.

`streams` connections start with `initial_window_bytes` each and double every round trip, up to
W = min(Cτ, nW_buf) in flight together, then stay there until `observed_s` are over. The mean over
that time is concave in τ where the line is the limit and convex where the window is: the shapes of
Rao et al. 2018, Fig. 1, with nothing but a finite time of observation behind the first. So profiles
of unlike durations must not be mixed, and leaving the ramp out takes the concavity away.

Arguments are numbers or arrays, and they broadcast. Sizes are bytes, rates payload bits per second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farline.models.quantities import not_negative, positive, positive_finite
from farline.models.window_bound import knee_rtt_ms

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

INITIAL_WINDOW_BYTES = 10 * 1448
"""Ten segments with timestamps (RFC 6928): what a connection sends before it hears anything."""


def dedicated_bps(
    rtt_ms: ArrayLike,
    capacity_bps: ArrayLike,
    observed_s: ArrayLike,
    window_bytes: ArrayLike = np.inf,
    streams: ArrayLike = 1,
    initial_window_bytes: ArrayLike = INITIAL_WINDOW_BYTES,
) -> Floats:
    """Θ(τ) = [(W − nw₀)/ln 2 + (W/τ)(T_O − T_R)] / T_O, all bytes over the whole time.

    Where the ramp does not end in time, what it carried until then; where the first window already
    fills W, W/τ throughout. C at τ = 0. `observed_s` may be infinite: then there is no ramp.

    Raises:
        SpecError: for a negative RTT, or another quantity that is not positive.
    """
    path = _path(rtt_ms, capacity_bps, observed_s, window_bytes, streams, initial_window_bytes)
    growing_s = np.minimum(path.ramp_s, path.observed_s)
    # Bytes of a ramp are the integral of n w₀ 2^(t/τ) / τ.
    ramp_bytes = path.first_bytes / np.log(2) * np.expm1(np.log(2) * _over(growing_s, path.rtt_s))
    ramp_bps = 8 * ramp_bytes / path.observed_s
    return np.asarray(ramp_bps + path.full_bps * (1 - _over(growing_s, path.observed_s)))


def ramp_s(
    rtt_ms: ArrayLike,
    capacity_bps: ArrayLike,
    window_bytes: ArrayLike = np.inf,
    streams: ArrayLike = 1,
    initial_window_bytes: ArrayLike = INITIAL_WINDOW_BYTES,
) -> Floats:
    """T_R = τ log₂(W/(nw₀)) in seconds: how long the windows double. 0 where they need not.

    Raises:
        SpecError: for a negative RTT, or another quantity that is not positive.
    """
    path = _path(rtt_ms, capacity_bps, np.inf, window_bytes, streams, initial_window_bytes)
    return path.ramp_s


def transition_rtt_ms(
    capacity_bps: ArrayLike, window_bytes: ArrayLike, streams: ArrayLike = 1
) -> Floats:
    """τ_T = nW_buf/C in ms: the profile is concave up to it and convex beyond.

    It is the knee of the window bound. The concave part begins where the first window no longer
    fills the line, and `curvature` says when the ramp outlasts the observation before τ_T.

    Raises:
        SpecError: for a quantity that is not positive.
    """
    return knee_rtt_ms(capacity_bps, window_bytes, streams)


def curvature(
    rtt_ms: ArrayLike,
    capacity_bps: ArrayLike,
    observed_s: ArrayLike,
    window_bytes: ArrayLike = np.inf,
    streams: ArrayLike = 1,
    initial_window_bytes: ArrayLike = INITIAL_WINDOW_BYTES,
) -> Floats:
    """Θ''(τ) in bit/s per ms²: below 0 where the profile is concave, above where it is convex.

    −C/(T_O τ ln 2) where the line is the limit, 2nW_buf/τ³ where the window is, and convex too
    where the ramp does not end in time. 0 where the first window fills the line, and at τ = 0.

    Raises:
        SpecError: for a negative RTT, or another quantity that is not positive.
    """
    path = _path(rtt_ms, capacity_bps, observed_s, window_bytes, streams, initial_window_bytes)
    late = path.ramp_s >= path.observed_s
    line = np.isinf(path.window_bytes) | (path.bdp_bytes < path.window_bytes)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        doublings = np.log(2) * path.observed_s / path.rtt_s
        ramp = np.exp(doublings) * (doublings**2 + 2 * doublings) / path.rtt_s**2
        ramp *= 8 * path.first_bytes / np.log(2) / path.observed_s
        concave = -path.capacity_bps / (path.observed_s * path.rtt_s * np.log(2))
        concave = np.where(path.ramp_s > 0, concave, 0.0)
        convex = 16 * path.window_bytes / path.rtt_s**3
    per_s2 = np.where(late, ramp, np.where(line, concave, convex))
    return np.asarray(np.where(path.rtt_s > 0, per_s2, 0.0) / 1e6)


@dataclass(frozen=True, eq=False, slots=True)
class _Path:
    """Arguments in seconds and over all streams, all of one shape."""

    rtt_s: Floats
    capacity_bps: Floats
    observed_s: Floats
    window_bytes: Floats
    first_bytes: Floats

    @property
    def bdp_bytes(self) -> Floats:
        return np.asarray(self.capacity_bps * self.rtt_s / 8)

    @property
    def full_bps(self) -> Floats:
        """The rate after the ramp: W/τ."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(np.minimum(self.capacity_bps, 8 * self.window_bytes / self.rtt_s))

    @property
    def ramp_s(self) -> Floats:
        largest_bytes = np.minimum(self.bdp_bytes, self.window_bytes)
        ratio = np.maximum(largest_bytes, self.first_bytes) / self.first_bytes
        return np.asarray(self.rtt_s * np.log2(ratio))


def _path(
    rtt_ms: ArrayLike,
    capacity_bps: ArrayLike,
    observed_s: ArrayLike,
    window_bytes: ArrayLike,
    streams: ArrayLike,
    initial_window_bytes: ArrayLike,
) -> _Path:
    count = positive_finite("streams", streams)
    first_bytes = count * positive_finite("initial_window_bytes", initial_window_bytes)
    return _Path(
        *np.broadcast_arrays(
            not_negative("rtt_ms", rtt_ms) / 1000,
            positive_finite("capacity_bps", capacity_bps),
            positive("observed_s", observed_s),
            count * positive("window_bytes", window_bytes),
            first_bytes,
        )
    )


def _over(upper: Floats, lower: Floats) -> Floats:
    """A ratio that is 0 where the upper part is."""
    safe = np.where(upper > 0, lower, 1.0)
    return np.asarray(upper / safe)
