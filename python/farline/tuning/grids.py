"""The settings that are compared, and what is believed of them before anything is known.

Streams alone: a grid of powers of two. The prior's shape over it is that of production paths with a
round-trip time from 1 ms; on shorter ones it is flat. Three knobs: a grid of concurrency, streams
for each file and pipelining, where concurrency counts most. Constants: docs/design/tuning.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from farline.tuning.belief import Belief, smooth_covariance
from farline.tuning.situation import Setting, Situation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

AMPLITUDE, LENGTH, LEVEL = 0.5, 1.5, 25.0
"""Standard deviation of the shape, octaves over which settings behave alike, variance of the level:
so large that only the shape is shared between paths."""

WAN_SHAPE = (-0.48, -0.23, -0.10, 0.0, 0.02, 0.03)
"""Prior of ln throughput at 1, 2, 4, 8, 16 and 32 streams, up to a level."""

STREAM_COUNTS = (1, 2, 4, 8, 16, 32)

UNBOUND = 0.5
"""Share of what its windows carry below which a sample was held back by something else."""

KNOB_LENGTHS = (2.0, 2.0, 3.0)
"""Octaves of concurrency, streams a file and pipelining over which settings behave alike."""

CONCURRENCY_GAIN, PIPELINING_GAIN, CROWD_LOSS = 0.17, 0.027, 0.03
"""ln throughput for an octave of concurrency beyond what its streams give, and of pipelining; loss
for the square of octaves of streams beyond 32."""


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """Settings with their places in octaves, a row each, and how a past transfer is placed."""

    settings: tuple[Setting, ...]
    points: Floats
    axes: tuple[str, ...]
    """What the columns of `points` are: fields of a past transfer."""

    def nearest(self, place: Sequence[float]) -> int | None:
        """The setting at this place; None where the nearest is more than half an octave away."""
        apart = np.abs(self.points - np.asarray(place)).max(axis=1)
        index = int(np.argmin(apart))
        return index if apart[index] <= 0.5 + 1e-9 else None

    def with_setting(self, setting: Setting) -> Grid:
        """The same with one more setting, in its order among the others; a knob left open is 1."""
        place = [math.log2(setting.streams)]
        if len(self.axes) > 1:
            concurrency = setting.concurrency or 1
            alone = math.log2(max(1.0, setting.streams / concurrency))
            place = [math.log2(concurrency), alone, math.log2(setting.pipelining or 1)]
        at = sum(one < setting for one in self.settings)
        settings = (*self.settings[:at], setting, *self.settings[at:])
        return Grid(settings, np.insert(self.points, at, place, axis=0), self.axes)

    def without(self, setting: Setting) -> Grid:
        """The same without a setting, and without those that differ only by taking more of it."""
        kept = [at for at, one in enumerate(self.settings) if not one.is_more_of(setting)]
        return Grid(tuple(self.settings[at] for at in kept), self.points[kept], self.axes)

    def index(self, setting: Setting) -> int | None:
        """Where a setting is; None where it is not of the grid."""
        return self.settings.index(setting) if setting in self.settings else None


def stream_grid(most: int = STREAM_COUNTS[-1]) -> Grid:
    """Streams alone, by powers of two up to `most`; at least 1."""
    counts = [2**octave for octave in range(max(1, most).bit_length())]
    points = np.log2(np.array(counts, dtype=np.float64))[:, None]
    return Grid(tuple(Setting(count) for count in counts), points, ("streams",))


def stream_prior(grid: Grid, situation: Situation) -> Belief:
    """What is believed of streams before anything is known of a path.

    On long paths `WAN_SHAPE`, flat beyond 32. Where round-trip time, window and capacity are known,
    n windows carry at most n W/τ: what that takes from the capacity is taken from the shape, unless
    the shape says less already.
    """
    octaves = grid.points[:, 0]
    shape = (
        np.interp(octaves, range(len(WAN_SHAPE)), WAN_SHAPE) if situation.is_wan else 0 * octaves
    )
    mean = np.minimum(shape, shape.max() + _window_shape(2**octaves, situation))
    return Belief(mean, smooth_covariance(grid.points, AMPLITUDE, LENGTH, LEVEL))


def _window_shape(streams: Floats, situation: Situation) -> Floats:
    """ln of the share of the capacity that so many windows can carry; 0 where nothing is known."""
    one_bps = situation.window_bps
    if not (one_bps and situation.capacity_bps):
        return np.zeros_like(streams)
    return np.asarray(np.log(np.minimum(1.0, streams * one_bps / situation.capacity_bps)))


def with_seen_capacity(situation: Situation, seen: Iterable[tuple[int, float]]) -> Situation:
    """The same with the capacity that samples (streams, bit/s) show.

    Where one stayed far below what its windows carry, something else held it back, and the own
    interface's speed, as good as any guess before, is none any more: more windows bring nothing.
    """
    found, one_bps = list(seen), situation.window_bps
    if not one_bps or all(rate > UNBOUND * streams * one_bps for streams, rate in found):
        return situation
    return replace(situation, capacity_bps=max(rate for _, rate in found))


@dataclass(frozen=True, slots=True)
class KnobLimits:
    """What the three knobs may be set to at most."""

    concurrency: int = 32
    parallelism: int = 32
    pipelining: int = 32
    streams: int = 1024
    """Streams in all, concurrency times streams a file."""


def knob_grid(limits: KnobLimits = KnobLimits(), *, with_pipelining: bool = True) -> Grid:
    """Concurrency, streams a file and pipelining, by powers of two; `Setting.streams` is in all.

    Without pipelining that is left to whoever transfers.
    """
    axes = [_octaves(limits.concurrency), _octaves(limits.parallelism)]
    axes.append(_octaves(limits.pipelining) if with_pipelining else [0])
    places = [
        place for place in itertools.product(*axes) if 2 ** (place[0] + place[1]) <= limits.streams
    ]
    settings = tuple(
        Setting(2 ** (c + p), 2**c, 2**q if with_pipelining else None) for c, p, q in places
    )
    names = ("concurrency", "parallelism", "pipelining")
    return Grid(settings, np.array(places, dtype=np.float64), names)


def knob_prior(grid: Grid, situation: Situation) -> Belief:
    """What is believed of the three knobs before anything is known of a path.

    Streams in all as streams alone; concurrency gains more than its streams do, for files are
    opened and closed side by side; pipelining a little; too many streams lose.
    """
    c, p, q = grid.points.T
    octaves = c + p
    shape = (
        np.interp(octaves, range(len(WAN_SHAPE)), WAN_SHAPE) if situation.is_wan else 0 * octaves
    )
    shape = shape - CROWD_LOSS * np.maximum(0.0, octaves - 5) ** 2
    mean = shape + CONCURRENCY_GAIN * c + PIPELINING_GAIN * q
    lengths = np.asarray(KNOB_LENGTHS)
    return Belief(mean, smooth_covariance(grid.points, AMPLITUDE, lengths, LEVEL))


Prior = Callable[[Grid, Situation], Belief]


def _octaves(most: int) -> list[int]:
    return list(range(math.floor(math.log2(max(1, most))) + 1))
