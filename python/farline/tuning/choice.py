"""The choice at the end of a search: what to take, what to expect of it, and against what.

Never a setting whose predicted gain over the default lies inside the noise, unless it is the
default with fewer streams; the default always stands beside it. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farline.errors import SpecError
from farline.models.stream_fit import StreamFit, fit_streams
from farline.tuning.belief import SAMPLE_SD, log_of, rate_of
from farline.tuning.search import WITHIN, Reason, Sample
from farline.tuning.situation import Goal, Setting

if TYPE_CHECKING:
    from farline.store.paths.choices import StoredChoice
    from farline.tuning.belief import Belief
    from farline.tuning.grids import Grid

INTERVAL_Z = 1.2816
"""Of 80 % intervals of a normal distribution."""

CERTAIN_Z = 0.43
"""A gain counts as one from so many standard deviations of it: odds of two to one. To ask for more
keeps the default where it loses: on sweeps with production's noise 1 costs 3.5 points of regret."""

CPU_WITHIN = 0.15
"""What may be lost of the rate to save processor time."""
CPU_SAVING = 0.05
"""Processor time that is less by a smaller share is the same."""

FAIR_GROWTH = 0.8
"""Twice the streams must bring this share of twice the rate (of its logarithm) to be worth it to
others on the path."""

KNOWN_SD = 1.0
"""Beyond this standard deviation of ln throughput the level is not known at all."""

_PRIOR_SAMPLES = 4.0
"""How many samples the usual spread counts for beside the spread of these samples."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A rate with its 80 % interval, for the next transfer."""

    rate_bps: float
    low_bps: float
    high_bps: float


@dataclass(frozen=True, slots=True)
class Choice:
    """What to use, and why."""

    setting: Setting
    default: Setting
    goal: Goal
    reason: Reason
    basis: str
    expected: Expectation | None
    """None where no level of the path is known."""
    default_expected: Expectation | None
    gain: float
    """Rate of the setting over the default's; below 1 where fewer streams were worth it."""
    gain_low: float
    gain_high: float
    within_noise: bool
    """Whether what was better by its mean is not told apart from the default."""
    samples: tuple[Sample, ...] = ()
    believed: tuple[tuple[Setting, Expectation | None], ...] = ()
    """Every setting with what is expected of it."""
    fit: StreamFit | None = None
    """A curve through samples at several counts, for drawing; no choice rests on it."""


