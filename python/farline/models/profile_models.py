"""Models of a throughput profile: the small ones, each a regressor, and the list of all of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from farline.errors import SpecError
from farline.models.dedicated_fit import DedicatedChannel
from farline.models.fitting import LogKnee, fit_log_knee, log_given
from farline.models.profile_model import Regressor
from farline.models.quantities import positive_finite
from farline.models.sigmoid_pair import SigmoidPair
from farline.models.window_bound import knee_rtt_ms, window_bound_bps
from farline.spec.units import rate_human, size_human

if TYPE_CHECKING:
    from farline.models.profile_model import Floats, Knots


class PiecewiseLinear(Regressor):
    """The means with straight lines between them; level beyond the ends. Smooths nothing.

    `knots_ms_` and `knots_bps_` are what the lines go through.
    """

    name: ClassVar[str] = "linear"
    knots_ms_: Floats
    knots_bps_: Floats

    @property
    def knots_needed(self) -> int:
        """Two."""
        return 2

    def _learn(self, knots: Knots) -> None:
        self.knots_ms_, self.knots_bps_ = knots.rtt_ms, knots.rate_bps
        self.parameters_ = len(knots)

    def _curve(self, rtt_ms: Floats) -> Floats:
        return np.asarray(np.interp(rtt_ms, self.knots_ms_, self.knots_bps_))

    def _words(self) -> str:
        low_ms, high_ms = self.rtt_range_ms_
        return (
            f"straight lines through {len(self.knots_ms_)} means, {low_ms:.3g} to {high_ms:.3g} ms"
        )


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
    """min(C, k/τ^a), fitted to logarithms, exactly (`fitting`).

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


