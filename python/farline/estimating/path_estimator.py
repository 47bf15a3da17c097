"""The transfers of one path so far, and what they say of the next one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from farline.estimating.calibration import Calibration
from farline.estimating.features import FILE_SIZE, SCALE, features, prior
from farline.estimating.local_ridge import fit

if TYPE_CHECKING:
    from farline.estimating.features import Floats
    from farline.estimating.finished import Finished
    from farline.estimating.workload import Workload

COVERS = (0.5, 0.8, 0.95)
"""Shares of transfers for which an interval is always given."""

MOST_TRANSFERS = 4000
"""The newest transfers of a path that count."""

NEW_KIND = 0.05
"""Squared distance of the nearest transfer from which on a kind of data is new to a path."""

IDLE_VARIANCE = 0.5**2
"""What months without a transfer add: campaigns of one path differ by a standard deviation of .4
and more in log rate."""

_IDLE_S = 86_400.0
_LOAD_TRANSFERS, _LOAD_FADES = 40, 3.0
_LOAD_MOST = 0.75
"""Log rate beyond which an estimate was off because it knew too little, which the path's level has
learnt by now: counted as load too, one first transfer would be followed twice as far as it went."""
_LOAD_S = 3600.0
_LOAD_SIZES = 32.0
"""Squared octaves of file size over which the load of one says nothing of another."""

LEAST_BESIDE = 0.05
"""Log rate beside the middle that the widest interval reaches at least: a hundred equal times are
rounded ones, or one told a hundred times."""

CHANGED_WEIGHT = 0.1
"""What a transfer counts that ended before a host was changed."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Rates and durations of one share of transfers."""

    cover: float
    rate_low_bps: float
    rate_high_bps: float
    duration_low_s: float
    duration_high_s: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What one transfer is expected to do. Logarithms are natural ones of Mbit/s."""

    workload: Workload
    prior: float
    """Log rate of the published histories, with what like paths add to it."""
    local: float
    """What this path adds."""
    load: float
    """What its last transfers add: the load of the moment."""
    middle: float
    """Log rate: the sum, within the link."""
    deviation: float
    """Standard deviation of the log rate."""
    noise: float
    """Part of it: what equal transfers differ by."""
    widening: float
    """Variance that idle days or a changed host have added."""
    effective_count: float
    width: float
    """Of the kernel."""
    nearest: float
    """Squared distance of the nearest transfer."""
    fastest: float = -math.inf
    """Log rate of the fastest transfer of the path."""

    @property
    def is_new_kind(self) -> bool:
        """Whether the path has not had a transfer like this one."""
        return self.nearest > NEW_KIND

    @property
    def link(self) -> float:
        """Logarithm of the slowest link; infinite where that is not known.

        What the path has done it can do: interfaces of virtual machines state any speed.
        """
        return max(link_log(self.workload), self.fastest)

    def score(self, log_rate: float) -> float:
        """How far off it was, in standard deviations."""
        return abs(log_rate - self.middle) / self.deviation

    def residual(self, log_rate: float) -> float:
        """How far off it was without the load of the moment."""
        return log_rate - (self.prior + self.local)

    @property
    def rate_bps(self) -> float:
        """The rate in the middle."""
        return 1e6 * math.exp(self.middle)

    @property
    def duration_s(self) -> float:
        """The duration in the middle."""
        return 8 * self.workload.volume_bytes / self.rate_bps

    def interval(self, cover: float, reach: float) -> Interval:
        """The interval that reaches `reach` standard deviations to both sides.

        Rates are of payload; a file of no length has taken time all the same.
        """
        beside = max(reach * self.deviation, LEAST_BESIDE * cover)
        low = 1e6 * math.exp(self.middle - beside)
        high = 1e6 * math.exp(min(self.middle + beside, self.link))
        load = self.workload
        bits, share = 8 * load.volume_bytes, load.total_bytes / load.volume_bytes
        return Interval(cover, low * share, high * share, bits / high, bits / low)


def link_log(load: Workload) -> float:
    """Natural logarithm of the link in Mbit/s."""
    return math.log(load.link_bps / 1e6) if load.link_bps else math.inf


class PathEstimator:
    """Predicts the next transfer of a path, and learns from each that has ended."""

    def __init__(
        self,
        covers: Iterable[float] = COVERS,
        *,
        level: float = 0.0,
        extra_variance: float = 0.0,
    ) -> None:
        """Knows nothing yet.

        `level` is what like paths have shown beside the prior, in log rate; `extra_variance` is
        added where the transfers to be learnt from are of another sort than those to be predicted.
        """
        self.level = level
        self.extra_variance = extra_variance
        self.calibration = Calibration(covers)
        self._rows: list[Finished] = []
        self._host_keys: set[str | None] = set()
        self._fastest = -math.inf
        self._known: Floats = np.empty((64, len(SCALE)))
        self._residuals: Floats = np.empty(64)

    def __len__(self) -> int:
        """Transfers that were learnt from."""
        return len(self._rows)

    @property
    def newest(self) -> Finished | None:
        """The transfer that ended last."""
        return self._rows[-1] if self._rows else None

    def predict(self, load: Workload, now_s: float) -> Prediction:
        """What `load` will do if it begins at `now_s`."""
        x = features(load)
        first = max(0, len(self) - MOST_TRANSFERS)
        known, residuals = self._known[first : len(self)], self._residuals[first : len(self)]
        base = prior(x) + self.level
        local = fit(x, known, residuals - self.level, self._weights(load, first))
        widening = self._widening(load, now_s)
        extra = widening + self.extra_variance
        deviation = math.sqrt(local.noise**2 * (1 + local.variance) + extra)
        offset = self._load(load, x, now_s)
        middle = min(base + local.level + offset, max(link_log(load), self._fastest))
        return Prediction(
            load, base, local.level, offset, middle, deviation, local.noise, extra,
            local.effective_count, local.width, local.nearest, self._fastest,
        )  # fmt: skip

    def learn(self, done: Finished, started_s: float | None = None) -> Finished:
        """Takes a transfer that has ended, in the order in which they end.

        Its score and residual, where none was kept, are those of what would have been predicted
        at `started_s`, or at its end. Gives the transfer with both.
        """
        if done.score is None or done.residual is None:
            now_s = done.ended_s if started_s is None else started_s
            made = self.predict(done.workload, now_s)
            score, residual = made.score(done.log_rate), made.residual(done.log_rate)
            done = replace(done, score=score, residual=residual)
        assert done.score is not None
        self.calibration.add(done.score)
        self.take(done)
        return done

    def take(self, done: Finished) -> None:
        """Takes a transfer for what it says of the path; the calibration does without it."""
        count = len(self)
        if count == len(self._known):
            self._known = np.concatenate([self._known, np.empty_like(self._known)])
            self._residuals = np.concatenate([self._residuals, np.empty_like(self._residuals)])
        x = features(done.workload)
        self._fastest = max(self._fastest, done.log_rate)
        self._known[count] = x
        self._residuals[count] = done.log_rate - prior(x)
        self._rows.append(done)
        self._host_keys.add(done.workload.host_key)

    def interval(self, prediction: Prediction, cover: float) -> Interval:
        """The interval that holds `cover` of such transfers.

        Raises:
            KeyError: when that share is not followed.
        """
        reach = self.calibration.quantile(cover, prediction.is_new_kind)
        return prediction.interval(cover, reach)

    def _weights(self, load: Workload, first: int) -> Floats:
        """Factors of the transfers: those of another host of the same name count less."""
        weights = np.ones(len(self) - first)
        if load.host_key is not None and self._host_keys - {load.host_key, None}:
            for at, row in enumerate(self._rows[first:]):
                if _is_changed(row.workload, load):
                    weights[at] = CHANGED_WEIGHT
        return weights

    def _widening(self, load: Workload, now_s: float) -> float:
        newest = self.newest
        if newest is None:
            return 0.0
        if _is_changed(newest.workload, load):
            return IDLE_VARIANCE
        idle_s = max(0.0, now_s - newest.ended_s)
        return IDLE_VARIANCE * (1.0 - math.exp(-idle_s / _IDLE_S))

    def _load(self, load: Workload, x: Floats, now_s: float) -> float:
        """The load of the moment: how far off the last estimates were, the newest counting most."""
        total = weights = 0.0
        last = len(self)
        for back, row in enumerate(reversed(self._rows[-_LOAD_TRANSFERS:]), start=1):
            if row.residual is None or _is_changed(row.workload, load):
                continue
            octaves = x[FILE_SIZE] - self._known[last - back, FILE_SIZE]
            away = (back - 1) / _LOAD_FADES + max(0.0, now_s - row.ended_s) / _LOAD_S
            weight = math.exp(-away - octaves**2 / _LOAD_SIZES)
            total += weight * min(max(row.residual, -_LOAD_MOST), _LOAD_MOST)
            weights += weight
        return total / (weights + 1.0)


def _is_changed(old: Workload, new: Workload) -> bool:
    """Whether a host was changed between two transfers, as far as that is known of both."""
    keys = (old.host_key, new.host_key)
    return None not in keys and old.host_key != new.host_key
