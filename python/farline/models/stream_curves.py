"""Throughput over the number of parallel streams: the published families, and when each holds.

Th(n) is the throughput of n streams together. Of TCP in its steady state Q(n) = (n/Th(n))² grows
with loss times the square of the round-trip time (Mathis et al. 1997), so a family is a choice of
how these grow with n:

```text
HackerCurve         Q constant: Th = n t, up to the capacity        Hacker et al. 2002
PartialSecondOrder  Q = a n² + b: rises towards 1/√a                Lu et al. 2005
FullSecondOrder     Q = a n² + b n + c: peak at n* = −2c/b          Yildirim, Yin and Kosar 2011
COrder              Q = a n^c + b: peak where c > 2                 Yildirim, Yin and Kosar 2011
altman_share        Th/C = 1 − 1/(1 + κn), κ = (1+β)/(1−β)          Altman et al. 2006
```

Each but the first takes as many samples as it has coefficients, and is refused where the
coefficients make no curve: a quarter of real sweeps (`stream_fit` fits all samples and always
gives a curve). Rates are in any unit, the same in and out; counts are numbers or arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from farline.errors import SpecError
from farline.models.quantities import positive, positive_finite

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

RENO_BETA, CUBIC_BETA = 0.5, 0.7
"""Share of its window that a connection keeps after a loss."""

_MOST_ORDER = 60.0
"""Largest exponent of `COrder` that is looked for: beyond it no double holds n^c."""


class StreamCurve(Protocol):
    """A throughput over streams. `peak_streams` is None where it rises for ever."""

    def rate(self, streams: ArrayLike) -> Floats:
        """Throughput of so many streams together."""
        ...

    @property
    def peak_streams(self) -> float | None:
        """Where it is largest; not a whole number."""
        ...


@dataclass(frozen=True, slots=True)
class HackerCurve:
    """Every stream adds as much as the first, until the capacity is full (Hacker et al. 2002).

    Holds while streams do not add to the path's loss.

    Raises:
        SpecError: for rates that are not positive.
    """

    per_stream: float
    capacity: float = math.inf

    def __post_init__(self) -> None:
        """Checks both rates."""
        positive_finite("per_stream", self.per_stream)
        positive("capacity", self.capacity)

    def rate(self, streams: ArrayLike) -> Floats:
        """min(n t, C)."""
        return np.asarray(np.minimum(positive("streams", streams) * self.per_stream, self.capacity))

    @property
    def peak_streams(self) -> float | None:
        """The count that fills the capacity; None without one."""
        return self.capacity / self.per_stream if math.isfinite(self.capacity) else None


@dataclass(frozen=True, slots=True)
class PartialSecondOrder:
    """Th = n/√(a n² + b): rises to 1/√a and never falls (Lu et al. 2005).

    a = 1e-6, b = 9e-5: 104.828 at 1 stream, 644.658 at 8, 958.754 at 32, 1000 in the end.

    Raises:
        SpecError: unless a > 0 and b > 0: then the samples show a fall, or more than linear growth.
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        """Checks the coefficients."""
        _hold("Q = a n² + b", {"a > 0": self.a > 0, "b > 0": self.b > 0})

    @classmethod
    def through(cls, streams: Sequence[float], rates: Sequence[float]) -> Self:
        """The curve through two samples. Raises `SpecError` where there is none."""
        (n1, n2), (q1, q2) = _samples(streams, rates, 2)
        a = (q2 - q1) / (n2**2 - n1**2)
        return cls(a, q1 - a * n1**2)

    def rate(self, streams: ArrayLike) -> Floats:
        """Throughput of so many streams."""
        n = positive("streams", streams)
        return np.asarray(n / np.sqrt(self.a * n**2 + self.b))

    @property
    def asymptote(self) -> float:
        """What many streams come near: 1/√a."""
        return 1 / math.sqrt(self.a)

    @property
    def peak_streams(self) -> None:
        """None: it never falls."""
        return None

    def streams_for_share(self, share: float) -> float:
        """The count that reaches this share of the asymptote: r √(b/a) / √(1 − r²).

        Raises:
            SpecError: for a share that is not between 0 and 1.
        """
        if not 0 < share < 1:
            raise SpecError(f"share: {share:g} is out of range; allowed: between 0 and 1")
        return share * math.sqrt(self.b / self.a) / math.sqrt(1 - share**2)


