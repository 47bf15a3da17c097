"""The search for a setting: which to sample next, when to stop and why, which to take.

Machines without I/O: `next` names a setting, whoever has a path samples it, `learn` takes what came
of it. `BeliefSearch` follows the knowledge gradient on streams and expected improvement on several
knobs; `BracketSearch` needs no history and no prior. Both end with a recorded reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from farline.tuning.belief import SAMPLE_SD, Belief, log_of
from farline.tuning.situation import Setting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farline.tuning.grids import Grid

    Floats = NDArray[np.float64]

Reason = Literal[
    "cap:nic", "cap:cpu", "cap:disk", "cap:rate", "decline", "noise", "budget", "data", "history",
    "failed",
]  # fmt: skip
"""Why a search ended: a capacity of a host, or a limit on the rate, is reached; more only loses;
what could still be gained is inside the noise; no time or samples are left; all files are there;
nothing was to be sampled; a sample with more failed."""

REASON_TEXT: dict[Reason, str] = {
    "cap:nic": "the interface is full",
    "cap:cpu": "a host has no CPU time left",
    "cap:disk": "a disk is the limit",
    "cap:rate": "the limit on the rate is reached",
    "decline": "more streams were slower",
    "noise": "another sample would gain less than samples vary by chance",
    "budget": "the budget for samples is used up",
    "data": "all files are copied",
    "history": "chosen from past transfers, without a sample",
    "failed": "more streams failed",
}

WITHIN = 0.03
"""Of settings within this share of the best, the one with the fewest streams is taken."""

NIC_SHARE = 0.89
"""Share of an interface's speed that is a full one: 95 % of the 94 % that frames leave to TCP."""

DISKS = ("sender-disk", "receiver-disk")


@dataclass(frozen=True, slots=True)
class Sample:
    """One setting tried on the path. `seconds` and `size_bytes` are what it cost and what moved."""

    setting: Setting
    rate_bps: float
    seconds: float = 0.0
    size_bytes: int = 0
    limit: str | None = None
    """What the run's verdict names."""
    cpu_full: bool = False
    """Whether the processors of an end were busy throughout."""
    cpu_s_per_gb: float | None = None
    retransmits: int | None = None
    run_id: str | None = None
    all_there: bool = False
    """Whether the files that it moved were the last ones."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """When to stop. `least_gain` is in ln throughput."""

    most_samples: int = 5
    least_gain: float = 0.01
    nic_bps: float | None = None
    disk_bps: float | None = None
    """What the slower disk at the ends reaches, by the profile of its file system."""
    within: float = WITHIN
    sample_sd: float = SAMPLE_SD
    by_improvement: bool = False
    """Expected improvement instead of the knowledge gradient, for several knobs."""
    only_where_broad: bool = False
    """Sample at all only where history leaves more than `least_gain` open."""
    only_measured: bool = False
    """Answer one of the settings that were sampled."""
    anchor_z: float | None = None
    """The prior's best setting is left only for one that is better by so many standard deviations;
    None takes the best mean whatever it was."""


STREAM_LIMITS = SearchLimits()
KNOWN_STREAM_LIMITS = SearchLimits(most_samples=2)
"""Where this path has a search's worth of transfers of this kind: more samples only add noise."""
KNOB_LIMITS = SearchLimits(
    most_samples=2, least_gain=0.05, within=0.0, by_improvement=True, only_where_broad=True,
    anchor_z=1.0,
)  # fmt: skip
"""Of several knobs more samples only add noise, as do differences that are not sure."""
KNOWN_KNOB_LIMITS = replace(KNOB_LIMITS, anchor_z=0.5)
"""The same where this path has past transfers of this kind: what they show is believed sooner."""


class Search(Protocol):
    """What drives samples."""

    samples: list[Sample]
    reason: Reason | None

    def next(self) -> Setting | None:
        """The setting to sample; None once there is nothing to sample, and `reason` says why."""
        ...

    def learn(self, sample: Sample) -> None:
        """What came of it."""
        ...

    def stop(self, reason: Reason) -> None:
        """Ends the search from outside: no time is left, say."""
        ...

    @property
    def answer(self) -> Setting:
        """The setting to take: the fewest streams within `within` of the best."""
        ...


