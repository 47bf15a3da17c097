"""A window, or a capacity and a window, fitted to a profile: min(C, nW/τ)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from farline.models.log_knee import fit_log_knee, log_given
from farline.models.profile_model import Regressor
from farline.models.quantities import positive_finite
from farline.models.window_bound import knee_rtt_ms, window_bound_bps
from farline.spec.units import rate_human, size_human

if TYPE_CHECKING:
    from farline.models.profile_model import Floats, Knots


class WindowBound(Regressor):
    """min(C, nW/τ), Rao et al. 2018, section 5: what buffers and credits leave of a line.

    Fitted to logarithms, exactly (`log_knee`). `capacity_bps` is C where it is known, `streams` n.
    Of the fit: `window_bytes_` is W of each stream, infinite where nothing falls; `capacity_bps_`
    is infinite where no level is seen above the fall; `knee_rtt_ms_` is where it begins.
    """

    name: ClassVar[str] = "window"
    window_bytes_: float
    capacity_bps_: float
    knee_rtt_ms_: float

    def __init__(self, capacity_bps: float | None = None, streams: int = 1) -> None:
        """Keeps what is known; nothing of it is looked at before `fit`."""
        self.capacity_bps = capacity_bps
        self.streams = streams

    @property
    def knots_needed(self) -> int:
        """Two: with one, any window fits."""
        return 2

    def _learn(self, knots: Knots) -> None:
        streams = float(positive_finite("streams", self.streams))
        fit = fit_log_knee(knots, slope=1.0, level=log_given("capacity_bps", self.capacity_bps))
        self.parameters_ = fit.parameters
        self.capacity_bps_ = math.exp(fit.level)
        # bit/s times ms, over bits of a byte, ms of a second and streams.
        self.window_bytes_ = math.exp(fit.start) / 8000 / streams
        self.knee_rtt_ms_ = (
            math.inf
            if math.isinf(self.window_bytes_)
            else float(knee_rtt_ms(self.capacity_bps_, self.window_bytes_, streams))
        )

    def _curve(self, rtt_ms: Floats) -> Floats:
        if math.isinf(self.window_bytes_):
            return np.full_like(rtt_ms, self.capacity_bps_)
        return window_bound_bps(rtt_ms, self.capacity_bps_, self.window_bytes_, self.streams)

    def _words(self) -> str:
        if math.isinf(self.window_bytes_):
            return f"the link's {rate_human(self.capacity_bps_)} at every RTT, no window visible"
        each = f"{self.streams} × " if self.streams != 1 else ""
        window = f"a window of {each}{size_human(self.window_bytes_)}"
        if math.isinf(self.capacity_bps_):
            return f"{window} at every RTT, no capacity visible"
        return f"{rate_human(self.capacity_bps_)} up to {self.knee_rtt_ms_:.3g} ms, then {window}"
