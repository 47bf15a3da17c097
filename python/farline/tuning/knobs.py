"""Which knobs a search turns: grids over any of them, and what is believed of these before.

Streams, files at once and pipelining have priors of their own (`grids`). Of block size, buffers,
congestion control and transport nothing general is known but what windows carry: sizes near each
other behave alike, names do not, and a knob that is left alone is preferred among equals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from farline.errors import UsageError
from farline.tuning.belief import Belief, smooth_covariance
from farline.tuning.grids import (
    AMPLITUDE,
    KNOB_LENGTHS,
    LENGTH,
    LEVEL,
    Grid,
    KnobLimits,
    knob_grid,
    knob_prior,
    stream_grid,
    stream_prior,
)
from farline.tuning.search import SearchLimits
from farline.tuning.situation import Setting, Situation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Knob = Literal[
    "streams", "files", "pipelining", "block", "buffers", "congestion", "transport"
]  # fmt: skip
KNOBS: tuple[Knob, ...] = (
    "streams", "files", "pipelining", "block", "buffers", "congestion", "transport"
)  # fmt: skip
"""`files` is how many files move at once, and with it how many streams each of them has."""

FIELDS: Mapping[Knob, str] = {
    "pipelining": "pipelining", "block": "block_bytes", "buffers": "window_bytes",
    "congestion": "congestion_control", "transport": "transport",
}  # fmt: skip
"""Of knobs beside streams and files: the field of a past transfer."""
_SETTING_FIELDS: Mapping[Knob, str] = {**FIELDS, "buffers": "buffer_bytes"}

SIZE_LENGTH = 3.0
"""Octaves of a size over which settings behave alike."""
NAME_LENGTH = 1.0
"""Scale of names: two of them are worth as much to each other as sizes 1.4 lengths apart."""
TOUCHED = 0.02
"""ln throughput that a knob which is turned must bring to be as good as one left alone."""

MOST_SETTINGS = 3000
WIDE_SAMPLES = 12
"""Most samples of a search over further knobs; their budget of time ends most of them earlier."""
WIDE_LIMITS = SearchLimits(
    most_samples=WIDE_SAMPLES, least_gain=0.05, by_improvement=True, only_measured=True
)


@dataclass(frozen=True, slots=True)
class KnobValues:
    """What a knob may be set to on a path, beside being left alone.

    `usual` is what leaving it alone comes to: bytes or a count where values are numbers, a name
    where they are names; None where that is not known.
    """

    values: tuple[int | str, ...]
    usual: float | str | None = None

    @property
    def are_names(self) -> bool:
        """Whether values are words, of which none is near another."""
        return any(isinstance(value, str) for value in self.values)


Offers = Mapping[Knob, KnobValues]
"""What a sampler can set, by knob; one that is not there cannot be searched. `files` has no values:
how many there can be at once follows from the files."""


def checked_knobs(knobs: Sequence[Knob], offers: Offers, where: str) -> tuple[Knob, ...]:
    """The knobs in their order, each once.

    Raises:
        UsageError: for one that cannot be set there.
    """
    for knob in knobs:
        if knob != "streams" and knob not in offers:
            able = ", ".join(one for one in KNOBS if one in offers or one == "streams")
            raise UsageError(f"--knobs {knob}: cannot be set {where}; allowed there: {able}")
        if knob in FIELDS and not offers[knob].values:
            raise UsageError(f"--knobs {knob}: this path has only one value for it; leave it out")
    return tuple(knob for knob in KNOBS if knob in knobs)


def is_wide(knobs: Sequence[Knob]) -> bool:
    """Whether anything beside streams and files is searched."""
    return any(knob in FIELDS for knob in knobs)


def wide_grid(knobs: Sequence[Knob], offers: Offers, default: Setting, limits: KnobLimits) -> Grid:
    """Every combination of the knobs, the default among them.

    Another transport than the path's own goes with no congestion control by name, which is TCP's.

    Raises:
        UsageError: where there are more than `MOST_SETTINGS`.
    """
    base = _base(knobs, default, limits)
    columns = {knob: _columns(offers[knob]) for knob in knobs if knob in FIELDS}
    axes = (*base.axes, *(axis for knob in columns for axis in _axes(knob, offers[knob])))
    found: dict[Setting, tuple[float, ...]] = {}
    for setting, place in zip(base.settings, base.points, strict=True):
        for combination in itertools.product(*(one.items() for one in columns.values())):
            more = {
                _SETTING_FIELDS[knob]: value
                for knob, (value, _) in zip(columns, combination, strict=True)
                if value is not None
            }
            if "transport" not in more or "congestion_control" not in more:
                point = (*place, *(part for _, parts in combination for part in parts))
                found[replace(setting, **more)] = point
    if len(found) > MOST_SETTINGS:
        raise UsageError(
            f"--knobs: {len(found)} settings are too many to compare; allowed: {MOST_SETTINGS}: "
            "name fewer knobs"
        )
    order = sorted(found)
    return Grid(tuple(order), np.array([found[setting] for setting in order]), axes)


def wide_prior(grid: Grid, now: Situation) -> Belief:
    """What is believed before: the prior of streams and files, what windows carry, no more."""
    base = 3 if "concurrency" in grid.axes else 1
    rows, row_of = np.unique(grid.points[:, :base], axis=0, return_inverse=True)
    narrow = Grid(tuple(Setting(1) for _ in rows), rows, grid.axes[:base])
    mean = (knob_prior if base == 3 else stream_prior)(narrow, now).mean[row_of.ravel()]
    if "window_bytes" in grid.axes:
        mean = _within_windows(mean, grid, now)
    turned = np.array([setting.turned for setting in grid.settings])
    lengths = [*(KNOB_LENGTHS if base == 3 else (LENGTH,))]
    lengths += [NAME_LENGTH if "=" in axis else SIZE_LENGTH for axis in grid.axes[base:]]
    covariance = smooth_covariance(grid.points, AMPLITUDE, np.asarray(lengths), LEVEL)
    return Belief(mean - TOUCHED * turned, covariance)


def _within_windows(mean: Floats, grid: Grid, now: Situation) -> Floats:
    """No more than windows of each setting's buffers carry."""
    octaves = grid.points[:, grid.axes.index("window_bytes")]
    carried = [
        stream_prior(
            Grid((setting,), np.array([[math.log2(setting.streams)]]), ("streams",)),
            replace(now, window_bytes=round(2.0**octave)),
        ).mean[0]
        for setting, octave in zip(grid.settings, octaves, strict=True)
    ]
    return np.asarray(np.minimum(mean, carried))


