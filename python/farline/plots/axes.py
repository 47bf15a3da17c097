"""Where the values of a parameter stand on an axis, and what is written there.

Yun et al. 2015 draws buffers over their logarithm to base 2 (Fig. 7) and block sizes as multiples
of the payload of a packet (Fig. 6); so does this. Any other grid is drawn on a log axis when its
steps are more even in logarithms than in values, which is what makes a grid geometric. Words, and
numbers that stand beside "auto", get one place each at even distances.

Positions are plain numbers on a linear scale, so that figures and the page place and label every
value alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Literal

from farline.plots.labels import parameter_label, setting_text
from farline.profiles.response import Setting, setting_order

Scale = Literal["linear", "log2", "log10", "log2-KiB", "category"]
"""`log2-KiB` is log2 with the exponent of the size in KiB written at each value."""

POINT = "point"
"""The parameter whose values are names of a plan's points, numbers too."""

RTT = "path.rtt_s"
"""The parameter whose unit stands on the axis, not at each value, as in Rao et al. 2018."""

LABEL_SHARE = 0.09
"""Share of the axis that a label needs."""

MULTIPLE_TOLERANCE = 0.002
"""How far a block may be from a whole number of payloads and still be called a multiple."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One parameter's axis: `positions[i]` is where `values[i]` stands, `texts[i]` its label."""

    name: str
    label: str
    scale: Scale
    values: tuple[Setting, ...]
    positions: tuple[float, ...]
    texts: tuple[str, ...]

    @property
    def ordered(self) -> bool:
        """Whether the values are quantities rather than words."""
        return self.name != POINT and all(
            _is_number(value) for value in self.values if value is not None
        )

    def position(self, value: Setting) -> float:
        """Where `value` stands; ValueError if it is not on the axis."""
        return self.positions[self.values.index(value)]

    @property
    def limits(self) -> tuple[float, float]:
        """First and last place to draw, with a margin."""
        low, high = min(self.positions), max(self.positions)
        if not self.ordered:
            return low - 0.5, high + 0.5
        margin = 0.06 * (high - low) if high > low else 0.5
        return low - margin, high + margin


def parameter_axis(
    name: str,
    values: Iterable[Setting],
    payload_bytes: float | None = None,
    wanted: Scale | None = None,
) -> Axis:
    """Axis for parameter `name` over the distinct `values`.

    With `payload_bytes`, the payload of one packet, block sizes that are whole multiples of it
    are labelled as multiples. `wanted` is the scale of numbers instead of the one that suits them;
    words, and a logarithm where a value has none, keep their own.
    """
    distinct = tuple(sorted(set(values), key=setting_order))
    scale = choose_scale(name, distinct)
    if wanted is not None and scale != "category":
        scale = wanted if wanted == "linear" or _all_positive(distinct) else scale
    label, texts = parameter_label(name), [setting_text(name, value) for value in distinct]
    if name == RTT and scale != "category":
        label, texts = f"{label} (ms)", [text.removesuffix(" ms") for text in texts]
    multiples = _multiples(name, distinct, payload_bytes)
    if multiples:
        label = f"{label} (multiples of the payload, {payload_bytes:g} B)"
        texts = [f"{multiple}" for multiple in multiples]
    elif scale == "log2-KiB":
        label = f"log2 of the {label[:1].lower() + label[1:]} in KiB"
        texts = [f"{math.log2(float(v) / 1024):g}" for v in distinct if isinstance(v, (int, float))]
    return Axis(name, label, scale, distinct, _positions(scale, distinct), tuple(texts))


def choose_scale(name: str, values: Sequence[Setting]) -> Scale:
    """Scale for the distinct, sorted `values` of parameter `name`."""
    numbers = [float(v) for v in values if isinstance(v, (int, float)) and _is_number(v)]
    if len(numbers) != len(values) or not numbers or name == POINT:
        return "category"
    if len(numbers) < 2 or numbers[0] <= 0:
        return "linear"
    if name.endswith("_bytes"):
        return "log2" if numbers[-1] / numbers[0] >= 2 else "linear"
    if not _geometric(numbers):
        return "linear"
    return "log2" if all(math.log2(number).is_integer() for number in numbers) else "log10"


def shown_ticks(axis: Axis, room: int) -> list[int]:
    """Indices of the values that get a label when there is room for `room` of them.

    Both ends are always among them; of values that stand close together the first is.
    """
    count = len(axis.values)
    if count <= room:
        return _apart(axis, list(range(count)))
    step = math.ceil((count - 1) / max(room - 1, 1))
    picked = list(range(0, count, step))
    if picked[-1] != count - 1:
        picked[-1 if count - 1 - picked[-1] < step / 2 and len(picked) > 1 else len(picked) :] = [
            count - 1
        ]
    return _apart(axis, picked)


def _apart(axis: Axis, picked: list[int]) -> list[int]:
    """`picked` without those too close to their neighbour for two labels."""
    low, high = axis.positions[picked[0]], axis.positions[picked[-1]]
    least = LABEL_SHARE * (high - low)
    kept = picked[:1]
    for index in picked[1:-1]:
        place = axis.positions[index]
        if place - axis.positions[kept[-1]] >= least and high - place >= least:
            kept.append(index)
    return kept + picked[1:][-1:]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _all_positive(values: Sequence[Setting]) -> bool:
    return all(isinstance(value, (int, float)) and value > 0 for value in values)


def _positions(scale: Scale, values: Sequence[Setting]) -> tuple[float, ...]:
    if scale == "category":
        return tuple(float(index) for index in range(len(values)))
    numbers = [float(v) for v in values if isinstance(v, (int, float))]
    change = {"linear": float, "log10": math.log10}.get(scale, math.log2)
    return tuple(change(number) for number in numbers)


def _geometric(numbers: Sequence[float]) -> bool:
    if numbers[-1] / numbers[0] < 4:
        return False
    steps = [high - low for low, high in pairwise(numbers)]
    ratios = [math.log(high / low) for low, high in pairwise(numbers)]
    if len(steps) < 2:
        return True
    return pstdev(ratios) / fmean(ratios) < pstdev(steps) / fmean(steps)


def _multiples(
    name: str, values: Sequence[Setting], payload_bytes: float | None
) -> list[int] | None:
    if name != "block_bytes" or not payload_bytes or len(values) < 2:
        return None
    ratios = [float(v) / payload_bytes for v in values if isinstance(v, (int, float))]
    whole = [round(ratio) for ratio in ratios]
    fits = all(
        count >= 1 and abs(ratio - count) <= MULTIPLE_TOLERANCE * count
        for ratio, count in zip(ratios, whole, strict=True)
    )
    return whole if fits and len(whole) == len(values) else None