def make_choice(
    grid: Grid,
    belief: Belief,
    samples: Sequence[Sample],
    *,
    default: Setting,
    goal: Goal = "throughput",
    reason: Reason = "history",
    basis: str = "",
    sample_sd: float = SAMPLE_SD,
    answer: Setting | None = None,
) -> Choice:
    """The choice for a goal.

    `throughput`: the fewest streams within 3 % of the best. `cpu`: of the settings within 15 % of
    the best, the one that took least processor time for a byte, where that was measured, else the
    fewest streams. `fairness`: more streams only as long as twice as many bring at least 0.8 of
    twice the rate, in logarithms. An `answer` that a search has by other means is taken for the
    best in throughput.

    Raises:
        SpecError: when the default is not of the grid.
    """
    reference = grid.index(default)
    if reference is None:
        raise SpecError(f"default: {default.text} is not one of the settings that are compared")
    at = None if answer is None or goal != "throughput" else grid.index(answer)
    wanted = {"throughput": _fastest, "cpu": _thriftiest, "fairness": _fairest}[goal]
    at = wanted(grid, belief, samples) if at is None else at
    sd = belief.difference_sd(at, reference)
    gain = float(belief.mean[at] - belief.mean[reference])
    doubtful = at != reference and gain < CERTAIN_Z * sd
    if doubtful and not grid.settings[at].takes_less(default):
        at, gain, sd = reference, 0.0, 0.0
    noise = _noise(grid, belief, samples, sample_sd)
    cap_bps = _cap_bps(samples, reason)
    return Choice(
        setting=grid.settings[at], default=default, goal=goal, reason=reason, basis=basis,
        expected=_expected(belief, at, noise, cap_bps),
        default_expected=_expected(belief, reference, noise, cap_bps),
        gain=math.exp(gain),
        gain_low=math.exp(gain - INTERVAL_Z * sd), gain_high=math.exp(gain + INTERVAL_Z * sd),
        within_noise=doubtful,
        samples=tuple(samples),
        believed=tuple(
            (s, _expected(belief, i, noise, cap_bps)) for i, s in enumerate(grid.settings)
        ),
        fit=_curve(samples),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cost:
    """What sampling took, and from when on it has paid."""

    seconds: float
    size_bytes: int
    """What moved meanwhile: data of the copy, or data that was only sent for this."""
    is_own_data: bool
    pays_from_bytes: float | None
    """A transfer of so much is done sooner than with the default, sampling included. 0 where the
    samples have paid already, None where nothing is gained."""


def cost_of(choice: Choice, is_own_data: bool) -> Cost:
    """Of the samples behind a choice."""
    seconds = sum(sample.seconds for sample in choice.samples)
    moved = sum(sample.size_bytes for sample in choice.samples)
    new, old = choice.expected, choice.default_expected
    if new is None or old is None or new.rate_bps <= old.rate_bps * 1.000001:
        return Cost(seconds, moved, is_own_data, None)
    lost_s = seconds - (8 * moved / old.rate_bps if is_own_data else 0.0)
    saved_s_per_byte = 8 / old.rate_bps - 8 / new.rate_bps
    return Cost(seconds, moved, is_own_data, max(0.0, lost_s / saved_s_per_byte))


def setting_of(stored: StoredChoice) -> Setting:
    """The setting that was kept."""
    transport = None if stored.transport == "tcp" else stored.transport
    return Setting(
        stored.streams or 1, stored.concurrency, stored.pipelining, stored.block_bytes,
        stored.buffer_bytes, stored.congestion_control, transport,
    )  # fmt: skip


def _fastest(grid: Grid, belief: Belief, samples: Sequence[Sample]) -> int:
    return _fewest(grid, belief, WITHIN)


def _fewest(grid: Grid, belief: Belief, within: float) -> int:
    good = np.flatnonzero(belief.mean >= belief.mean.max() + math.log1p(-within))
    return min((int(at) for at in good), key=lambda at: grid.settings[at])


def _thriftiest(grid: Grid, belief: Belief, samples: Sequence[Sample]) -> int:
    least_log = belief.mean.max() + math.log1p(-CPU_WITHIN)
    costs: dict[int, list[float]] = {}
    for sample in samples:
        at = grid.index(sample.setting)
        if at is not None and sample.cpu_s_per_gb is not None and belief.mean[at] >= least_log:
            costs.setdefault(at, []).append(sample.cpu_s_per_gb)
    if not costs:
        return _fewest(grid, belief, CPU_WITHIN)
    means = {at: sum(found) / len(found) for at, found in costs.items()}
    bound = min(means.values()) * (1 + CPU_SAVING)
    return min((at for at in means if means[at] <= bound), key=lambda at: grid.settings[at])


def _fairest(grid: Grid, belief: Belief, samples: Sequence[Sample]) -> int:
    order = sorted(range(len(grid.settings)), key=lambda at: grid.settings[at])
    at = order[0]
    for following in order[1:]:
        more = grid.settings[following].streams / grid.settings[at].streams
        if more <= 1:
            continue
        if belief.mean[following] - belief.mean[at] < FAIR_GROWTH * math.log(more):
            break
        at = following
    return at


def _cap_bps(samples: Sequence[Sample], reason: Reason) -> float:
    """The most that any setting can reach: of samples that met a set rate or a full interface."""
    met = reason in ("cap:rate", "cap:nic") or any(sample.limit == "rate" for sample in samples)
    return max((sample.rate_bps for sample in samples), default=math.inf) if met else math.inf


def _expected(belief: Belief, at: int, noise: float, cap_bps: float) -> Expectation | None:
    sd = math.sqrt(float(belief.covariance[at, at]) + noise**2)
    if sd > KNOWN_SD:
        return None
    middle = float(belief.mean[at])
    rates = (rate_of(middle + side * INTERVAL_Z * sd) for side in (0, -1, 1))
    return Expectation(*(min(rate, cap_bps) for rate in rates))


def _noise(grid: Grid, belief: Belief, samples: Sequence[Sample], usual: float) -> float:
    """Spread of samples about what is believed, drawn to the usual one while there are few."""
    squares = [
        (log_of(sample.rate_bps) - belief.mean[at]) ** 2
        for sample in samples
        if (at := grid.index(sample.setting)) is not None
    ]
    weight = _PRIOR_SAMPLES
    return math.sqrt((weight * usual**2 + sum(squares)) / (weight + len(squares)))


def _curve(samples: Sequence[Sample]) -> StreamFit | None:
    counts = [sample.setting.streams for sample in samples]
    if len(set(counts)) < 3:
        return None
    return fit_streams(counts, [sample.rate_bps for sample in samples])
