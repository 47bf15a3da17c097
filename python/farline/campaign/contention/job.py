"""Runs the trials of a measurement: each side in a thread, both kept as records like any other."""

from __future__ import annotations

import datetime
import math
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from farline.campaign.contention.journal import ContentionJournal
from farline.campaign.contention.order import Place, places
from farline.campaign.contention.plan import NATIVE, ContentionPlan
from farline.campaign.contention.trials import LABEL, Kept, Read, kept_in_store, read_trials
from farline.campaign.measure import keep_run, summed_up
from farline.campaign.settings import run_seed, sampled_spec
from farline.drivers import find_driver, resolve_driven, tool_of
from farline.errors import FarlineError, InternalError, InterruptedRun, SpecError, from_failure
from farline.fairness.contest import BACKGROUND, SUBJECT
from farline.logs import Log
from farline.tools import Stop, StopQuestion, Tool
from farline.tools.events import Event, StreamSamples

if TYPE_CHECKING:
    from farline.campaign.contention.plan import Contender
    from farline.campaign.measure import Measured
    from farline.spec._types import RunSpec
    from farline.spec.path_watch import PathSeen, PathWatch
    from farline.store import Store

_LOG = Log(__name__)
_TAIL_S = 0.2
"""Left out at the end of a window: sides do not end at the same moment."""
_AFTER_S = 2.5
"""The background goes on for this long after the transfer, if that starts at once; four times as
long with each try, for machines that are slow to start a transfer."""
_BEGIN_S = 30.0
"""Longest wait for the background to send; the lead counts from then on."""
_OVERLAP = 0.5
"""Least part of the window that both sides must have run in together."""
_POLL_S = 0.05
_TRIES = 3
"""Times that a trial is run which was not valid, or whose side failed for a passing reason."""
OVERHEAD_S = 1.5
"""What setting up and ending a trial takes, about."""


class SharedLine(Protocol):
    """The line that both sides use, with what runs on it."""

    @property
    def capacity_bps(self) -> float | None:
        """Its rate; None where it is not known."""

    @property
    def link(self) -> str | None:
        """Name of the emulated link that is shared; None for a real line."""

    def tool(self, side: str, name: str) -> tuple[Tool, str]:
        """What runs a side by the tool of that name, and the target that it is given.

        Raises:
            FarlineError: when there is no such tool here.
        """

    def watch(self, side: str) -> PathWatch | None:
        """What watches the emulated path of a side; None for a real line."""

    def clock_us(self) -> int | None:
        """The emulator's clock now, in microseconds; None for a real line."""

    def sends(self, side: str, since_us: int) -> bool:
        """Whether the packets of a side have passed the line since that moment of its clock."""


@dataclass(frozen=True)
class Progress:
    """What a watcher may show: the trial that is next or has ended, and how many there are."""

    done: int
    total: int
    place: Place
    kept: tuple[Kept, ...] = ()
    """Both sides of the trial, once it has ended."""
    problem: str | None = None


Watcher = Callable[[Progress], None]


