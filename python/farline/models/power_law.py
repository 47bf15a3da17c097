"""Profiles with one level, or with a level and a fall by any power of RTT.

The exponent tells causes apart: 1 is a window or Reno's answer to loss (Mathis), 0.25 CUBIC's,
0 a limit that does not know of RTT, such as a disk.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from farline.models.log_knee import LogKnee, fit_log_knee, log_given
from farline.models.profile_model import Regressor
from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.models.profile_model import Floats, Knots


class Constant(Regressor):
    """One level at every RTT: the weighted mean of the rates, in `rate_bps_`."""

    name: ClassVar[str] = "constant"
    rate_bps_: float

    @property
    def knots_needed(self) -> int:
        """One."""
        return 1

    def _learn(self, knots: Knots) -> None:
        self.rate_bps_ = float(np.average(knots.rate_bps, weights=knots.weight))
        self.parameters_ = 1

    def _curve(self, rtt_ms: Floats) -> Floats:
        return np.full_like(rtt_ms, self.rate_bps_)

    def _words(self) -> str:
        return f"{rate_human(self.rate_bps_)} at every RTT"


class PowerLaw(Regressor):
    """min(C, k/τ^a), fitted to logarithms, exactly (`log_knee`).

    `exponent_` is a, at least 0; `rate_at_1_ms_bps_` is k with τ in ms, infinite where nothing
    falls or it is beyond what numbers hold; `capacity_bps_` is infinite where no level is seen
    above the fall; `knee_rtt_ms_` is where it begins.
    """

    name: ClassVar[str] = "power"
    exponent_: float
    rate_at_1_ms_bps_: float
    capacity_bps_: float
    knee_rtt_ms_: float
    _fit: LogKnee

    def __init__(self, capacity_bps: float | None = None) -> None:
        """Keeps C where it is known; it is not looked at before `fit`."""
        self.capacity_bps = capacity_bps

    @property
    def knots_needed(self) -> int:
        """Three: with two, any exponent fits."""
        return 3

    def _learn(self, knots: Knots) -> None:
        level = log_given("capacity_bps", self.capacity_bps)
        self._fit = fit_log_knee(knots, slope=None, level=level)
        self.parameters_ = self._fit.parameters
        self.exponent_ = self._fit.slope
        # A steep fall far from 1 ms, or a knee that a gentle one never reaches, is beyond numbers.
        with np.errstate(over="ignore"):
            self.rate_at_1_ms_bps_ = float(np.exp(self._fit.start))
            self.capacity_bps_ = float(np.exp(self._fit.level))
            self.knee_rtt_ms_ = float(np.exp(self._fit.knee_log_rtt))

    def _curve(self, rtt_ms: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(np.exp(self._fit.log_rate(np.log(rtt_ms))))

    def _words(self) -> str:
        if math.isinf(self._fit.start) or math.isinf(self.knee_rtt_ms_) or self.exponent_ == 0:
            return (
                f"{rate_human(float(self._curve(np.ones(1))[0]))} at every RTT, no decrease visible"
            )
        fall = f"a decrease as RTT to the power of −{self.exponent_:.2f}"
        if math.isinf(self.capacity_bps_):
            at_1_ms = self.rate_at_1_ms_bps_
            start = f", {rate_human(at_1_ms)} at 1 ms" if math.isfinite(at_1_ms) else ""
            return f"{fall}{start}, no capacity visible"
        return f"{rate_human(self.capacity_bps_)} up to {self.knee_rtt_ms_:.3g} ms, then {fall}"
