"""Curves of the models, the payload that an efficiency needs, and where two curves cross."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from farline.models.rbudp import PAYLOAD_MAX_BYTES, Case, ModelName, Prediction
from farline.models.rbudp_corrected import Floats, predict

Variable = Literal["payload", "rate"]

SEARCH_MAX_BYTES = 10**15
"""Payload up to which one is looked for: a petabyte in one blast is none."""

_PER_DECADE = 12


@dataclass(frozen=True, slots=True)
class Curve:
    """One model over payload (bytes) or rate (bit/s): one prediction for each place."""

    model: ModelName
    over: Variable
    predictions: tuple[Prediction, ...]

    @property
    def places(self) -> Floats:
        """Payloads in bytes, or rates in bit/s."""
        cases = [prediction.case for prediction in self.predictions]
        return np.array(
            [case.payload_bytes if self.over == "payload" else case.rate_bps for case in cases],
            dtype=np.float64,
        )

    @property
    def throughput_bps(self) -> Floats:
        """B_achievable at each place."""
        return np.array([prediction.throughput_bps for prediction in self.predictions])

    @property
    def low_bps(self) -> Floats:
        """Throughput that 95 % of blasts reach, at each place."""
        return np.array([_rate(one, one.time_high_s) for one in self.predictions])

    @property
    def high_bps(self) -> Floats:
        """Throughput that 5 % of blasts reach, at each place."""
        return np.array([_rate(one, one.time_low_s) for one in self.predictions])


def curve(case: Case, model: ModelName, over: Variable, places: Sequence[float]) -> Curve:
    """`model` at each payload in bytes or rate in bit/s; the rest as in `case`.

    Loss stays as stated: what a rate does to loss near the capacity is not in any of the models.
    """
    return Curve(model, over, tuple(predict(_at(case, over, place), model) for place in places))


def payload_for(case: Case, efficiency: float, model: ModelName) -> int:
    """Smallest payload in bytes from which on `efficiency` is kept.

    Efficiency grows with the payload but for small steps down, where a report begins to need one
    round of TCP more; the payload given is the one beyond the last such step.

    Raises:
        ValueError: when no payload reaches it; the line says what is reached at most.
    """
    if not 0 < efficiency < 1:
        raise ValueError(f"efficiency: {efficiency:g} is out of range; allowed: between 0 and 1")

    def enough(payload_bytes: int) -> bool:
        return predict(replace(case, payload_bytes=payload_bytes), model).efficiency >= efficiency

    places = _payload_grid(1, SEARCH_MAX_BYTES)
    short = [index for index, place in enumerate(places) if not enough(place)]
    if not short:
        return places[0]
    if short[-1] == len(places) - 1:
        most = predict(replace(case, payload_bytes=places[-1]), model).efficiency
        raise ValueError(
            f"efficiency: no payload reaches {efficiency:g}; the maximum is {most:.4g}"
        )
    low, high = places[short[-1]], places[short[-1] + 1]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def crossings(
    one: Callable[[int], float],
    other: Callable[[int], float],
    low_bytes: int,
    high_bytes: int,
) -> tuple[int, ...]:
    """Payloads in bytes at which throughput `one` passes `other`, within the limits, in order.

    Found on a grid of 12 payloads a decade and then to the byte; where one of them jumps over the
    other, the first payload after the jump.

    Raises:
        ValueError: when the limits are no range of payloads.
    """
    if not 0 < low_bytes < high_bytes <= PAYLOAD_MAX_BYTES:
        raise ValueError(f"payloads: {low_bytes} to {high_bytes} bytes is not a range")

    def above(payload_bytes: int) -> bool:
        return one(payload_bytes) > other(payload_bytes)

    places = _payload_grid(low_bytes, high_bytes)
    sides = [above(place) for place in places]
    return tuple(
        _change(above, low, high)
        for low, high, before, after in zip(places, places[1:], sides, sides[1:], strict=False)
        if before != after
    )


def round_places(low: float, high: float) -> list[int]:
    """1, 2 and 5 times the powers of ten from `low` to `high`, both ends included."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = {round(step * 10.0**power) for power in powers for step in (1, 2, 5)}
    return sorted({step for step in steps if low < step < high} | {round(low), round(high)})


def _change(above: Callable[[int], bool], low: int, high: int) -> int:
    before = above(low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if above(middle) == before else (low, middle)
    return high


def _payload_grid(low: int, high: int) -> list[int]:
    count = max(2, math.ceil(math.log10(high / low) * _PER_DECADE) + 1)
    places = np.geomspace(low, high, count)
    return sorted({low, *(min(max(round(place), low), high) for place in places), high})


def _at(case: Case, over: Variable, place: float) -> Case:
    if over == "payload":
        return replace(case, payload_bytes=round(place))
    return replace(case, rate_bps=place)


def _rate(prediction: Prediction, time_s: float) -> float:
    return 8 * prediction.case.payload_bytes / time_s