@dataclass(frozen=True, slots=True)
class FullSecondOrder:
    """Th = n/√(a n² + b n + c): rises to a peak, falls towards 1/√a.

    Yildirim, Yin and Kosar 2011. a = 2e-6, b = -8e-6, c = 4e-5: the peak is 790.569 at 10 streams.

    Raises:
        SpecError: unless a > 0, b < 0, c > 0, 2c + b > 0 and 4ac > b²: then Q is not positive
            everywhere, or the peak does not lie beyond one stream.
    """

    a: float
    b: float
    c: float

    def __post_init__(self) -> None:
        """Checks the coefficients."""
        a, b, c = self.a, self.b, self.c
        _hold(
            "Q = a n² + b n + c",
            {
                "a > 0": a > 0, "b < 0": b < 0, "c > 0": c > 0,
                "2c + b > 0": 2 * c + b > 0, "4ac > b²": 4 * a * c > b * b,
            },
        )  # fmt: skip

    @classmethod
    def through(cls, streams: Sequence[float], rates: Sequence[float]) -> Self:
        """The curve through three samples. Raises `SpecError` where there is none."""
        (n1, n2, n3), (q1, q2, q3) = _samples(streams, rates, 3)
        first, second = (q2 - q1) / (n2 - n1), (q3 - q1) / (n3 - n1)
        a = (second - first) / (n3 - n2)
        b = first - a * (n1 + n2)
        return cls(a, b, q1 - a * n1**2 - b * n1)

    @classmethod
    def with_peak(cls, single: float, peak_streams: float, peak: float) -> Self:
        """The curve with this throughput of one stream and this peak.

        750 for one, 3000 at 6 streams: a = 1.7778e-7, b = -8e-7, c = 2.4e-6.

        Raises:
            SpecError: unless the peak is beyond one stream, and above one stream's throughput.
        """
        if not (peak_streams > 1 and peak > single > 0):
            raise SpecError(
                f"peak of {peak:g} at {peak_streams:g} streams: it must be beyond one stream, "
                f"above that stream's {single:g}"
            )
        c = (1 / single**2 - 1 / peak**2) * peak_streams**2 / (peak_streams - 1) ** 2
        return cls(1 / peak**2 + c / peak_streams**2, -2 * c / peak_streams, c)

    def rate(self, streams: ArrayLike) -> Floats:
        """Throughput of so many streams."""
        n = positive("streams", streams)
        return np.asarray(n / np.sqrt(self.a * n**2 + self.b * n + self.c))

    @property
    def peak_streams(self) -> float:
        """n* = −2c/b, where Q − nQ'/2 is 0."""
        return -2 * self.c / self.b

    @property
    def peak(self) -> float:
        """Th(n*) = 2√c / √(4ac − b²)."""
        return 2 * math.sqrt(self.c) / math.sqrt(4 * self.a * self.c - self.b**2)

    @property
    def asymptote(self) -> float:
        """What many streams fall to: 1/√a."""
        return 1 / math.sqrt(self.a)


