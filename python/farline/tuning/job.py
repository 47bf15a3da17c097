"""A search as a job: looks at the path, asks history, samples, chooses, keeps the choice.

The decisions are the machine's (`search`, `choice`); this shell keeps time, asks the sampler, and
looks again at history when the first sample has told what the other host is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from farline.errors import (
    FarlineError,
    InterruptedRun,
    LimitError,
    PathError,
    ProtocolError,
    SystemFailure,
    UsageError,
)
from farline.store.paths.choices import StoredChoice, write_choice
from farline.store.paths.history import path_history
from farline.tools import Stop, StopQuestion, never_stop
from farline.tools.events import PathKnown, SampleBegun, SampleFailed, SampleTaken
from farline.tools.job import Job
from farline.tuning.belief import log_of
from farline.tuning.choice import Choice, Cost, cost_of, make_choice
from farline.tuning.grids import (
    Grid,
    KnobLimits,
    Prior,
    knob_grid,
    knob_prior,
    stream_grid,
    stream_prior,
    with_seen_capacity,
)
from farline.tuning.history import KIND, Evidence, belief_after, evidence_for
from farline.tuning.knobs import (
    WIDE_LIMITS,
    Knob,
    checked_knobs,
    is_wide,
    wide_grid,
    wide_prior,
)
from farline.tuning.sampling import Sampler, Surroundings, Taken, sample_seconds
from farline.tuning.search import (
    KNOB_LIMITS,
    KNOWN_KNOB_LIMITS,
    KNOWN_STREAM_LIMITS,
    REASON_TEXT,
    STREAM_LIMITS,
    BeliefSearch,
    BracketSearch,
    Reason,
    Sample,
    Search,
    SearchLimits,
    behind_cliff,
)
from farline.tuning.situation import Goal, Setting, Situation

if TYPE_CHECKING:
    from pathlib import Path

    from farline.store import Store
    from farline.store.paths.past_transfer import PastTransfer
    from farline.tools.events import Steps
    from farline.tuning.belief import Belief

BUDGET_S = 60.0
"""Time that samples may take unless said otherwise."""

SHORTEST_S = 1.0
"""Shortest time for the one sample that is always taken."""

SETTING_FAILURES = (LimitError, PathError, ProtocolError, SystemFailure)
"""What a setting may be to blame for: so many streams were refused, or found no memory or time."""
MOST_FAILURES = 2
"""Samples that may fail: after more it is the path that fails, not the settings. What limits refuse
has taken no time, and does not count."""

SEARCHED = 3
"""Past transfers of this kind on a path from which on it counts as one that was searched."""

Method = Literal["history", "bracket"]
METHODS: tuple[Method, ...] = ("history", "bracket")


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """What is asked for."""

    goal: Goal = "throughput"
    budget_s: float = BUDGET_S
    dry_run: bool = False
    """Choose from what is known, sample and keep nothing."""
    method: Method = "history"
    knobs: tuple[Knob, ...] = ("streams",)
    most_samples: int | None = None
    keep: bool = True
    """Whether the choice is kept for copies."""


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What a search came to."""

    choice: Choice | None
    cost: Cost | None
    situation: Situation | None
    evidence: Evidence
    error: FarlineError | None = None
    kept: Path | None = None
    """Where the choice is kept for copies."""

    @property
    def exit_code(self) -> int:
        """0 with a choice, else that of the error."""
        return 0 if self.error is None else self.error.exit_code

    def checked(self) -> Choice:
        """The choice.

        Raises:
            FarlineError: what the search failed with.
        """
        if self.error is not None or self.choice is None:
            raise self.error or InterruptedRun("stopped before anything was chosen")
        return self.choice