def new_name(plan: ContentionPlan) -> str:
    """The name of a measurement, by which its runs are found again."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    return f"{plan.name}-{stamp}-{secrets.token_hex(2)}"


@dataclass(frozen=True)
class ContentionJob:
    """One measurement that stands in a store, on a line."""

    journal: ContentionJournal
    line: SharedLine
    store: Store

    def run(self, watch: Watcher, should_stop: StopQuestion) -> Read:
        """Runs what the store does not have yet; gives all trials, those from before too.

        Raises:
            InterruptedRun: when somebody asked for the end; what was done is kept.
            FarlineError: when a side failed for good, or the store did.
        """
        plan, name = self.journal.plan, self.journal.name
        kept = kept_in_store(self.store, name)
        done = read_trials(kept, plan.count_invalid).kept or {}
        loads = plan.load_rates(self.capacity_bps)
        wanted = list(places(plan, loads, self.journal.seed))
        for number, place in enumerate(wanted):
            if place in done:
                continue
            if should_stop() is not Stop.GO_ON:
                raise InterruptedRun(f"interrupted; continue with --resume {name}")
            watch(Progress(number, len(wanted), place))
            kept += self._tried(place, number, len(wanted), watch, should_stop)
        return read_trials(kept, plan.count_invalid)

    @property
    def capacity_bps(self) -> float | None:
        """Rate of the line: as emulated, or as the plan states it."""
        return self.line.capacity_bps or self.journal.plan.capacity_bps

    def _tried(
        self, place: Place, number: int, total: int, watch: Watcher, should_stop: StopQuestion
    ) -> list[Kept]:
        """A trial, run again where it was not valid or failed for a passing reason."""
        found: list[Kept] = []
        for attempt in range(_TRIES):
            sides = self._trial(place, attempt, should_stop)
            found += sides
            error = _worst_error(sides)
            count_invalid = self.journal.plan.count_invalid
            invalid = not all(one.counts(count_invalid) for one in sides)
            last = attempt + 1 == _TRIES
            problem = error.message if error else _not_valid(sides) if invalid else None
            watch(Progress(number + 1, total, place, tuple(sides), problem))
            if should_stop() is not Stop.GO_ON:
                raise InterruptedRun(f"interrupted; continue with --resume {self.journal.name}")
            if error is not None and (last or not error.may_retry):
                raise error
            if error is None and not invalid:
                break
        return found

    def _trial(self, place: Place, attempt: int, should_stop: StopQuestion) -> list[Kept]:
        """One trial, and its sides kept."""
        trial = secrets.token_hex(4)
        with _stopping(should_stop) as stop:
            sides = self._sides(place, attempt, stop)
            clock = _Clock(self.line.clock_us(), time.time())
            if (background := sides.get(BACKGROUND)) is not None:
                background.start()
                if SUBJECT in sides:
                    self._wait_until_sent(background, clock, stop)
                    stop.wait(self.journal.plan.lead_s)
            if (subject := sides.get(SUBJECT)) is not None:
                subject.start()
            for side in sides.values():
                side.join()
        ended = {name: side.checked() for name, side in sides.items()}
        window = _window(self.journal.plan, [end.measured.record for end in ended.values()])
        return [self._keep(place, trial, name, end, window, clock) for name, end in ended.items()]

    def _wait_until_sent(self, side: _Side, clock: _Clock, stop: _Stopping) -> None:
        """Waits until the background sends: setting up a run takes long on a busy machine."""
        until = time.monotonic() + _BEGIN_S
        while stop() is Stop.GO_ON and time.monotonic() < until and side.is_alive:
            since_us = clock.emulator_us
            if side.has_begun or (since_us is not None and self.line.sends(BACKGROUND, since_us)):
                return
            time.sleep(_POLL_S)

    def _sides(self, place: Place, attempt: int, stop: _Stopping) -> dict[str, _Side]:
        plan = self.journal.plan
        found = {}
        if place.load_bps is not None:
            alone = place.subject is None
            after_s = 0.0 if alone else _AFTER_S * 4**attempt
            time_s = plan.lead_s + plan.duration_s + after_s
            found[BACKGROUND] = self._side(BACKGROUND, plan.background, time_s, place, stop)
        if place.subject is not None:
            subject = plan.subject(place.subject)
            found[SUBJECT] = self._side(SUBJECT, subject, plan.duration_s, place, stop)
        return found

    def _side(
        self, side: str, contender: Contender, time_s: float, place: Place, stop: _Stopping
    ) -> _Side:
        load = place.load_bps if side == BACKGROUND else None
        spec = spec_of(contender, time_s, load, self.capacity_bps)
        seed = run_seed(self.journal.seed, side, place.subject, place.load_bps, place.repetition)
        tool, target = self.line.tool(side, contender.tool)
        return _Side(tool, target, {**spec, "seed": seed}, self.line.watch(side), stop)

    def _keep(
        self, place: Place, trial: str, side: str, end: _End, window: _Window, clock: _Clock
    ) -> Kept:
        record = end.measured.record
        started_s = started_at_s(record)
        labels = {
            LABEL: self.journal.name,
            "side": side,
            "subject": place.subject,
            "load_bps": place.load_bps,
            "repetition": place.repetition,
            "trial": trial,
            "link": self.line.link,
            "is_short": window.is_short(self.journal.plan),
            "window_s": [window.first_s - started_s, window.last_s - started_s],
            "window_us": clock.at(window.first_s, window.last_s),
            "ran_us": clock.at(started_s, started_s + record["run_s"]),
        }
        keep_run(self.store, end.measured, end.seen, campaign=self.journal.name, labels=labels)
        links = dict(end.seen.links) if end.seen is not None else {}
        return Kept(record, labels, end.measured.samples, links)


def spec_of(
    contender: Contender, time_s: float, load_bps: float | None, capacity_bps: float | None
) -> RunSpec:
    """The spec of a side for one trial, checked.

    Raises:
        SpecError: when it is not allowed, or needs a rate and none is known.
    """
    needs_rate = contender.transport in ("rbudp", "udp") and load_bps is None
    if needs_rate and capacity_bps is None and "rate_bps" not in contender.options:
        raise SpecError(
            f"{contender.name}: {contender.transport} needs a rate: state rate_bps, or the rate of"
            " the line"
        )
    # Some tools take whole seconds only; a window ends with the first side anyway.
    whole_s = time_s if contender.tool == NATIVE else float(math.ceil(time_s))
    document = contender.spec(whole_s, load_bps, capacity_bps or 0.0)
    try:
        if contender.tool != NATIVE:
            document = resolve_driven(_without_time(document, capacity_bps))
        return sampled_spec(document)
    except SpecError as error:
        raise SpecError(f"{contender.name}: {error.message}") from None


def _without_time(document: dict[str, Any], capacity_bps: float | None) -> dict[str, Any]:
    """As many bytes as the line takes in that time, for a mover that cannot stop at one."""
    takes = find_driver(tool_of(document)).abilities.takes
    if "duration_s" in takes or capacity_bps is None:
        return document
    stated = document.get("rate_bps")
    rate_bps = stated * document.get("streams", 1) if stated else capacity_bps
    moved = round(min(rate_bps, capacity_bps) * document["duration_s"] / 8)
    rest = {name: value for name, value in document.items() if name != "duration_s"}
    return {**rest, "total_bytes": moved}


def started_at_s(record: Mapping[str, Any]) -> float:
    """When data began to flow, in seconds of the wall clock."""
    return datetime.datetime.fromisoformat(record["started_at"]).timestamp()


@dataclass(frozen=True)
class _Window:
    """Time in which every side of a trial ran steadily, by the wall clock."""

    first_s: float
    last_s: float

    def is_short(self, plan: ContentionPlan) -> bool:
        """Whether sides ran together for much less than was meant."""
        return self.last_s - self.first_s < _OVERLAP * (plan.duration_s - plan.omit_s)


def _window(plan: ContentionPlan, records: Sequence[Mapping[str, Any]]) -> _Window:
    """From the last to start and what is left out there, to the first to end."""
    starts = [started_at_s(record) for record in records]
    ends = [start + record["run_s"] for start, record in zip(starts, records, strict=True)]
    first, last = max(starts) + plan.omit_s, min(ends) - _TAIL_S
    return _Window(first, max(last, first))


@dataclass(frozen=True)
class _Clock:
    """The emulator's clock beside the wall clock."""

    emulator_us: int | None
    wall_s: float

    def at(self, *times_s: float) -> list[int] | None:
        """Moments of the wall clock by the emulator's."""
        if self.emulator_us is None:
            return None
        return [self.emulator_us + round(1e6 * (time_s - self.wall_s)) for time_s in times_s]


