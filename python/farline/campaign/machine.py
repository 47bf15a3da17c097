"""The campaign as a machine: events in, instructions out; no clock, no I/O, no hidden chance.

```text
instruction()            handle(event)
  Run(cell, seed)          RunEnded(cell, outcome)     complete, failed or partial
  Wait(seconds, why)       Waited()                    before a failed run is tried again
  Stop(reason, line)       Interrupted(), Resumed()
```

One pass over all open settings is a block, in an order drawn from the campaign's seed and the
number of the block. A run of the reference setting opens each block and comes again after every
`reference_every` runs, so that drift of the path shows and settings can be compared with a
neighbour in time. A setting is open until its interval is precise enough at a look, the cap of
blocks is reached, or it has failed twice in a row for a reason that will not pass.

A run over an emulated path that was not valid is done again once and counts in no mean, unless the
plan says `count_invalid`. `max_consecutive_failures` places in a row without a valid run stop the
campaign: the machine cannot emulate that path.

A run that fails for a passing reason (busy, unreachable, timeout, protocol) is tried again,
`retries` times, after 1, 2, 4 ... seconds or as long as the server says. After that its place in
the block is a failure. `max_consecutive_failures` such places in a row stop the campaign, and so
does one alone where no setting can be meant: a server that refuses the ticket or speaks no common
version, or that was busy or unreachable from the start. `Resumed` opens the places that failed
last and goes on. Other failures belong to their setting (a congestion control
that is not permitted, say): they end the setting, not the campaign.

The same events give the same instructions: that is how a campaign is resumed (replay.py).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from farline.campaign.rules import Rules, narrow_enough
from farline.campaign.settings import Campaign, run_seed
from farline.errors import KINDS

FATAL_KINDS = ("auth", "version")
"""Failures that every other run would meet too."""
ABSENT_KINDS = ("unreachable", "busy")
"""Failures of the server itself; where it never answered, nothing is gained by going on."""
STRIKES = 2
_ENDS = {
    "narrow": "completed with the required precision",
    "fixed": "completed",
    "cap": "stopped at the maximum number of runs",
    "nothing": "without a successful run",
    "invalid": "without a valid run",
    "abandoned": "given up after failures",
}
"""How a setting's end is said, by its state."""
LONGEST_WAIT_S = 60.0
INVALID_RETRIES = 1
"""How often a run is done again at once because its emulated path was not valid."""
INVALID_KIND = "system"
"""Kind of failure of a campaign whose paths were not valid: the machine could not emulate them."""
NO_REASON = "`farline show` gives the reason"
"""Stands for the reasons of a run that is known from the store alone."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Place of one run in the campaign; `slot` numbers the reference runs of a block."""

    setting: str
    block: int
    slot: int = 0
    attempt: int = 0
    reference: bool = False

    @property
    def labels(self) -> dict[str, Any]:
        """The place as labels of a run in the store."""
        return {
            "setting": self.setting,
            "block": self.block,
            "slot": self.slot,
            "attempt": self.attempt,
            "reference": self.reference,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to, as far as the campaign cares."""

    status: Literal["complete", "partial", "failed"]
    run_id: str = ""
    total_bps: float | None = None
    retransmits: int | None = None
    lost_packets: int | None = None
    cpu_s_per_gb: float | None = None
    verdict_limit: str | None = None
    session_s: float = 0.0
    run_s: float = 0.0
    error_kind: str | None = None
    error: str | None = None
    retry_after_s: float | None = None
    valid: bool | None = None
    """Whether the emulated path did what it should; None where no path was emulated."""
    not_valid: str = ""
    """Why not, as far as it is known."""

    @property
    def measured(self) -> bool:
        """Whether there is a throughput to count. A failed run is a failure, not a zero."""
        return self.status == "complete" and self.total_bps is not None

    @property
    def stopped(self) -> bool:
        """Whether someone stopped it half-way, so that it is still to be done."""
        return self.status == "partial" and self.error_kind in (None, "interrupted")


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run at `cell` is over and in the store."""

    cell: Cell
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Waited:
    """The wait is over."""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Someone wants the campaign to stop here."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Someone wants a campaign that gave up to go on."""


Event = RunEnded | Waited | Interrupted | Resumed


@dataclass(frozen=True, slots=True)
class Run:
    """Measure `cell` with its spec."""

    cell: Cell
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for a while."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more to do, and why."""

    reason: Literal["finished", "interrupted", "aborted"]
    line: str
    error_kind: str | None = None


Instruction = Run | Wait | Stop
State = Literal["open", "narrow", "cap", "fixed", "abandoned"]


@dataclass
class Tally:
    """What is known of one setting."""

    outcomes: list[Outcome] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    """Block of each outcome: settings are compared within blocks."""
    failed: int = 0
    invalid: int = 0
    """Runs whose emulated path did not do what it should: neither counted nor failed."""
    not_valid: str = ""
    """Why the last of them was not, as far as it is known."""
    strikes: int = 0
    state: State = "open"
    last_error: str | None = None
    last_error_kind: str | None = None

    @property
    def values(self) -> list[float]:
        """Throughput of each run that counts."""
        return [outcome.total_bps for outcome in self.outcomes if outcome.total_bps is not None]


class Machine:
    """Orders the runs of one campaign. Ask `instruction`, do it, tell `handle`; repeat."""

    def __init__(self, campaign: Campaign) -> None:
        """Starts before the first run."""
        self.campaign = campaign
        self.tallies = {setting.key: Tally() for setting in campaign.settings}
        self.reference = Tally()
        self.block = -1
        self._queue: deque[Cell] = deque()
        self._wait: Wait | None = None
        self._stop: Stop | None = None
        self._failed: list[Cell] = []
        self._unheld: list[Cell] = []
        """Places in a row whose emulated path did not do what it should."""
        self._repeated = 0
        """How often the present place was done again for that."""

    @property
    def rules(self) -> Rules:
        """The rules of the campaign's plan."""
        return self.campaign.plan.rules

    @property
    def open_settings(self) -> list[str]:
        """Keys of the settings that need more runs."""
        return [key for key, tally in self.tallies.items() if tally.state == "open"]

    @property
    def queued(self) -> tuple[Cell, ...]:
        """What is left of the present block, in order."""
        return tuple(self._queue)

    def instruction(self) -> Instruction:
        """What to do now; asking again without an event in between gives the same answer."""
        if self._stop is None and self._wait is None and not self._queue:
            self._next_block()
        if self._stop is not None:
            return self._stop
        if self._wait is not None:
            return self._wait
        cell = self._queue[0]
        seed = run_seed(self.campaign.seed, *cell.labels.values())
        spec = self.campaign.setting(cell.setting).spec
        return Run(cell, {**spec, "seed": seed})

    def handle(self, event: Event) -> None:
        """Takes note of what happened."""
        match event:
            case RunEnded():
                self._run_ended(event.cell, event.outcome)
            case Waited():
                self._wait = None
            case Interrupted():
                self._stop = Stop("interrupted", "interrupted")
            case Resumed():
                self._resume()

    def _next_block(self) -> None:
        if self.block + 1 >= self.rules.max_repetitions:
            for key in self.open_settings:
                self._close(self.tallies[key])
        if not self.open_settings:
            self._stop = Stop("finished", _finished_line(self))
            return
        self.block += 1
        self._queue.extend(block_order(self.campaign, self.block, self.open_settings))

    def _close(self, tally: Tally) -> None:
        tally.state = "fixed" if self.rules.fixed else "cap"

    def _run_ended(self, cell: Cell, outcome: Outcome) -> None:
        if not self._queue or cell != self._queue[0]:
            raise ValueError(f"{cell} is not the requested run")
        if outcome.stopped:
            # Its place in the block stays open: the run is done again after a resume.
            self._stop = Stop("interrupted", "a run was interrupted")
        elif outcome.measured and outcome.valid is False and not self.campaign.plan.count_invalid:
            self._invalid(cell, outcome)
        elif outcome.measured:
            self._complete(cell, outcome)
        else:
            self._failure(cell, outcome)

    def _complete(self, cell: Cell, outcome: Outcome) -> None:
        self._leave()
        self._failed.clear()
        self._unheld.clear()
        tally = self._tally(cell)
        tally.outcomes.append(outcome)
        tally.blocks.append(cell.block)
        tally.strikes = 0
        if cell.reference or len(tally.values) not in self.rules.looks:
            return
        if self.rules.fixed:
            self._close(tally)
        elif narrow_enough(tally.values, self.rules):
            tally.state = "narrow"
        elif len(tally.values) >= self.rules.max_repetitions:
            self._close(tally)

    def _leave(self) -> None:
        """The present place is settled."""
        self._queue.popleft()
        self._repeated = 0

    def _invalid(self, cell: Cell, outcome: Outcome) -> None:
        """A run that says nothing of its setting: done once more, then its place stays empty."""
        tally = self._tally(cell)
        tally.invalid += 1
        tally.not_valid = outcome.not_valid or tally.not_valid
        self._failed.clear()
        if self._repeated < INVALID_RETRIES:
            self._repeated += 1
            self._queue[0] = replace(cell, attempt=cell.attempt + 1)
            return
        self._leave()
        self._unheld.append(cell)
        count = len(self._unheld)
        if count >= self.rules.max_consecutive_failures:
            why = tally.not_valid or NO_REASON
            line = f"stopped: {count} times in a row no valid run: {why}"
            self._stop = Stop("aborted", line, INVALID_KIND)

    def _failure(self, cell: Cell, outcome: Outcome) -> None:
        kind = outcome.error_kind or "internal"
        tally = self._tally(cell)
        tally.last_error, tally.last_error_kind = outcome.error, kind
        tries = cell.attempt % (self.rules.retries + 1)
        if kind in KINDS and KINDS[kind].may_retry and tries < self.rules.retries:
            self._queue[0] = replace(cell, attempt=cell.attempt + 1)
            seconds = min(outcome.retry_after_s or 2.0**tries, LONGEST_WAIT_S)
            self._wait = Wait(seconds, outcome.error or kind)
            return
        self._leave()
        self._unheld.clear()
        tally.failed += 1
        if kind in FATAL_KINDS or (kind in KINDS and KINDS[kind].may_retry):
            self._failed.append(cell)
            self._maybe_abort(kind, outcome)
            return
        tally.strikes += 1
        if tally.strikes >= STRIKES and not cell.reference:
            tally.state = "abandoned"

    def _maybe_abort(self, kind: str, outcome: Outcome) -> None:
        count = len(self._failed)
        error = outcome.error or kind
        if kind in FATAL_KINDS or (kind in ABSENT_KINDS and not self._any_measured):
            self._stop = Stop("aborted", f"stopped: {error}", kind)
        elif count >= self.rules.max_consecutive_failures:
            self._stop = Stop("aborted", f"stopped: {count} runs in a row failed: {error}", kind)

    @property
    def _any_measured(self) -> bool:
        return any(tally.outcomes for tally in (self.reference, *self.tallies.values()))

    def _resume(self) -> None:
        """Goes on; after giving up, the places that failed last are open again."""
        if self._stop is not None and self._stop.reason == "aborted":
            for cell in self._failed:
                self._tally(cell).failed -= 1
            rounds = self.rules.retries + 1
            # One of the two is empty: either kind ends a row of the other.
            for cell in reversed(self._failed or self._unheld):
                attempt = (cell.attempt // rounds + 1) * rounds
                self._queue.appendleft(replace(cell, attempt=attempt))
            self._failed.clear()
            self._unheld.clear()
        if self._stop is not None and self._stop.reason != "finished":
            self._stop = None

    def _tally(self, cell: Cell) -> Tally:
        return self.reference if cell.reference else self.tallies[cell.setting]


def block_order(campaign: Campaign, block: int, open_settings: list[str]) -> list[Cell]:
    """The runs of one block: every open setting once in drawn order, the reference in between."""
    order = list(open_settings)
    random.Random(run_seed(campaign.seed, "block", block)).shuffle(order)
    cells: list[Cell] = []
    for position, key in enumerate(order):
        if campaign.reference is not None and position % campaign.plan.reference_every == 0:
            slot = position // campaign.plan.reference_every
            cells.append(Cell(campaign.reference.key, block, slot, reference=True))
        cells.append(Cell(key, block))
    return cells


def _finished_line(machine: Machine) -> str:
    tallies = machine.tallies.values()
    ends = [_end_text(tally) for tally in tallies]
    parts = [f"{ends.count(end)} {end}" for end in _ENDS.values() if end in ends]
    failed = sum(tally.failed for tally in tallies if tally.state != "abandoned")
    if failed:
        parts.append(f"{failed} run{'s' * (failed != 1)} failed")
    invalid = sum(tally.invalid for tally in [*tallies, machine.reference])
    if invalid:
        parts.append(f"{invalid} run{'s' * (invalid != 1)} not valid and not counted")
    settings = f"{len(ends)} setting{'s' * (len(ends) != 1)}"
    if set(ends) == {_ENDS["fixed"]}:
        done = f"all {settings} completed" if len(ends) > 1 else f"{settings} completed"
        return "; ".join([done, *parts[1:]])
    return f"{settings}: {', '.join(parts)}"


def _end_text(tally: Tally) -> str:
    if tally.state == "abandoned" or tally.values or not (tally.failed or tally.invalid):
        return _ENDS[tally.state]
    return _ENDS["nothing" if tally.failed else "invalid"]
