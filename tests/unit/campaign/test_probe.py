"""A run driven from Python: followed, stopped, asked again, failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from farline.campaign import probe
from farline.campaign.probe import ProbeJob
from farline.campaign.settings import sampled_spec
from farline.errors import BusyError, InterruptedRun, UnreachableError
from farline.spec._types import RunRecord, RunSpec
from farline.store.entry import RunBundle
from farline.tools import RunResult, Stop, StopQuestion
from farline.tools.events import Event, RetryScheduled, Stage, Stopping, StreamSamples
from farline.tools.native import NativeTool
from tests.support.runs import CLIENT, SENDER, columns, int_columns, run_record, steady_rows

if TYPE_CHECKING:
    from farline.tools.events import Steps

BUSY = {"kind": "busy", "message": "full", "retry_after_s": 2.0}


class Played(NativeTool):
    """Plays records one after the other; one that is no record is a failure to begin."""

    def __init__(self, *records: RunRecord | UnreachableError) -> None:
        self.records = list(records)
        self.stops: list[Stop] = []

    def steps(self, _target: str, spec: RunSpec, should_stop: StopQuestion) -> Steps[RunResult]:
        rows = columns(steady_rows([1e9] * 10, end=CLIENT, role=SENDER))
        yield Stage("HANDSHAKE")
        yield None
        yield StreamSamples(int_columns(rows))
        self.stops.append(should_stop())
        record = self.records.pop(0)
        if isinstance(record, UnreachableError):
            raise record
        return RunResult({**record, "spec": spec}, rows)


class Kept:
    """A store that only remembers."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def append(self, run: RunBundle) -> None:
        self.records.append(run.record)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone_on(_wait_s: float, _should_stop: StopQuestion) -> Steps[bool]:
        yield None
        return True

    monkeypatch.setattr(probe, "pause", gone_on)


def job(tool: Played, store: Kept | None = None, **settings: Any) -> ProbeJob:
    return ProbeJob("far.example", sampled_spec({"streams": 1}), store, tool=tool, **settings)


def kinds(events: list[Event]) -> list[type]:
    return [type(event) for event in events]


def test_events_come_by_type_and_the_result_is_judged_and_kept() -> None:
    store = Kept()
    made = job(Played(run_record()), store)
    assert kinds(list(made)) == [Stage, StreamSamples]
    measured = made.wait().checked()
    assert measured.record["summary"] is not None and measured.record["verdict"] is not None
    assert store.records == [measured.record] and made.wait().exit_code == 0


def test_a_server_that_is_busy_for_a_moment_is_asked_again() -> None:
    busy = run_record(status="failed", streams=[], error=BUSY)
    told = list(made := job(Played(busy, busy, run_record())))
    waits = [event for event in told if isinstance(event, RetryScheduled)]
    assert [event.wait_s for event in waits] == [2.0, 2.0]
    assert made.wait().error is None
    with pytest.raises(BusyError):
        job(Played(busy), busy_tries=0).wait().checked()


def test_a_run_that_does_not_come_about_is_the_error_of_its_kind() -> None:
    result = job(Played(UnreachableError("far.example: no route"))).wait()
    assert result.measured is None and result.exit_code == 5
    with pytest.raises(UnreachableError, match="no route"):
        result.checked()


def test_a_run_that_is_cancelled_is_told_so_and_keeps_what_it_measured() -> None:
    tool = Played(run_record(status="partial"))
    made = job(tool)
    told = [next(made)]
    made.cancel()
    told += made
    assert kinds(told) == [Stage, Stopping, StreamSamples]
    assert tool.stops == [Stop.GRACEFULLY]
    result = made.wait()
    assert result.measured is not None and isinstance(result.error, InterruptedRun)


def test_a_question_whether_to_stop_counts_as_well() -> None:
    tool = Played(run_record())
    assert Stopping() in list(job(tool, should_stop=lambda: Stop.GRACEFULLY))
    assert tool.stops == [Stop.GRACEFULLY]
