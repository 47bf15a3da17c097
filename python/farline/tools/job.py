"""Work that is followed by its events, stopped from anywhere, and leaves a result."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

from farline.errors import FarlineError, InterruptedRun
from farline.tools import Stop, StopQuestion, never_stop
from farline.tools.events import Event, Stopping

if TYPE_CHECKING:
    from farline.tools.events import Steps

_Result = TypeVar("_Result")


class Job(ABC, Generic[_Result]):
    """Iterating drives it and gives its events; `wait` drives it to its end.

    Both leave `result`, and raise nothing for work that fails: the result says so. `cancel` may be
    called from any thread or signal handler.
    """

    def __init__(self, should_stop: StopQuestion = never_stop) -> None:
        """Prepares; nothing is begun. `should_stop` is asked beside what `cancel` was told."""
        self._asked, self._wanted = should_stop, Stop.GO_ON
        self._events = self._told()
        self.result: _Result | None = None
        """What it came to, once the events have ended."""

    @abstractmethod
    def _work(self) -> Steps[_Result]:
        """The work itself; it asks `_should_stop`."""

    @abstractmethod
    def _failed(self, error: FarlineError) -> _Result:
        """The result of work that ended with an error."""

    def __iter__(self) -> Iterator[Event]:
        """Its events; whoever asks for the next one drives it."""
        return self

    def __next__(self) -> Event:
        """The next event."""
        return next(self._events)

    def __enter__(self) -> Job[_Result]:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends what goes on."""
        self.close()

    def wait(self) -> _Result:
        """Drives it to its end; what it came to."""
        for _event in self:
            pass
        if self.result is None:
            # Somebody has left it while it went on.
            self.result = self._failed(InterruptedRun("stopped"))
        return self.result

    @property
    def stop_wanted(self) -> Stop:
        """Whether somebody has asked for its end."""
        return max(self._wanted, self._asked())

    def cancel(self, at_once: bool = False) -> None:
        """Asks for its end: in good order; or `at_once`."""
        self._wanted = max(self._wanted, Stop.NOW if at_once else Stop.GRACEFULLY)

    def close(self) -> None:
        """Ends it at once, if it still goes on."""
        self._events.close()

    def _should_stop(self) -> Stop:
        return self.stop_wanted

    def _told(self) -> Generator[Event, None, None]:
        """The events of the work; a wish to stop is told of once, as soon as it is seen."""
        is_told, steps = False, self._work()
        try:
            while True:
                event = next(steps)
                if not is_told and self.stop_wanted is Stop.GRACEFULLY:
                    is_told = True
                    yield Stopping()
                if event is not None:
                    yield event
        except StopIteration as end:
            self.result = end.value
        except FarlineError as error:
            self.result = self._failed(error)
        finally:
            steps.close()


def result_of(steps: Steps[_Result]) -> _Result:
    """What steps come to, whatever they tell meanwhile.

    Raises:
        FarlineError: what they fail with.
    """
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: _Result = end.value
            return result


def pause(wait_s: float, should_stop: StopQuestion) -> Steps[bool]:
    """Waits; says whether to go on then."""
    until = time.monotonic() + wait_s
    while should_stop() is Stop.GO_ON:
        left = until - time.monotonic()
        if left <= 0:
            return True
        yield None
        time.sleep(min(left, 0.1))
    return False
