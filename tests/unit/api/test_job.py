"""Jobs: events to each who asks, one end for all who wait, and defects that are not swallowed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from farline.api import job as jobs
from farline.api.job import BackgroundJob, Status
from farline.errors import InternalError, InterruptedRun, SpecError, TimeoutFailure, UsageError
from farline.tools import Stop

pytestmark = pytest.mark.unit


class Scripted(BackgroundJob[int]):
    """Does what a test says."""

    def __init__(self, script: Callable[[Scripted], Status]) -> None:
        self.script = script
        self.may_go_on = threading.Event()
        super().__init__("scripted")

    def _work(self) -> Status:
        return self.script(self)

    def tell(self, *events: int) -> None:
        for event in events:
            self._tell(event)

    def wanted(self) -> Stop:
        return self._should_stop()

    def _repr_html_(self) -> str:
        return self.status


def counting(job: Scripted) -> Status:
    job.tell(1, 2)
    assert job.may_go_on.wait(10)
    job.tell(3)
    return "complete"


def until_stopped(job: Scripted) -> Status:
    while job.wanted() is Stop.GO_ON:
        job.may_go_on.wait(0.01)
    raise InterruptedRun("stopped")


def test_each_who_iterates_gets_all_events_in_order() -> None:
    job = Scripted(counting)
    early = iter(job)
    assert [next(early), next(early)] == [1, 2]
    job.may_go_on.set()
    assert list(early) == [3]
    assert list(job) == [1, 2, 3]
    assert job.wait().status == "complete"


def test_one_who_lags_far_behind_goes_on_with_what_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "KEPT_EVENTS", 4)

    def many(job: Scripted) -> Status:
        job.tell(*range(10))
        assert job.may_go_on.wait(10)
        job.tell(*range(10, 16))
        return "complete"

    job = Scripted(many)
    slow = iter(job)
    first = next(slow)
    job.may_go_on.set()
    job.wait()
    seen = [first, *slow]
    assert seen == sorted(seen)
    assert seen[-4:] == [12, 13, 14, 15]


def test_who_waits_gets_the_error_and_so_does_the_next() -> None:
    def failing(_job: Scripted) -> Status:
        raise SpecError("streams: 0 is out of range")

    job = Scripted(failing)
    for _ in range(2):
        with pytest.raises(SpecError, match="out of range"):
            job.wait()
    assert job.status == "failed"
    assert list(job) == []


def test_a_defect_is_an_internal_error_with_its_cause() -> None:
    def broken(_job: Scripted) -> Status:
        raise KeyError("x")

    job = Scripted(broken)
    with pytest.raises(InternalError, match="KeyError") as caught:
        job.wait()
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_wait_has_a_limit_and_leaves_the_job_alone() -> None:
    job = Scripted(counting)
    with pytest.raises(TimeoutFailure, match=r"still running after 0\.01 s"):
        job.wait(timeout_s=0.01)
    assert not job.done
    job.may_go_on.set()
    job.wait()


def test_an_end_that_was_asked_for_is_no_error() -> None:
    job = Scripted(until_stopped)
    job.cancel()
    assert job.wait().status == "cancelled"
    assert job.error is None


def test_an_end_that_somebody_else_made_is_an_error() -> None:
    def stopped(_job: Scripted) -> Status:
        raise InterruptedRun("the server was stopped")

    with pytest.raises(InterruptedRun):
        Scripted(stopped).wait()


def test_leaving_a_block_by_an_exception_cancels() -> None:
    with pytest.raises(ZeroDivisionError), Scripted(until_stopped) as job:
        raise ZeroDivisionError
    assert job.status == "cancelled"


def test_several_tasks_follow_one_job() -> None:
    async def follow(job: Scripted) -> list[int]:
        return [event async for event in job]

    async def main() -> tuple[list[int], list[int]]:
        job = Scripted(counting)
        asyncio.get_running_loop().call_later(0.05, job.may_go_on.set)
        first, second = await asyncio.gather(follow(job), follow(job))
        return first, second

    assert asyncio.run(main()) == ([1, 2, 3], [1, 2, 3])


def test_a_job_that_has_ended_can_be_awaited() -> None:
    job = Scripted(lambda _job: "complete")
    job.wait()

    async def main() -> Status:
        return (await job).status

    assert asyncio.run(main()) == "complete"


def test_watching_without_a_notebook_says_what_to_do_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "IPython.display", None)
    job = Scripted(lambda _job: "complete")
    with pytest.raises(UsageError, match="iterate"):
        job.watch()
