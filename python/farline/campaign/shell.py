"""Does what the machine says: measures, waits, keeps; the only part of a campaign that acts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from farline.campaign.estimate import Estimate, remaining
from farline.campaign.machine import (
    Cell,
    Interrupted,
    Machine,
    Outcome,
    Run,
    RunEnded,
    Stop,
    Wait,
    Waited,
)
from farline.campaign.outcome import outcome_of_record
from farline.logs import Log

_LOG = Log(__name__)

_SLICE_S = 0.1
_ESTIMATE_SHARE = 100
"""An estimate is made anew after so many times the time that it took,"""
_ESTIMATE_S = 5.0
"""but after so long at the latest."""


class MeasureOne(Protocol):
    """Measures one run, keeps it with its labels, and gives its record."""

    def __call__(
        self,
        spec: Mapping[str, Any],
        labels: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> Mapping[str, Any]:
        """Runs `spec` to its end, or to a graceful stop once `should_stop` says so.

        The run is in the store, with the campaign's name and `labels`, or on its way there
        (`behind`).
        """


@dataclass(frozen=True)
class Progress:
    """What a watcher may show."""

    machine: Machine
    done_runs: int
    left: Estimate
    running: Cell | None = None
    last: tuple[Cell, Outcome] | None = None
    waiting: Wait | None = None


@dataclass(frozen=True, slots=True)
class _Left:
    """An estimate, when it was made and what making it took."""

    estimate: Estimate
    at_s: float
    cost_s: float


Watcher = Callable[[Progress], None]


@dataclass
class Shell:
    """One campaign being run.

    `should_stop` is asked often and may be set from a signal handler. `clock` and `sleep` are
    there for tests.
    """

    machine: Machine
    measure: MeasureOne
    watch: Watcher
    should_stop: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _between_s: float = field(default=0.0, init=False)
    _counted: int = field(default=0, init=False)
    _ended_at: float | None = field(default=None, init=False)
    _done: int = field(default=0, init=False)
    _left: _Left | None = field(default=None, init=False)

    def run(self) -> Stop:
        """Does instructions until there is nothing left to do, or someone wants to stop."""
        self._done = _count(self.machine)
        while True:
            if self.should_stop():
                self.machine.handle(Interrupted())
            step = self.machine.instruction()
            match step:
                case Stop():
                    _LOG.debug("campaign ends", stop=step)
                    return step
                case Wait():
                    _LOG.debug("waiting before the next run", wait_s=step.seconds)
                    self._report(waiting=step)
                    self._pause(step.seconds)
                    self.machine.handle(Waited())
                case Run():
                    self._run(step)

    def _run(self, step: Run) -> None:
        if self._ended_at is not None:
            self._pause(self.machine.campaign.plan.pause_s)
            if self.should_stop():
                return
        cell = step.cell
        _LOG.debug("run begins", setting=cell.setting, block=cell.block, slot=cell.slot)
        self._report(running=step.cell)
        started_at = self.clock()
        record = self.measure(step.spec, step.cell.labels, self.should_stop)
        outcome = outcome_of_record(record)
        self.machine.handle(RunEnded(step.cell, outcome))
        self._done += 1
        _LOG.debug(
            "run ended", run=record.get("run_id"), status=outcome.status,
            kind=outcome.error_kind, reason=outcome.error, done=self._done,
        )  # fmt: skip
        self._account(started_at, outcome)
        self._report(last=(step.cell, outcome))

    def _account(self, started_at: float, outcome: Outcome) -> None:
        """Time spent besides the run itself, for the estimate of what is left."""
        now = self.clock()
        between = now - (started_at if self._ended_at is None else self._ended_at)
        besides = between - outcome.session_s - self.machine.campaign.plan.pause_s
        self._between_s += max(0.0, besides)
        self._counted += 1
        self._ended_at = now

    def _report(self, **what: Any) -> None:
        self.watch(Progress(self.machine, self._done, self._remaining(), **what))

    def _remaining(self) -> Estimate:
        """What is left; with many settings not after every run, since estimating takes time too."""
        now, left = self.clock(), self._left
        if left is None or now - left.at_s >= min(_ESTIMATE_SHARE * left.cost_s, _ESTIMATE_S):
            mean_s = self._between_s / self._counted if self._counted else 0.0
            estimate = remaining(self.machine, mean_s)
            after = self.clock()
            # The first one pays for imports, which says nothing about the next.
            left = self._left = _Left(estimate, after, 0.0 if left is None else after - now)
        return left.estimate

    def _pause(self, seconds: float) -> None:
        until = self.clock() + seconds
        while not self.should_stop() and (left := until - self.clock()) > 0:
            self.sleep(min(left, _SLICE_S))


def _count(machine: Machine) -> int:
    tallies = [*machine.tallies.values(), machine.reference]
    return sum(len(tally.outcomes) + tally.failed + tally.invalid for tally in tallies)