class _Stopping:
    """Whether the sides of a trial should end: the user's wish, or that of a side that failed."""

    def __init__(self, asked: StopQuestion) -> None:
        self._asked = asked
        self._failed = threading.Event()

    def __call__(self) -> Stop:
        return max(self._asked(), Stop.NOW if self._failed.is_set() else Stop.GO_ON)

    def fail(self) -> None:
        """Ends the other side: what it measures from now on is of no use."""
        self._failed.set()

    def wait(self, time_s: float) -> None:
        """Waits, unless the end comes first."""
        until = time.monotonic() + time_s
        while (left := until - time.monotonic()) > 0 and self() is Stop.GO_ON:
            time.sleep(min(left, _POLL_S))


@contextmanager
def _stopping(asked: StopQuestion) -> Iterator[_Stopping]:
    """Ends the sides when the block is left by an exception (Ctrl-C in a notebook)."""
    stop = _Stopping(asked)
    try:
        yield stop
    except BaseException:
        stop.fail()
        raise


@dataclass(frozen=True)
class _End:
    """What a side came to."""

    measured: Measured
    seen: PathSeen | None


class _Side:
    """One side of a trial, in a thread of its own."""

    def __init__(
        self,
        tool: Tool,
        target: str,
        spec: Mapping[str, Any],
        path: PathWatch | None,
        stop: _Stopping,
    ) -> None:
        self._tool, self._target, self._spec = tool, target, spec
        self._path, self._stop = path, stop
        self._end: _End | None = None
        self._error: BaseException | None = None
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._drive, name="farline side", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    @property
    def has_begun(self) -> bool:
        """Whether it has reported samples of its streams; not every tool does."""
        return self._begun.is_set()

    def _note(self, event: Event) -> None:
        if isinstance(event, StreamSamples):
            self._begun.set()

    def join(self) -> None:
        """Waits for its end; a signal handler runs meanwhile."""
        while self._thread.is_alive():
            self._thread.join(_POLL_S)

    def checked(self) -> _End:
        """What it came to; what was not to be had is raised."""
        if self._error is not None:
            if isinstance(self._error, FarlineError):
                raise self._error
            raise InternalError(f"{type(self._error).__name__}: {self._error}") from self._error
        assert self._end is not None
        return self._end

    def _drive(self) -> None:
        try:
            self._end = self._run()
            if self._end.measured.record["status"] != "complete":
                self._stop.fail()
        except BaseException as error:  # whoever joins must hear of it
            self._error = error
            self._stop.fail()

    def _run(self) -> _End:
        mark = self._path.start() if self._path is not None else None
        spec: Any = self._spec
        result = self._tool.run(self._target, spec, self._note, self._stop)
        seen = None
        if self._path is not None:
            seen = self._path.finish(mark, result.record["server_address"])
        return _End(summed_up(result, seen), seen)


def _worst_error(sides: Sequence[Kept]) -> FarlineError | None:
    """What a side failed with; of several the first that was not just ended by the other."""
    errors = [one.record.get("error") for one in sides if one.record["status"] != "complete"]
    known = [from_failure(error) for error in errors if error]
    known.sort(key=lambda error: isinstance(error, InterruptedRun))
    if errors and not known:
        return InterruptedRun("a side of the trial was stopped")
    return known[0] if known else None


def _not_valid(sides: Sequence[Kept]) -> str:
    if any(one.labels.get("is_short") for one in sides):
        return "not valid: both sides ran together for less than half of the time"
    reasons = [
        reason
        for one in sides
        if not one.valid
        for reason in one.record["path"]["stamp"]["reasons"]
    ]
    return f"not valid: {reasons[0]}" if reasons else "not valid"


def drawn_seed(plan: ContentionPlan) -> int:
    """The plan's seed, or one that is drawn."""
    return plan.seed if plan.seed is not None else random.SystemRandom().randrange(2**53)


def seeded(plan: ContentionPlan) -> ContentionPlan:
    """The plan with its seed."""
    return replace(plan, seed=drawn_seed(plan))
