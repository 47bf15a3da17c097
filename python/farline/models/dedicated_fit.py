"""The dedicated-channel model fitted to a profile: capacity, time of observation, window."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from farline.models.dedicated_channel import (
    INITIAL_WINDOW_BYTES,
    dedicated_bps,
    transition_rtt_ms,
)
from farline.models.fitting import descend, log_given, thriftiest
from farline.models.profile_model import Regressor
from farline.models.quantities import positive, positive_finite
from farline.spec.units import rate_human, size_human

if TYPE_CHECKING:
    from farline.models.profile_model import Floats, Knots

_REFINED, _STEPS = 2, 60
"""Starts of the grid, best first, from which the fit goes on."""

_RANGES = np.log([(1.0, 1e15), (1e-6, 1e6), (1.0, 1e16)])
"""Logarithms of capacity in bit/s, time in s and window in bytes that are looked at. In a week a
ramp leaves no trace."""


class DedicatedChannel(Regressor):
    """Ramp and sustained rate over a line of its own (`dedicated_channel`), by least log squares.

    What is None is fitted: `capacity_bps`, `observed_s` (T_O), `window_bytes` (of each stream; a
    window is only there where it earns its place, and is infinite otherwise). Give what is known;
    runs of a fixed length make T_O known. Of the fit: the same names with an underscore, and
    `transition_rtt_ms_`, where concave turns to convex.
    """

    name: ClassVar[str] = "dedicated"
    capacity_bps_: float
    observed_s_: float
    window_bytes_: float
    transition_rtt_ms_: float

    def __init__(
        self,
        capacity_bps: float | None = None,
        observed_s: float | None = None,
        window_bytes: float | None = None,
        streams: int = 1,
        initial_window_bytes: float = INITIAL_WINDOW_BYTES,
    ) -> None:
        """Keeps what is known; nothing of it is looked at before `fit`."""
        self.capacity_bps = capacity_bps
        self.observed_s = observed_s
        self.window_bytes = window_bytes
        self.streams = streams
        self.initial_window_bytes = initial_window_bytes

    @property
    def knots_needed(self) -> int:
        """One more than what is to be fitted."""
        return 1 + [self.capacity_bps, self.observed_s, self.window_bytes].count(None)

    def _learn(self, knots: Knots) -> None:
        positive_finite("streams", self.streams)
        positive_finite("initial_window_bytes", self.initial_window_bytes)
        forms = [_Form(log_given("capacity_bps", self.capacity_bps), *self._given())]
        if self.window_bytes is None:
            forms.insert(0, _Form(forms[0].log_capacity, forms[0].log_observed, math.inf))
        best = thriftiest([self._fitted(form, knots) for form in forms], len(knots))
        capacity, observed, window = np.exp(best.point)
        self.capacity_bps_ = float(capacity)
        self.observed_s_ = float(observed)
        self.window_bytes_ = float(window)
        self.transition_rtt_ms_ = float(transition_rtt_ms(capacity, window, self.streams))
        self.parameters_ = best.parameters

    def _given(self) -> tuple[float | None, float | None]:
        """Logarithms of time of observation and window; both may be infinite."""
        observed, window = (
            None if value is None else float(np.log(positive(name, value)))
            for name, value in (
                ("observed_s", self.observed_s),
                ("window_bytes", self.window_bytes),
            )
        )
        return observed, window

    def _fitted(self, form: _Form, knots: Knots) -> _Fitted:
        """The best point of a form: from a grid, then on from the best of it."""
        root, log_rate = np.sqrt(knots.weight), np.log(knots.rate_bps)

        def deviations(free: Floats) -> Floats:
            """One row of deviations for each row of free logarithms."""
            curve = self._log_curve(form.points(free), knots.rtt_ms)
            return np.asarray(root * (curve - log_rate))

        starts = form.starts(knots, self.streams)
        squares = np.sum(deviations(starts) ** 2, axis=1)
        order = np.argsort(squares, kind="stable")
        best, best_squares = starts[order[0]], float(squares[order[0]])
        for start in starts[order[:_REFINED]] if form.free else []:
            point, own_squares = descend(deviations, start, _STEPS)
            if own_squares < best_squares:
                best, best_squares = point, own_squares
        return _Fitted(form.points(best), best_squares, form.free)

    def _log_curve(self, points: Floats, rtt_ms: Floats) -> Floats:
        capacity, observed, window = (np.exp(points[..., n, np.newaxis]) for n in range(3))
        rate_bps = dedicated_bps(
            rtt_ms, capacity, observed, window, self.streams, self.initial_window_bytes
        )
        return np.log(rate_bps)

    def _curve(self, rtt_ms: Floats) -> Floats:
        return dedicated_bps(
            rtt_ms,
            self.capacity_bps_,
            self.observed_s_,
            self.window_bytes_,
            self.streams,
            self.initial_window_bytes,
        )

    def _words(self) -> str:
        line = f"a ramp up to {rate_human(self.capacity_bps_)} within {self.observed_s_:.3g} s"
        if math.isinf(self.window_bytes_):
            return f"{line}: concave, no window visible"
        return (
            f"{line}: concave up to {self.transition_rtt_ms_:.3g} ms, "
            f"then a window of {size_human(self.window_bytes_)}"
        )


@dataclass(frozen=True, eq=False, slots=True)
class _Fitted:
    """Logarithms of capacity, time and window, with what they come to."""

    point: Floats
    squares: float
    parameters: int


@dataclass(frozen=True, slots=True)
class _Form:
    """Which of the three logarithms are given, and which (None) are to be found."""

    log_capacity: float | None
    log_observed: float | None
    log_window: float | None

    @property
    def given(self) -> tuple[float | None, float | None, float | None]:
        """All three in the order of a point."""
        return self.log_capacity, self.log_observed, self.log_window

    @property
    def free(self) -> int:
        """How many are to be found."""
        return self.given.count(None)

    def points(self, free: Floats) -> Floats:
        """Whole points from the free logarithms, in the last axis, kept within what can be."""
        points = np.empty((*free.shape[:-1], 3))
        place = 0
        for column, value in enumerate(self.given):
            if value is None:
                value = np.clip(free[..., place], *_RANGES[column])
                place += 1
            points[..., column] = value
        return points

    def starts(self, knots: Knots, streams: float) -> Floats:
        """Rows of a grid: capacities from what was seen, seconds to hours, knees over the knots."""
        top = math.log(knots.rate_bps.max())
        seconds = knots.rtt_ms[-1] / 1000 * 10 ** np.linspace(0.5, 4, 8)
        # The window that would hold a knot back by itself, and larger ones that do with a ramp.
        holds = knots.rate_bps * knots.rtt_ms / 8000 / streams
        windows = np.outer(holds[holds > 0], (1.0, 1.1, 1.3)).ravel()
        axes = (
            [top, top + 0.1],
            np.log(seconds[seconds > 0]).tolist() or [0.0],
            np.log(windows).tolist() or [0.0],
        )
        chosen = [axis for axis, value in zip(axes, self.given, strict=True) if value is None]
        points = list(product(*chosen))
        return np.array(points, dtype=np.float64).reshape(len(points), self.free)
