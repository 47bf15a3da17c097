"""Pairs of nodes at work: a thread for each, which has one part after the other carried.

A thread sends orders to the source node of its pair (`copying.remote_to_remote`); the data go from
there to the server that it started on the destination's. What they tell is added up here.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.cluster.parts_queue import PartsQueue
from farline.copying.locations import Endpoints
from farline.errors import FarlineError, InterruptedRun, TimeoutFailure
from farline.logs import Log
from farline.tools import Stop
from farline.tools.events import Adjusted, Progress

if TYPE_CHECKING:
    from farline.cluster.changes import Changes
    from farline.cluster.plan import Part
    from farline.copying.remote_to_remote import RemoteToRemote
    from farline.copying.session import Attempt
    from farline.tools import StopQuestion
    from farline.tools.events import Steps

_LOG = Log(__name__)

FIRST_BACK_S = 10.0
LONGEST_BACK_S = 300.0
"""A pair that is away is tried again after pauses that grow from one to the other."""
LATE_S = 30.0
"""Nodes get so long to start beyond twice what the first took."""
_POLL_S = 0.05

Documented = Callable[["Part"], Mapping[str, Any]]
"""The spec of the session that carries a part."""


@dataclass(eq=False)
class Lane:
    """A pair of nodes, and what it has carried."""

    number: int
    name: str
    sessions: RemoteToRemote
    destination: str
    done_files: int = 0
    done_bytes: int = 0
    moving_bytes: int = 0
    """Of the part under way."""
    settled_files: int = 0
    settled_bytes: int = 0
    """Of the part under way, with what needed no copying."""
    records: list[Mapping[str, Any]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """What went wrong, a line each, to be told."""
    targets: tuple[str, str] = ("", "")
    """The nodes of both ends."""
    is_over: bool = False
    is_away: bool = False
    """Whether it carries nothing now: it was given up, or has not begun yet."""
    share: float = 1.0
    """How fast its interfaces are, beside the fastest pair's."""
    is_doubtful: bool = False
    """Whether the last that it was to do failed."""
    cpus: list[list[int]] = field(default_factory=lambda: [[], []])
    """CPUs for streams on the node of each end; none where the kernel chooses."""
    pause_s: float = FIRST_BACK_S
    """After so long one that is away is tried again."""

    def begin(self) -> None:
        """A new attempt: nothing is carried yet."""
        self.done_files = self.done_bytes = self.moving_bytes = 0
        self.records, self.said = [], []
        self.is_over = False

    def told(self, error: FarlineError) -> str:
        """What went wrong here: its name and the message, which may begin with it already."""
        named = f"{self.name}: "
        return named + error.message.removeprefix(named)

    def placed(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The spec of a session with the CPUs for its streams."""
        names = ("client_cpus", "server_cpus")
        cpus = {name: some for name, some in zip(names, self.cpus, strict=True) if some}
        return {**spec, **cpus}

    def whole(self, sources: tuple[str, ...]) -> None:
        """The next order is about all that was asked for."""
        ends = self.sessions.endpoints
        self.sessions.endpoints = Endpoints(
            ends.source_host, sources, ends.destination_host, self.destination
        )
        known = self.sessions.settings
        self.sessions.settings = {key: known[key] for key in known if key != "list"}

    def settings(self, part: Part) -> None:
        """What the next order is about."""
        ends = self.sessions.endpoints
        self.sessions.endpoints = Endpoints(
            ends.source_host, (part.base,), ends.destination_host, self.destination
        )
        self.sessions.settings = {**self.sessions.settings, "list": list(part.names)}


def begin(lane: Lane, should_stop: StopQuestion) -> None:
    """Starts farline on both nodes of a pair, unless it runs.

    Raises:
        FarlineError: what it does not start for.
    """
    for steps in (lane.sessions.connector.open(should_stop), lane.sessions.started(should_stop)):
        for _ in steps:
            pass


def start(lanes: Sequence[Lane], should_stop: StopQuestion) -> list[tuple[Lane, FarlineError]]:
    """Starts farline on all nodes at the same time; the pairs that have not begun, and why.

    Once one has, the others get as long again and `LATE_S`: a node that is slow to start, or down,
    holds up no other, and may join them later.
    """
    failed: list[tuple[Lane, FarlineError]] = []
    until = [math.inf]
    began_s = time.monotonic()

    def stops() -> Stop:
        is_late = time.monotonic() > until[0]
        return Stop.GRACEFULLY if is_late and should_stop() is Stop.GO_ON else should_stop()

    def one(lane: Lane) -> None:
        try:
            begin(lane, stops)
            now_s = time.monotonic()
            until[0] = min(until[0], 2 * now_s - began_s + LATE_S)
        except InterruptedRun as error:
            late = TimeoutFailure("farline has not started there yet")
            failed.append((lane, error if should_stop() is not Stop.GO_ON else late))
        except FarlineError as error:
            failed.append((lane, error))

    at_once([partial(one, lane) for lane in lanes])
    return failed


def at_once(works: Sequence[Callable[[], None]]) -> None:
    """Does all of it at the same time, and waits for it: a node that hangs holds up no other."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def changed(lane: Lane, steps: Steps[Attempt], changes: Changes) -> Steps[Attempt]:
    """An attempt of a pair, which is told of changes and says what came of them."""
    try:
        while True:
            try:
                event = next(steps)
            except StopIteration as end:
                attempt: Attempt = end.value
                return attempt
            if isinstance(event, Adjusted):
                changes.note(lane.number, event.change)
                event = None
            if (request := changes.to_send(lane.number)) is not None:
                for refused in lane.sessions.adjust(request):
                    changes.note(lane.number, refused)
            yield event
    finally:
        changes.ended(lane.number)


class Crew:
    """All pairs that carry the parts of one copy."""

    def __init__(
        self, lanes: Sequence[Lane], queue: PartsQueue, documented: Documented, changes: Changes,
        should_stop: StopQuestion,
    ) -> None:  # fmt: skip
        """Begins."""
        self.lanes, self.queue, self._changes = lanes, queue, changes
        self._documented, self._should_stop = documented, should_stop
        self._threads: list[threading.Thread] = []
        for lane in list(lanes):
            self.add(lane)

    def add(self, lane: Lane) -> None:
        """A pair more, in a thread of its own; one that is away begins when it can."""
        thread = threading.Thread(target=self._work, args=(lane,), daemon=True)
        thread.start()
        self._threads.append(thread)

    @property
    def is_at_work(self) -> bool:
        """Whether any pair goes on."""
        return any(thread.is_alive() for thread in list(self._threads))

    def join(self) -> None:
        """Waits for all of them: soon, once it is over or stopped."""
        for thread in list(self._threads):
            thread.join()

    def said(self) -> list[str]:
        """What went wrong since this was asked last."""
        told = []
        for lane in list(self.lanes):
            while lane.said:
                told.append(lane.said.pop(0))
        return told

    def _work(self, lane: Lane) -> None:
        try:
            while not self.queue.is_over and self._should_stop() is Stop.GO_ON:
                if lane.is_away:
                    self._come_back(lane)
                elif (part := self.queue.take(_POLL_S, lane.share)) is not None:
                    self._carry(lane, part)
        except FarlineError as error:
            self.queue.lost(error)
        finally:
            lane.is_over = True

    def _come_back(self, lane: Lane) -> None:
        """Tries a pair that is away, after a pause that grows each time."""
        self._pause(lane.pause_s)
        if self.stops() is not Stop.GO_ON:
            return
        lane.pause_s = min(max(2 * lane.pause_s, FIRST_BACK_S), LONGEST_BACK_S)
        try:
            begin(lane, self.stops)
        except FarlineError as error:
            _LOG.debug("a pair is still away", lane=lane.name, reason=error.message)
            lane.sessions.close()
            return
        lane.is_away = False
        self.queue.joined(lane.number)
        self._changes.carriers(self.queue.lanes)
        lane.said.append(f"{lane.name} joins the copy{' again' if lane.records else ''}")

    def _carry(self, lane: Lane, part: Part) -> None:
        """One part."""
        lane.settings(part)
        attempt = self._attempt(lane, part)
        error = attempt.error
        lane.moving_bytes = lane.settled_files = lane.settled_bytes = 0
        if attempt.record is not None:
            lane.records.append(attempt.record)
        if error is None:
            lane.done_files += 0 if part.span else len(part.names)
            lane.done_bytes += part.size
            lane.pause_s, lane.is_doubtful = FIRST_BACK_S, False
            self.queue.done(lane.number, part)
        elif self._should_stop() is not Stop.GO_ON or isinstance(error, InterruptedRun):
            self.queue.stopped(part)
        else:
            self._failed(lane, part, error)

    def _attempt(self, lane: Lane, part: Part) -> Attempt:
        spec = self._changes.begun(lane.number, lane.name, lane.placed(self._documented(part)))
        receipt = self._receipt(part)
        steps = changed(lane, lane.sessions.attempt(spec, receipt, self.stops), self._changes)
        while True:
            try:
                event = next(steps)
            except StopIteration as end:
                attempt: Attempt = end.value
                return attempt
            if isinstance(event, Progress):
                lane.moving_bytes = min(event.report["moved_bytes"], part.size)
                lane.settled_files = min(event.report["settled_files"], len(part.names))
                lane.settled_bytes = min(event.report["settled_bytes"], part.size)

    def stops(self) -> Stop:
        """Nobody waits for a node that starts when all parts have been carried."""
        return Stop.NOW if self.queue.is_over else self._should_stop()

    def _failed(self, lane: Lane, part: Part, error: FarlineError) -> None:
        lane.is_doubtful = error.kind != "busy"
        wait_s = self.queue.failed(lane.number, part, error)
        _LOG.debug("a part failed", lane=lane.name, part=part.number, reason=error.message)
        if error.kind != "busy":
            lane.sessions.close()
        if wait_s is None:
            lane.is_away = True
            self._changes.carriers(self.queue.lanes)
            lane.said.append(self._given_up(lane, error))
            return
        if error.kind != "busy":
            lane.said.append(f"{lane.told(error)}; trying again in {wait_s:g} s")
        self._pause(wait_s)

    def _receipt(self, part: Part) -> Path | None:
        """Where an attempt at a part writes its receipt; nowhere: the last session writes one."""
        return None

    def _given_up(self, lane: Lane, error: FarlineError) -> str:
        """What is said of a pair that is given up."""
        if self.queue.lanes < 1:
            return f"{lane.name} failed, and no pair is left: {error.message}"
        return (
            f"{lane.name} failed, and the others take over its part; it is tried again in "
            f"{lane.pause_s:g} s: {error.message}"
        )

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.stops() is Stop.GO_ON:
            time.sleep(_POLL_S)