def _base(knobs: Sequence[Knob], default: Setting, limits: KnobLimits) -> Grid:
    """Streams and files at once as far as these are searched, the default among them."""
    if "files" in knobs:
        base = knob_grid(limits, with_pipelining=False)
    elif "streams" in knobs:
        base = stream_grid(limits.parallelism)
    else:
        return Grid((default,), np.array([[math.log2(default.streams)]]), ("streams",))
    return base if base.index(default) is not None else base.with_setting(default)


def _axes(knob: Knob, offer: KnobValues) -> Iterator[str]:
    if not offer.are_names:
        yield FIELDS[knob]
        return
    yield from (f"{FIELDS[knob]}={name}" for name in _names(offer))


def _names(offer: KnobValues) -> tuple[str, ...]:
    usual = (offer.usual,) if isinstance(offer.usual, str) else ()
    return tuple(dict.fromkeys((*usual, *map(str, offer.values))))


def _columns(offer: KnobValues) -> dict[Any, tuple[float, ...]]:
    """Places of a knob's values; None is the knob left alone."""
    if offer.are_names:
        names = _names(offer)
        places = {value: tuple(float(value == one) for one in names) for value in offer.values}
        return {None: tuple(float(offer.usual == one) for one in names), **places}
    usual = offer.usual if isinstance(offer.usual, int | float) else float(min(offer.values))
    numbers = {value: (math.log2(float(value)),) for value in offer.values}
    return {None: (math.log2(usual),), **numbers}