@dataclass(eq=False, repr=False)
class BeliefSearch:
    """Samples where most is to be learnt of which setting is best."""

    grid: Grid
    belief: Belief
    limits: SearchLimits = STREAM_LIMITS
    anchor: Setting | None = None
    """The prior's best, for limits with an `anchor_z`."""
    first: Setting | None = None
    """What is sampled first, whatever is believed: what others are to be better than."""
    samples: list[Sample] = field(default_factory=list)
    reason: Reason | None = None
    _wanted: Reason | None = field(default=None, init=False)
    """Why it is over, once the answer has been sampled."""

    def next(self) -> Setting | None:
        """The setting to sample, or None."""
        if self.reason is not None:
            return None
        if len(self.samples) >= self.limits.most_samples:
            self.reason = self._wanted or "budget"
            return None
        if self._wanted is None:
            at = self._promising()
            if at is not None:
                return self.grid.settings[at]
        return self._confirmed()

    def _promising(self) -> int | None:
        """Where a sample is worth most; None, with the reason in `_wanted`, if worth too little."""
        best = int(np.argmax(self.belief.mean))
        if self.limits.by_improvement:
            gains = self.belief.expected_improvements()
        else:
            gains = self.belief.knowledge_gradients(self.limits.sample_sd)
        at = int(np.argmax(gains))
        if not self.samples:
            if self.limits.only_where_broad and gains[at] < self.limits.least_gain:
                self.reason = self._wanted = "history"
                return None
            first = None if self.first is None else self.grid.index(self.first)
            return best if first is None else first
        if gains[at] >= self.limits.least_gain:
            return at
        self._wanted = "decline" if self._has_declined() else "noise"
        return None

    def _confirmed(self) -> Setting | None:
        """An answer that nobody has measured is measured before it is given."""
        if self.reason is None and self.answer not in {s.setting for s in self.samples}:
            return self.answer
        self.reason = self.reason or self._wanted
        return None

    def learn(self, sample: Sample) -> None:
        """Takes a sample in. Settings beside the grid are kept, and say nothing here."""
        self.samples.append(sample)
        if (at := self.grid.index(sample.setting)) is not None:
            log_rate = log_of(sample.rate_bps)
            self.belief = self.belief.with_sample(at, log_rate, self.limits.sample_sd)
        self._wanted = self._wanted or cap_of(sample, self.limits.nic_bps, self.limits.disk_bps)
        if sample.all_there:
            self.reason = "data"

    def stop(self, reason: Reason) -> None:
        """Ends it."""
        self.reason = self.reason or reason

    @property
    def answer(self) -> Setting:
        """The fewest streams within `within` of the best mean; the anchor if that is not sure."""
        anchor = None if self.anchor is None else self.grid.index(self.anchor)
        if anchor is not None and self.limits.anchor_z is not None:
            best = int(np.argmax(self.belief.mean))
            gain = self.belief.mean[best] - self.belief.mean[anchor]
            if gain <= self.limits.anchor_z * self.belief.difference_sd(best, anchor):
                return self.grid.settings[anchor]
        settings, mean = self.grid.settings, self.belief.mean
        tried = [at for s in self.samples if (at := self.grid.index(s.setting)) is not None]
        among = tried if self.limits.only_measured and tried else range(len(settings))
        least = max(mean[at] for at in among) + math.log1p(-self.limits.within)
        return min(settings[at] for at in among if mean[at] >= least)

    def _has_declined(self) -> bool:
        """Whether a sample with more streams than the answer came out lower, beyond the noise."""
        mine = [s.rate_bps for s in self.samples if s.setting == self.answer]
        above = [s.rate_bps for s in self.samples if s.setting.streams > self.answer.streams]
        return bool(mine and above) and max(above) < (1 - self.limits.sample_sd / 2) * max(mine)


CLIFF = 4.0
"""What reaches so many times less than fewer streams do, and loses more than in proportion to the
streams, lies behind a cliff: it says nothing of the settings before that, and what takes more is
not tried."""


def behind_cliff(reached: Iterable[tuple[Setting, float]]) -> Setting | None:
    """The least of the settings that collapse beside fewer streams, from rates that were reached.

    Of a setting that was tried several times the best counts.
    """
    best: dict[Setting, float] = {}
    for setting, rate_bps in reached:
        best[setting] = max(rate_bps, best.get(setting, 0.0))

    def collapses(one: Setting) -> bool:
        return any(
            less.takes_less(one) and best[less] > max(CLIFF, one.streams / less.streams) * best[one]
            for less in best
        )

    return min(filter(collapses, best), default=None)


BRACKET = (8, 32, 16)
"""The first two, and the third where these are within `BRACKET_SHARE`."""
BRACKET_SHARE = 0.15


@dataclass(eq=False, repr=False)
class BracketSearch:
    """8 streams, then 32; where these are within 15 %, also 16. As good as any without history."""

    limits: SearchLimits = STREAM_LIMITS
    samples: list[Sample] = field(default_factory=list)
    reason: Reason | None = None

    def next(self) -> Setting | None:
        """The setting to sample, or None."""
        if self.reason is not None:
            return None
        if len(self.samples) < 2:
            return Setting(BRACKET[len(self.samples)])
        low, high = sorted(sample.rate_bps for sample in self.samples[:2])
        if len(self.samples) == 2 and low >= (1 - BRACKET_SHARE) * high:
            return Setting(BRACKET[2])
        few, many = (sample.rate_bps for sample in self.samples[:2])
        self.reason = "decline" if many < (1 - BRACKET_SHARE) * few else "noise"
        return None

    def learn(self, sample: Sample) -> None:
        """Takes a sample in; one that fills the interface ends the search."""
        self.samples.append(sample)
        self.reason = cap_of(sample, self.limits.nic_bps, self.limits.disk_bps)
        if sample.all_there:
            self.reason = "data"

    def stop(self, reason: Reason) -> None:
        """Ends it."""
        self.reason = self.reason or reason

    @property
    def answer(self) -> Setting:
        """The fewest streams within `within` of the best sample; 8 before any."""
        return fewest_near_best(self.samples, self.limits.within) or Setting(BRACKET[0])


def fewest_near_best(samples: Sequence[Sample], within: float = WITHIN) -> Setting | None:
    """The setting with the fewest streams among samples within `within` of the best one."""
    if not samples:
        return None
    best = max(sample.rate_bps for sample in samples)
    return min(s.setting for s in samples if s.rate_bps >= (1 - within) * best)


def cap_of(sample: Sample, nic_bps: float | None, disk_bps: float | None = None) -> Reason | None:
    """Which capacity of a host a sample has reached: more streams cannot go beyond it."""
    if nic_bps and sample.rate_bps >= NIC_SHARE * nic_bps:
        return "cap:nic"
    if sample.limit == "rate":
        return "cap:rate"
    if sample.cpu_full:
        return "cap:cpu"
    if disk_bps and sample.rate_bps >= NIC_SHARE * disk_bps:
        return "cap:disk"
    return "cap:disk" if sample.limit in DISKS else None