class TuneJob(Job[TuneResult]):
    """Finds how to use a path; its events are those of `events` and of the runs it makes."""

    def __init__(
        self,
        request: TuneRequest,
        sampler: Sampler,
        store: Store | None = None,
        should_stop: StopQuestion = never_stop,
    ) -> None:
        """Prepares; nothing is begun.

        Raises:
            UsageError: for a budget below the shortest sample, or a bracket over other knobs than
                streams.
        """
        super().__init__(should_stop)
        if request.budget_s < SHORTEST_S:
            raise UsageError(
                f"budget: {request.budget_s:g} s is out of range; allow at least {SHORTEST_S:g} s, "
                "the shortest sample"
            )
        if request.method == "bracket" and request.knobs != ("streams",):
            raise UsageError("search: bracket tries streams alone; leave it out, or other knobs")
        self._request, self._sampler, self._store = request, sampler, store
        self._rows: tuple[PastTransfer, ...] = ()
        self._fallen: Setting | None = None
        self._known: tuple[Situation | None, Evidence] = (None, Evidence())
        self._grid: Grid
        self._failures = self._tried = 0

    def _may_keep(self, choice: Choice) -> bool:
        """Not what a copy would do only when told: another transport may be blocked elsewhere."""
        asked = self._request.keep and not self._request.dry_run
        return asked and choice.expected is not None and choice.setting.transport is None

    def _failed(self, error: FarlineError) -> TuneResult:
        return TuneResult(None, None, *self._known, error=error)

    def _work(self) -> Steps[TuneResult]:
        with closing(self._sampler):
            around = yield from self._sampler.look(self._should_stop)
            self._rows = path_history(self._store) if self._store is not None else ()
            search, self._grid, belief = self._prepared(around)
            yield self._path_known(around)
            if self._request.dry_run:
                search.stop("history")
            else:
                belief = yield from self._sampled(search, around, belief)
            return self._chosen(search, belief, around)

    @property
    def _is_wide(self) -> bool:
        return is_wide(self._request.knobs)

    @property
    def _has_files(self) -> bool:
        return "files" in self._request.knobs

    def _whole_grid(self, around: Surroundings) -> Grid:
        knobs = checked_knobs(self._request.knobs, around.offers, around.where)
        most = around.most_streams
        limits = KnobLimits(min(32, around.situation.files or 32), min(32, most), 1, most)
        if self._is_wide:
            limits = limits if self._has_files else replace(limits, parallelism=most)
            return wide_grid(knobs, around.offers, around.default, limits)
        if self._has_files:
            return knob_grid(limits, with_pipelining=False)
        return stream_grid(most)

    def _prepared(self, around: Surroundings) -> tuple[Search, Grid, Belief]:
        grid = _with_default(self._whole_grid(around), around.default)
        belief = self._believed(grid, around.situation)
        self._fallen = self._known[1].collapsed
        if self._fallen is not None and self._request.method != "bracket":
            grid = self._narrowed(grid.without(self._fallen))
            belief = self._believed(grid, around.situation)
        bound = self._usual_limits()
        limits = replace(
            bound,
            most_samples=self._request.most_samples or bound.most_samples,
            nic_bps=around.situation.nic_bps,
            disk_bps=around.situation.disk_bps,
        )
        if self._request.method == "bracket":
            return BracketSearch(limits), grid, belief
        first = around.default if self._is_wide else None
        search = BeliefSearch(grid, belief, limits, self._anchor(grid, around), first)
        return search, grid, belief

    def _usual_limits(self) -> SearchLimits:
        known = self._known[1].count(KIND)
        if self._is_wide:
            return WIDE_LIMITS
        if not self._has_files:
            return KNOWN_STREAM_LIMITS if known >= SEARCHED else STREAM_LIMITS
        return KNOWN_KNOB_LIMITS if known else KNOB_LIMITS

    def _anchor(self, grid: Grid, around: Surroundings) -> Setting | None:
        """What several knobs are set to where nothing sure is known: the prior's best."""
        if self._is_wide or not self._has_files:
            return None
        at = int(knob_prior(grid, around.situation).mean.argmax())
        return grid.settings[at]

    def _believed(self, grid: Grid, now: Situation, samples: Sequence[Sample] = ()) -> Belief:
        """The prior and history, as far as hosts and route are known."""
        prior: Prior = knob_prior if self._has_files else stream_prior
        prior = wide_prior if self._is_wide else prior
        if self._known[0] != now:
            found = evidence_for(self._rows, now, grid)
            # What is no longer of the grid is not seen to have collapsed.
            self._known = now, replace(found, collapsed=self._fallen or found.collapsed)
        seen = with_seen_capacity(now, ((one.setting.streams, one.rate_bps) for one in samples))
        return belief_after(prior(grid, seen), self._known[1])

    def _sampled(self, search: Search, around: Surroundings, belief: Belief) -> Steps[Belief]:
        """Samples until the search ends or the budget does; what is believed then."""
        began = time.monotonic()
        while (setting := search.next()) is not None:
            now = self._known[0] or around.situation
            seconds = sample_seconds(now)
            left = self._request.budget_s - (time.monotonic() - began)
            if self.stop_wanted is not Stop.GO_ON or (search.samples and seconds > left):
                search.stop("budget")
                break
            seconds = min(seconds, max(left, SHORTEST_S))
            number = len(search.samples) + self._tried + 1
            yield SampleBegun(number, setting.text, seconds)
            try:
                taken = yield from self._sampler.sample(setting, seconds, self._should_stop)
            except SETTING_FAILURES as error:
                self._leave_out(search, setting, error)
                yield SampleFailed(number, setting.text, error.message)
                told, is_first, before = now, False, self._known[1].text
            else:
                search.learn(taken.sample)
                yield _told(number, taken.sample)
                is_first = len(search.samples) == 1
                told = (self._told_more(taken, now) if is_first else None) or now
                before = self._known[1].text
                self._leave_out_fallen(search.samples)
            belief = self._believed(self._grid, told, search.samples)
            if isinstance(search, BeliefSearch):
                search.grid, search.belief = self._grid, _after(belief, self._grid, search.samples)
            if self._known[1].text != before or (is_first and self._known[1].changed):
                yield self._path_known(around)
        if self.stop_wanted is not Stop.GO_ON and not search.samples:
            raise InterruptedRun("stopped before the first sample ended")
        return _after(belief, self._grid, search.samples)

    def _leave_out_fallen(self, samples: Sequence[Sample]) -> None:
        """Goes on without what collapsed in a sample, and what takes more of it."""
        if self._has_files or self._is_wide:
            return
        fallen = behind_cliff((one.setting, one.rate_bps) for one in samples)
        if fallen is not None and self._grid.index(fallen) is not None:
            self._grid = self._narrowed(self._grid.without(fallen))

    def _narrowed(self, grid: Grid) -> Grid:
        """A grid with fewer settings: what history says is said of the settings of a grid."""
        self._known = None, self._known[1]
        return grid

    def _leave_out(self, search: Search, setting: Setting, error: FarlineError) -> None:
        """Goes on without a setting that failed, and those that take more of it.

        Raises:
            FarlineError: the failure itself, where it is not the setting's.
        """
        self._tried += 1
        self._failures += not isinstance(error, LimitError)
        grid = self._grid.without(setting)
        is_stopped = self.stop_wanted is not Stop.GO_ON
        if is_stopped or self._failures > MOST_FAILURES or not grid.settings:
            raise error
        if isinstance(search, BracketSearch):
            if not search.samples:
                raise error
            search.stop("failed")
        self._grid = self._narrowed(grid)

    def _default(self, around: Surroundings) -> Setting:
        """The default; where it failed, what is left of it with fewer streams."""
        if self._grid.index(around.default) is not None:
            return around.default
        fewer = [one for one in self._grid.settings if one.takes_less(around.default)]
        return max(fewer or self._grid.settings)

    def _path_known(self, around: Surroundings) -> PathKnown:
        now, evidence = self._known
        rtt_ms = None if now is None else now.rtt_ms
        disks = around.situation.disk_texts
        return PathKnown(rtt_ms, evidence.text, around.default.text, evidence.changed, disks)

    def _told_more(self, taken: Taken, now: Situation) -> Situation | None:
        """The situation with what a first sample says of the hosts; None if that is no news."""
        row = taken.row
        if row is None:
            return None
        there = row.to_kernel if now.pushes else row.from_kernel
        told = now.with_facts(row.rtt_ms, row.nic_bps, there, row.window_bytes, row.loaded_rtt_ms)
        return told if told != now else None

    def _chosen(self, search: Search, belief: Belief, around: Surroundings) -> TuneResult:
        reason: Reason = search.reason or "budget"
        now, evidence = self._known
        basis = _basis(search.samples, evidence)
        by_search = isinstance(search, BracketSearch) or self._has_files or self._is_wide
        answer = search.answer if by_search and search.samples else None
        choice = make_choice(
            self._grid, belief, search.samples, default=self._default(around),
            goal=self._request.goal, reason=reason, basis=basis, answer=answer,
        )  # fmt: skip
        kept = None
        if self._store is not None and self._may_keep(choice):
            kept = self._keep(self._store, choice, now or around.situation)
        cost = cost_of(choice, self._sampler.is_own_data)
        return TuneResult(choice, cost, now, evidence, kept=kept)

    def _keep(self, store: Store, choice: Choice, now: Situation) -> Path:
        expected, chosen = choice.expected, choice.setting
        assert expected is not None  # the caller asks
        stored = StoredChoice(
            far=self._sampler.far, pushes=self._sampler.pushes, made_s=time.time(),
            streams=chosen.streams, concurrency=chosen.concurrency, pipelining=chosen.pipelining,
            rate_bps=expected.rate_bps, low_bps=expected.low_bps, high_bps=expected.high_bps,
            basis=choice.basis, reason=REASON_TEXT[choice.reason], goal=choice.goal,
            rtt_ms=now.rtt_ms, loaded_rtt_ms=now.loaded_rtt_ms,
            here_kernel=now.here_kernel, there_kernel=now.there_kernel,
            nic_bps=now.nic_bps, transport=chosen.transport or now.transport, tool=now.tool,
            block_bytes=chosen.block_bytes, buffer_bytes=chosen.buffer_bytes,
            congestion_control=chosen.congestion_control,
            file_bytes=now.file_bytes if now.modality == "E" else None,
        )  # fmt: skip
        return write_choice(store.layout.paths, store.layout.temp, stored)


def _after(belief: Belief, grid: Grid, samples: Sequence[Sample]) -> Belief:
    for sample in samples:
        if (at := grid.index(sample.setting)) is not None:
            belief = belief.with_sample(at, log_of(sample.rate_bps))
    return belief


def _told(number: int, sample: Sample) -> SampleTaken:
    return SampleTaken(
        number, sample.setting.text, sample.setting.streams, sample.rate_bps, sample.seconds,
        sample.size_bytes, sample.limit,
    )  # fmt: skip


def _basis(samples: Sequence[Sample], evidence: Evidence) -> str:
    if not samples:
        return evidence.text
    count = f"{len(samples)} sample{'' if len(samples) == 1 else 's'}"
    return f"{count}, {evidence.text}"


def _with_default(grid: Grid, default: Setting) -> Grid:
    """The grid with the default among its settings, in their order."""
    return grid if grid.index(default) is not None else grid.with_setting(default)