@dataclass(frozen=True, slots=True)
class COrder:
    """Th = n/√(a n^c + b), with a peak where c > 2 (Yildirim, Yin and Kosar 2011).

    Raises:
        SpecError: unless a, b and c are more than 0.
    """

    a: float
    b: float
    c: float

    def __post_init__(self) -> None:
        """Checks the coefficients."""
        _hold("Q = a n^c + b", {"a > 0": self.a > 0, "b > 0": self.b > 0, "c > 0": self.c > 0})

    @classmethod
    def through(cls, streams: Sequence[float], rates: Sequence[float]) -> Self:
        """The curve through three samples, by a bracketed root for c.

        (n₃^c − n₁^c)/(n₂^c − n₁^c) grows with c from ln(n₃/n₁)/ln(n₂/n₁): there is one root, and
        only where (q₃ − q₁)/(q₂ − q₁) is above that. Newton's iteration alone may leave the domain.

        Raises:
            SpecError: where there is none.
        """
        from scipy.optimize import brentq

        (n1, n2, n3), (q1, q2, q3) = _samples(streams, rates, 3)
        ratio = (q3 - q1) / (q2 - q1) if q2 > q1 else -math.inf
        least = math.log(n3 / n1) / math.log(n2 / n1)
        _hold("Q = a n^c + b", {"q₂ > q₁": q2 > q1, f"growth above {least:.3g}": ratio > least})
        low, high = math.log(n2 / n1), math.log(n3 / n1)

        def above(order: float) -> float:
            return float(np.expm1(order * high) / np.expm1(order * low)) - ratio

        top = min(_MOST_ORDER, 600 / high)
        _hold("Q = a n^c + b", {f"c below {top:.3g}": above(top) > 0})
        c = float(brentq(above, 1e-9, top, xtol=1e-12))
        a = (q2 - q1) / (n2**c - n1**c)
        return cls(a, q1 - a * n1**c, c)

    def rate(self, streams: ArrayLike) -> Floats:
        """Throughput of so many streams."""
        n = positive("streams", streams)
        return np.asarray(n / np.sqrt(self.a * n**self.c + self.b))

    @property
    def peak_streams(self) -> float | None:
        """(2b / (a(c − 2)))^(1/c); None up to c = 2, where the curve never falls."""
        if self.c <= 2:
            return None
        return float((2 * self.b / (self.a * (self.c - 2))) ** (1 / self.c))


def altman_share(streams: ArrayLike, beta: float = RENO_BETA) -> Floats:
    """Share of a bottleneck of their own that n unsynchronised streams fill (Altman et al. 2006).

    1 − 1/(1 + κn) with κ = (1+β)/(1−β): 3 of Reno fill 90 %, 6 nearly 95 %. No host's costs are in
    it: it is a bound that says why more streams help at all.

    Raises:
        SpecError: for a count that is not positive, or β outside 0 to 1.
    """
    return np.asarray(1 - 1 / (1 + _kappa(beta) * positive("streams", streams)))


def altman_streams(share: float, beta: float = RENO_BETA) -> int:
    """The fewest streams that fill this share of a bottleneck of their own.

    90, 95 and 99 % take 3, 7 and 33 streams of Reno.

    Raises:
        SpecError: for a share or β outside 0 to 1.
    """
    if not 0 < share < 1:
        raise SpecError(f"share: {share:g} is out of range; allowed: between 0 and 1")
    # What floating point adds to a whole number is no further stream.
    return max(1, math.ceil(share / (1 - share) / _kappa(beta) - 1e-9))


def whole_streams(curve: StreamCurve, most: int, within: float = 0.0) -> int:
    """The fewest streams, from 1 to `most`, within this share of the curve's best there.

    Raises:
        SpecError: for `most` below 1.
    """
    positive("most", most)
    rates = curve.rate(np.arange(1, most + 1, dtype=np.float64))
    return int(np.argmax(rates >= (1 - within) * rates.max())) + 1


def _kappa(beta: float) -> float:
    if not 0 <= beta < 1:
        raise SpecError(f"beta: {beta:g} is out of range; allowed: 0 up to, but not including, 1")
    return (1 + beta) / (1 - beta)


def _samples(
    streams: Sequence[float], rates: Sequence[float], needed: int
) -> tuple[list[float], list[float]]:
    """Counts in rising order and their Q, (n/Th)²."""
    if len(streams) != needed or len(rates) != needed or len(set(streams)) != needed:
        raise SpecError(f"the curve takes {needed} samples at different numbers of streams")
    positive("streams", streams)
    positive("rates", rates)
    pairs = sorted(zip(streams, rates, strict=True))
    return [float(n) for n, _ in pairs], [float((n / rate) ** 2) for n, rate in pairs]


def _hold(form: str, conditions: dict[str, bool]) -> None:
    broken = [text for text, holds in conditions.items() if not holds]
    if broken:
        raise SpecError(f"{form}: no such curve fits: {', '.join(broken)} does not hold")
