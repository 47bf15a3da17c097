"""When a copy that broke off is begun again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from farline.copying.adjusting import Adjusting
from farline.copying.retry import LONGEST_WAIT_S, RepeatedSessions, RetryPolicy
from farline.copying.session import Attempt
from farline.errors import (
    AuthError,
    BusyError,
    FarlineError,
    ProtocolError,
    SystemFailure,
    TimeoutFailure,
    UnreachableError,
    from_failure,
)
from farline.tools import never_stop
from farline.tools.events import RetryScheduled
from tests.support.copies import progress
from tests.support.steps import finished

if TYPE_CHECKING:
    from farline.tools.events import Event, Steps

CUT = UnreachableError("far.example:5470: connection reset")


def waits(retry: RetryPolicy, error: FarlineError = CUT, start_s: float = 0.0) -> list[float]:
    """All waits until it gives up, nothing moving meanwhile."""
    now_s, found = start_s, []
    while (wait_s := retry.wait_s(error, now_s)) is not None:
        found.append(wait_s)
        now_s += wait_s
    return found


def test_pauses_double_up_to_half_a_minute() -> None:
    retry = RetryPolicy(600.0)
    retry.moved(0.0)
    found = waits(retry)
    assert found[:6] == [1, 2, 4, 8, 16, 30]
    assert max(found) == LONGEST_WAIT_S
    assert 600 - LONGEST_WAIT_S < sum(found) <= 600


def test_progress_begins_the_pauses_and_the_time_anew() -> None:
    retry = RetryPolicy(60.0)
    retry.moved(0.0)
    assert retry.wait_s(CUT, 55.0) == 1.0
    retry.moved(59.0)
    assert retry.wait_s(CUT, 100.0) == 1.0
    assert retry.wait_s(CUT, 118.0) is None


@pytest.mark.parametrize("error", [AuthError("no"), SystemFailure("disk full")])
def test_what_does_not_pass_is_not_tried_again(error: FarlineError) -> None:
    retry = RetryPolicy(600.0)
    retry.moved(0.0)
    assert retry.wait_s(error, 1.0) is None


@pytest.mark.parametrize("error", [CUT, TimeoutFailure("stalled"), ProtocolError("gone")])
def test_what_may_pass_is_tried_again_once_a_session_has_come_about(error: FarlineError) -> None:
    assert RetryPolicy(600.0).wait_s(error, 0.0) is None
    retry = RetryPolicy(600.0)
    retry.moved(0.0)
    assert retry.wait_s(error, 0.0) == 1.0


def test_a_full_server_is_waited_for_from_the_start_as_long_as_it_says() -> None:
    assert RetryPolicy(600.0).wait_s(BusyError("full", retry_after_s=7.0), 0.0) == 7.0


def test_a_stated_number_is_the_most() -> None:
    assert len(waits(RetryPolicy(600.0, retries=3))) == 3
    retry = RetryPolicy(600.0, retries=0)
    retry.moved(0.0)
    assert waits(retry) == []


@dataclass
class FullDisk:
    """Sessions that find again what is there, move a little of the rest, and fail."""

    found: int = 0
    adjusting: Adjusting | None = None
    repeat = False
    is_known = False
    far: str | None = None

    def attempt(self, document: Any, receipt: Any, should_stop: Any) -> Steps[Attempt]:
        """One session; each hears of the same files again, one after the other."""
        self.found += 1
        for files in range(4):
            bytes_ = files << 20
            yield progress(settled_files=files, settled_bytes=bytes_, moved_bytes=bytes_ // 2)
        return Attempt(None, CUT)

    def close(self) -> None:
        """Nothing was started."""


def test_what_is_found_again_is_no_progress() -> None:
    now = [0.0]
    disk = FullDisk()

    def sleep(seconds: float) -> None:
        now[0] += seconds

    repeated = RepeatedSessions(
        disk, RetryPolicy(60.0), never_stop, clock=lambda: now[0], sleep=sleep
    )
    told: list[Event] = []
    assert finished(repeated.run({}, None), told).error is CUT
    waits_s = [event.wait_s for event in told if isinstance(event, RetryScheduled)]
    assert len(waits_s) == disk.found - 1 and waits_s[:3] == [1, 2, 4]
    assert 5 <= disk.found <= 7 and now[0] <= 61.0


@dataclass
class FirstBlast(FullDisk):
    """A session that is cut before anything is told to have moved; the next one copies all."""

    def attempt(self, document: Any, receipt: Any, should_stop: Any) -> Steps[Attempt]:
        """One session."""
        self.found += 1
        yield progress(settled_files=0, settled_bytes=0, moved_bytes=0)
        return Attempt(None, TimeoutFailure("stalled") if self.found == 1 else None)


def test_a_session_that_was_cut_before_anything_had_moved_is_tried_again() -> None:
    line = FirstBlast()
    repeated = RepeatedSessions(line, RetryPolicy(60.0), never_stop, sleep=lambda _s: None)
    assert finished(repeated.run({}, None), []).error is None
    assert line.found == 2


@dataclass
class Strange(FullDisk):
    """Another end that breaks the protocol as soon as it begins."""

    def attempt(self, document: Any, receipt: Any, should_stop: Any) -> Steps[Attempt]:
        """One session."""
        self.found += 1
        yield progress(settled_files=0, settled_bytes=0, moved_bytes=0)
        return Attempt(None, ProtocolError("no such message"))


def test_an_end_that_breaks_the_protocol_before_anything_has_moved_is_not_tried_again() -> None:
    line = Strange()
    repeated = RepeatedSessions(line, RetryPolicy(60.0), never_stop, sleep=lambda _s: None)
    assert isinstance(finished(repeated.run({}, None), []).error, ProtocolError)
    assert line.found == 1


def test_another_end_that_did_what_nobody_asked_for_is_not_tried_again() -> None:
    lied = from_failure({"kind": "protocol", "message": "sent .bashrc", "permanent": True})
    retry = RetryPolicy(600.0, retries=5)
    retry.moved(0.0)
    assert waits(retry, lied) == []
    assert waits(retry, ProtocolError("the stream ended within a frame"))
