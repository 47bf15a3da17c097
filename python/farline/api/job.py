"""A job that goes on in a thread of its own: its events, its end, and a way to stop it."""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Generator, Iterator
from functools import partial
from importlib import import_module
from typing import Any, Generic, Literal, Self, TypeVar

from farline.errors import (
    FarlineError,
    InternalError,
    InterruptedRun,
    TimeoutFailure,
    UsageError,
)
from farline.tools import Stop

Status = Literal["running", "complete", "failed", "cancelled"]
"""How a job is: it goes on, all is done, it failed, or somebody has ended it before."""

KEPT_EVENTS = 10_000
"""Events that are kept for those who read them later; older ones are dropped."""
EXIT_S = 2.0
"""Time that jobs have to end in good order when the program does."""

_EventT = TypeVar("_EventT", covariant=True)


class BackgroundJob(ABC, Generic[_EventT]):
    """What `probe`, `profile` and `copy` have in common.

    Iterating gives every event from the beginning and ends with the job; several may iterate, each
    at a pace of its own. One who lags more than `KEPT_EVENTS` behind goes on with the oldest that
    is kept. Methods may be called from any thread.
    """

    def __init__(self, name: str) -> None:
        """Begins."""
        self._changed = threading.Condition()
        self._events: deque[_EventT] = deque(maxlen=KEPT_EVENTS)
        self._told = 0
        self._status: Status = "running"
        self._error: FarlineError | None = None
        self._wanted = Stop.GO_ON
        self._listeners: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._thread = threading.Thread(target=self._drive, name=f"farline {name}", daemon=True)
        _running.add(self)
        self._thread.start()

    @abstractmethod
    def _work(self) -> Status:
        """Does it, in the job's thread; tells events by `_tell`."""

    def _tell(self, event: Any) -> None:
        """Puts an event before those who iterate."""
        with self._changed:
            self._events.append(event)
            self._told += 1
            self._wake()

    def _should_stop(self) -> Stop:
        return self._wanted

    def _drive(self) -> None:
        status: Status = "failed"
        error: FarlineError | None = None
        try:
            status = self._work()
        except FarlineError as failure:
            error = failure
        except BaseException as defect:  # whoever waits must hear of it
            error = InternalError(f"{type(defect).__name__}: {defect}")
            error.__cause__ = defect
        if self._wanted is not Stop.GO_ON and isinstance(error, InterruptedRun):
            # Who has cancelled it knows; the end is the one that was asked for.
            status, error = "cancelled", None
        with self._changed:
            self._status, self._error = status, error
            _running.discard(self)
            self._wake()

    def _wake(self) -> None:
        """Wakes all that wait, those of event loops in their own threads; the lock is held."""
        self._changed.notify_all()
        for loop, event in self._listeners:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    @property
    def status(self) -> Status:
        """How it is now."""
        return self._status

    @property
    def error(self) -> FarlineError | None:
        """What it failed with, once it has."""
        return self._error

    @property
    def done(self) -> bool:
        """Whether it has ended, however."""
        return self._status != "running"

    def cancel(self, now: bool = False) -> None:
        """Asks for its end: in good order, with what was done until then; or at once.

        `wait` does not raise for an end that was asked for here; `status` is "cancelled".
        """
        self._wanted = max(self._wanted, Stop.NOW if now else Stop.GRACEFULLY)

    def wait(self, timeout_s: float | None = None) -> Self:
        """Waits for its end; itself. Ctrl-C meanwhile cancels it.

        Raises:
            FarlineError: what it failed with.
            TimeoutFailure: when it goes on after `timeout_s` seconds; it is not cancelled.
        """
        try:
            self._join(timeout_s)
        except KeyboardInterrupt:
            self.cancel()
            self._join(EXIT_S)
            raise
        return self._checked()

    def _join(self, timeout_s: float | None) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self.done, timeout_s):
                raise TimeoutFailure(f"still running after {timeout_s:g} s")

    def _checked(self) -> Self:
        if self._error is not None:
            raise self._error
        return self

    def __iter__(self) -> Iterator[_EventT]:
        """Its events from the beginning, to its end."""
        place = 0
        while True:
            with self._changed:
                self._changed.wait_for(partial(self._has_more, place))
                place, batch = self._since(place)
            if not batch:
                return
            yield from batch

    def _kept(self) -> list[_EventT]:
        """The events that are kept, the oldest first."""
        with self._changed:
            return list(self._events)

    def _has_more(self, place: int) -> bool:
        return self._told > place or self.done

    def _since(self, place: int) -> tuple[int, list[_EventT]]:
        """The events from `place` on that are kept; the lock is held."""
        oldest = self._told - len(self._events)
        skipped = max(place - oldest, 0)
        return self._told, [event for index, event in enumerate(self._events) if index >= skipped]

    def watch(self, every_s: float = 0.5) -> Self:
        """In a notebook: draws it, and again as it goes on, until it has ended; itself.

        Ctrl-C, or the notebook's button to interrupt, cancels it.

        Raises:
            UsageError: where IPython is not installed.
            FarlineError: what it failed with.
        """
        try:
            shown = import_module("IPython.display")
        except ImportError:
            raise UsageError("watch draws in a notebook; elsewhere iterate over the job") from None
        drawn = shown.display(shown.HTML(self._repr_html_()), display_id=True)
        try:
            while not self._is_over(every_s):
                drawn.update(shown.HTML(self._repr_html_()))
        except KeyboardInterrupt:
            self.cancel()
            self._join(EXIT_S)
            raise
        finally:
            drawn.update(shown.HTML(self._repr_html_()))
        return self._checked()

    def _is_over(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.done, timeout_s)

    @abstractmethod
    def _repr_html_(self) -> str:
        """How it is now, for a notebook."""

    async def __aiter__(self) -> AsyncIterator[_EventT]:
        """The same for `async for`; the event loop goes on meanwhile."""
        place = 0
        with _Listening(self) as woken:
            while True:
                woken.clear()
                with self._changed:
                    place, batch = self._since(place)
                    ended = self.done
                for event in batch:
                    yield event
                if ended and not batch:
                    return
                if not batch:
                    await woken.wait()

    def __await__(self) -> Generator[object, None, Self]:
        """Waits without blocking the event loop; as `wait`. A cancelled task cancels the job."""
        return self._awaited().__await__()

    async def _awaited(self) -> Self:
        with _Listening(self) as woken:
            try:
                while not self.done:
                    woken.clear()
                    if not self.done:
                        await woken.wait()
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self._checked()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_about: object) -> None:
        """Waits for its end, as `wait`; what leaves the block by an exception cancels it first."""
        if kind is None:
            self.wait()
            return
        self.cancel(now=True)
        self._join(None)


class _Listening:
    """For as long as the block runs, an `asyncio.Event` of the running loop hears of a job."""

    def __init__(self, job: BackgroundJob[Any]) -> None:
        self._job = job
        self._entry = (asyncio.get_running_loop(), asyncio.Event())

    def __enter__(self) -> asyncio.Event:
        with self._job._changed:
            self._job._listeners.append(self._entry)
        return self._entry[1]

    def __exit__(self, *_about: object) -> None:
        with self._job._changed:
            self._job._listeners.remove(self._entry)


_running: weakref.WeakSet[BackgroundJob[Any]] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Gives jobs that nobody waited for a moment to end in good order."""
    jobs = list(_running)
    for job in jobs:
        job.cancel()
    until = time.monotonic() + EXIT_S
    for job in jobs:
        job._thread.join(max(0.0, until - time.monotonic()))