class WindowBound(Regressor):
    """min(C, nW/τ), Rao et al. 2018, section 5: what buffers and credits leave of a line.

    Fitted to logarithms, exactly (`fitting`). `capacity_bps` is C where it is known, `streams` n.
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


class _Monotone(Regressor):
    """`knots_ms_` and `levels_bps_` are what the curve goes through."""

    knots_ms_: Floats
    levels_bps_: Floats

    def _keep(self, knots: Knots, levels_bps: Floats) -> None:
        self.knots_ms_, self.levels_bps_ = knots.rtt_ms, levels_bps
        self.parameters_ = 1 + int(np.count_nonzero(np.diff(levels_bps)))

    def _curve(self, rtt_ms: Floats) -> Floats:
        return np.asarray(np.interp(rtt_ms, self.knots_ms_, self.levels_bps_))


class Isotonic(_Monotone):
    """Non-increasing in RTT, the nearest to the means in weighted squares.

    What Rao et al. 2018 takes for granted of a network without its hosts (section 3.4).
    """

    name: ClassVar[str] = "isotonic"

    @property
    def knots_needed(self) -> int:
        """Two."""
        return 2

    def _learn(self, knots: Knots) -> None:
        self._keep(knots, _pooled(knots.rate_bps, knots.weight, increasing=False))

    def _words(self) -> str:
        return f"never increasing, {self.parameters_} levels over {len(self.knots_ms_)} RTTs"


class Unimodal(_Monotone):
    """Non-decreasing up to `peak_rtt_ms_` and non-increasing from there.

    The peak is where the weighted squares are least; of equal ones the one at the smallest RTT, so
    that what never rises has its peak at the first knot.
    """

    name: ClassVar[str] = "unimodal"
    peak_rtt_ms_: float

    @property
    def knots_needed(self) -> int:
        """Three."""
        return 3

    def _learn(self, knots: Knots) -> None:
        best_squares, best_bps = np.inf, knots.rate_bps
        for split in range(len(knots)):
            levels_bps = _rising_then_falling(knots, split)
            squares = float(np.sum(knots.weight * (levels_bps - knots.rate_bps) ** 2))
            if squares < best_squares:
                best_squares, best_bps = squares, levels_bps
        self._keep(knots, best_bps)
        self.peak_rtt_ms_ = float(knots.rtt_ms[np.argmax(best_bps)])

    def _words(self) -> str:
        return (
            f"increasing up to {self.peak_rtt_ms_:.3g} ms, then decreasing, {self.parameters_} "
            f"levels over {len(self.knots_ms_)} RTTs"
        )


def _rising_then_falling(knots: Knots, split: int) -> Floats:
    """The first `split` knots made to rise, the others to fall."""
    rising = _pooled(knots.rate_bps[:split], knots.weight[:split], increasing=True)
    falling = _pooled(knots.rate_bps[split:], knots.weight[split:], increasing=False)
    return np.concatenate([rising, falling])


def _pooled(rate_bps: Floats, weight: Floats, increasing: bool) -> Floats:
    from scipy.optimize import isotonic_regression

    if not len(rate_bps):
        return rate_bps
    return np.asarray(isotonic_regression(rate_bps, weights=weight, increasing=increasing).x)


_BEND = 1e-7
"""A bend below this share of the mean rate over the whole range is rounding, not a bend."""


class ConcaveConvex(Regressor):
    """Slopes that fall, knot by knot, up to a transition and rise after it.

    Written as a straight line and a hinge at every inner knot: bends of one sign before the
    transition, of the other after it, of either at it. For each place of the transition that is a
    least-squares problem with bounds; the place with the least squares wins, of equal ones the one
    at the largest RTT. Squares are of relative deviations. Beyond the ends the last lines go on, no
    lower than 0.

    `transition_rtt_ms_` is half way between the last bend down and the first bend up; the first
    knot where all is convex, the last where all is concave, NaN for a straight line. What it may
    be as well, being between these bends, is `transition_range_ms_`.
    """

    name: ClassVar[str] = "concave-convex"
    knots_ms_: Floats
    levels_bps_: Floats
    transition_rtt_ms_: float
    transition_range_ms_: tuple[float, float]

    @property
    def knots_needed(self) -> int:
        """Three."""
        return 3

    def _learn(self, knots: Knots) -> None:
        span_ms = knots.rtt_ms[-1] - knots.rtt_ms[0]
        x = (knots.rtt_ms - knots.rtt_ms[0]) / span_ms
        scale_bps = float(np.mean(knots.rate_bps))
        basis = np.column_stack([np.ones_like(x), *(np.maximum(0, x - at) for at in x[:-1])])
        best, best_squares = np.zeros(len(x)), math.inf
        for place in range(len(x) - 2, 0, -1):
            found, squares = _bounded(basis, knots, scale_bps, place)
            if squares < best_squares * (1 - 1e-9) - 1e-18:
                best, best_squares = found, squares
        bends = np.where(np.abs(best[2:]) > _BEND, best[2:], 0.0)
        self.knots_ms_ = knots.rtt_ms
        self.levels_bps_ = scale_bps * (basis @ best)
        self.parameters_ = 2 + int(np.count_nonzero(bends))
        self._find_transition(bends)

    def _find_transition(self, bends: Floats) -> None:
        low_ms, high_ms = float(self.knots_ms_[0]), float(self.knots_ms_[-1])
        inner_ms = self.knots_ms_[1:-1]
        down_ms, up_ms = inner_ms[bends < 0], inner_ms[bends > 0]
        if len(down_ms) and len(up_ms):
            self.transition_range_ms_ = (float(down_ms[-1]), float(up_ms[0]))
        elif len(down_ms) or len(up_ms):
            end_ms = high_ms if len(down_ms) else low_ms
            self.transition_range_ms_ = (end_ms, end_ms)
        else:
            self.transition_range_ms_ = (low_ms, high_ms)
        straight = not len(down_ms) and not len(up_ms)
        self.transition_rtt_ms_ = math.nan if straight else sum(self.transition_range_ms_) / 2

    def _curve(self, rtt_ms: Floats) -> Floats:
        at_ms, levels_bps = self.knots_ms_, self.levels_bps_
        inside = np.interp(rtt_ms, at_ms, levels_bps)
        first, last = (np.diff(levels_bps) / np.diff(at_ms))[[0, -1]]
        before = first * np.minimum(0.0, rtt_ms - at_ms[0])
        after = last * np.maximum(0.0, rtt_ms - at_ms[-1])
        return np.asarray(np.maximum(0.0, inside + before + after))

    def _words(self) -> str:
        low_ms, high_ms = self.rtt_range_ms_
        if math.isnan(self.transition_rtt_ms_):
            return "a straight line"
        if self.transition_rtt_ms_ == high_ms:
            return f"concave from {low_ms:.3g} to {high_ms:.3g} ms"
        if self.transition_rtt_ms_ == low_ms:
            return f"convex from {low_ms:.3g} to {high_ms:.3g} ms"
        return f"concave up to {self.transition_rtt_ms_:.3g} ms, then convex"


def _bounded(basis: Floats, knots: Knots, scale_bps: float, place: int) -> tuple[Floats, float]:
    """Least squares with the transition at knot `place`: coefficients and their squares."""
    from scipy.optimize import lsq_linear

    count = len(knots)
    low, high = np.full(count, -np.inf), np.full(count, np.inf)
    # Coefficient 1 + k is the bend at knot k; that of knot 0 is the first slope.
    high[2 : 1 + place] = 0.0
    low[2 + place :] = 0.0
    root = np.sqrt(knots.weight) / (knots.rate_bps / scale_bps)
    found = lsq_linear(
        basis * root[:, np.newaxis],
        root * knots.rate_bps / scale_bps,
        (low, high),
        method="bvls",
        max_iter=50 * count,
    )
    return np.asarray(found.x), 2 * float(found.cost)


MODELS: dict[str, type[Regressor]] = {
    model.name: model
    for model in (
        Constant,
        WindowBound,
        PowerLaw,
        DedicatedChannel,
        SigmoidPair,
        ConcaveConvex,
        Isotonic,
        Unimodal,
        PiecewiseLinear,
    )
}
"""Laws with a cause behind them, then shapes, then the means themselves."""


def model_named(name: str) -> Regressor:
    """A model with its defaults. Raises `SpecError` for a name that is none of `MODELS`."""
    if name not in MODELS:
        raise SpecError(f"model: {name!r} is unknown: allowed: {', '.join(MODELS)}")
    return MODELS[name]()
