"""Histories of paths, seeded, with the statistics that published GridFTP histories have.

Those are (docs/design/estimating.md, "Data"): equal transfers differ by a standard deviation of .28
in log rate (.04 to .6 by path), with tails of kurtosis 9 that are mostly slow; the autocorrelation
of what is left falls from .40 at the next transfer over .24 at 5 and .12 at 20 to .06 at 100; a
path is .45 off the prior in level and .69 in shape; campaigns months apart differ by .4. Transfers
are swept: neighbours in time have the same data and like settings, a kind of data comes back after
hours, and some kinds come late for the first time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from farline.estimating.features import SCALE, features, prior
from farline.estimating.finished import Finished
from farline.estimating.workload import Workload

NOISE = 0.28
LEVEL, SHAPE_SLOPES, SHAPE_WAVES = 0.40, 0.10, 0.30
CAMPAIGN = 0.4
DAY_S = 86_400.0
_MEMORY = ((0.26, 4.0), (0.12, 20.0), (0.085, 200.0))
"""Shares of the variance and transfers over which they last; the rest has no memory."""
_SLOW_SHARE, _SLOW_MEAN = 0.06, 2.05
"""How many transfers meet something bad, and how far they are slowed, in standard deviations."""
_GRID = (1, 2, 4, 8, 16, 32)
_SETTINGS = (3, 3, 2)
"""Values of concurrency, parallelism and pipelining that a path sees: one transfer in six or so is
of a kind that the path has not had, as in the published ones."""
_WAVES = 24


@dataclass(frozen=True)
class Event:
    """One transfer of a history, and what came before it."""

    done: Finished
    start_s: float
    after: str
    """`sweep`, or what came between: `idle` (a month), `change` (of a host), `first`."""


class PathModel:
    """The truth about one path: log rate by features, without noise."""

    def __init__(self, draw: np.random.Generator) -> None:
        """Draws link, round trip, window, level and shape."""
        self.draw = draw
        self.rtt_s = float(np.exp(draw.uniform(math.log(2e-4), math.log(0.2))))
        self.link_bps = float(draw.choice([1e9, 1e10, 1e10, 4e10]))
        self.window_bytes = float(2 ** draw.integers(21, 27))
        self.level = float(draw.normal(0, LEVEL))
        self.noise = float(np.clip(NOISE * np.exp(draw.normal(0, 0.5)), 0.04, 0.6))
        self._grids = [draw.choice(_GRID, count, replace=False) for count in _SETTINGS]
        self._slopes = draw.normal(0, SHAPE_SLOPES, len(SCALE)) * [1, 1, 1, 1, 1, 0, 0]
        self._waves = draw.normal(0, 1 / 3.0, (_WAVES, len(SCALE)))
        self._phases = draw.uniform(0, 2 * math.pi, _WAVES)
        self._heights = draw.normal(0, SHAPE_WAVES * math.sqrt(2 / _WAVES), _WAVES)

    def log_rate(self, load: Workload) -> float:
        """Natural logarithm of Mbit/s."""
        x = features(load)
        away = x - [27, 6, 2, 2, 2, x[5], x[6]]
        waves = float(self._heights @ np.cos(self._waves @ (away / SCALE) + self._phases))
        return prior(x) + self.level + float(self._slopes @ away) + waves

    def kind(self) -> tuple[float, int]:
        """Bytes in all and files of one kind of data."""
        file_bytes = 2.0 ** self.draw.uniform(18, 33)
        files = int(2 ** self.draw.uniform(0, min(12.0, 42 - math.log2(file_bytes))))
        return file_bytes * files, files

    def workload(self, kind: tuple[float, int]) -> Workload:
        """A transfer of a kind with settings of the grid."""
        cc, p, pp = (int(self.draw.choice(grid)) for grid in self._grids)
        return Workload(*kind, cc, p, pp, self.rtt_s, self.link_bps, self.window_bytes)


class Noise:
    """What transfers of one cell differ by, in log rate: remembered load, and a heavy slow tail."""

    def __init__(self, draw: np.random.Generator, deviation: float) -> None:
        """Begins anywhere."""
        self._draw, self._deviation = draw, deviation
        self._states = [float(draw.normal()) for _ in _MEMORY]
        self._rest = math.sqrt(1 - sum(share for share, _ in _MEMORY))

    def next(self) -> float:
        """The next transfer's."""
        total = 0.0
        for at, (share, lasts) in enumerate(_MEMORY):
            keep = math.exp(-1 / lasts)
            fresh = math.sqrt(1 - keep**2) * self._draw.normal()
            self._states[at] = keep * self._states[at] + fresh
            total += math.sqrt(share) * self._states[at]
        return self._deviation * (total + self._rest * self._heavy())

    def _heavy(self) -> float:
        """Mean 0, variance 1; most of it narrow, some far on the slow side."""
        mean = -_SLOW_SHARE * _SLOW_MEAN
        spread = math.sqrt(1 - _SLOW_SHARE * 2 * _SLOW_MEAN**2 + mean**2)
        slow = self._draw.exponential(_SLOW_MEAN) if self._draw.random() < _SLOW_SHARE else 0.0
        return float(spread * self._draw.normal() - slow - mean)


def history(seed: int, transfers: int) -> Iterator[Event]:
    """One path's transfers: three campaigns, a month and then a change of a host between them."""
    draw = np.random.default_rng(seed)
    path = PathModel(draw)
    noise = Noise(draw, path.noise)
    kinds = [path.kind() for _ in range(5)]
    now_s, host, shift, after = 0.0, "old", 0.0, "first"
    for number in range(transfers):
        campaign = 3 * number // transfers
        if number and campaign > 3 * (number - 1) // transfers:
            after = ("idle", "change")[campaign - 1]
            now_s += 30 * DAY_S if after == "idle" else 600.0
            shift = float(draw.normal(0, CAMPAIGN))
            host = "new" if after == "change" else host
        if number % 25 == 0:
            # Later kinds come late for the first time.
            kind = kinds[int(draw.integers(0, min(len(kinds), 2 + 4 * number // transfers)))]
            now_s += draw.exponential(3600.0)
            load = path.workload(kind)
        elif number % 3 == 0:
            load = path.workload(kind)
        event = _event(path, replace(load, host_key=host), now_s, noise.next() + shift, after)
        yield event
        now_s, after = event.done.ended_s + draw.exponential(20.0), "sweep"


def _event(path: PathModel, load: Workload, start_s: float, beside: float, after: str) -> Event:
    most = math.log(0.97 * path.link_bps / 1e6)
    rate_bps = 1e6 * math.exp(min(path.log_rate(load) + beside, most))
    return Event(
        Finished(load, start_s + 8 * load.volume_bytes / rate_bps, rate_bps), start_s, after
    )
