"""A copy driven from Python: followed, stopped, asked, failed, without a command line."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from farline.copying import CopyJob, CopyRequest, session, stream_choice
from farline.copying.retry import RepeatedSessions
from farline.errors import (
    AuthError,
    InterruptedRun,
    SystemFailure,
    UnreachableError,
    UsageError,
)
from farline.store import Store
from farline.tools import Stop
from farline.tools.events import (
    DeletionPlanned,
    Event,
    FileSettled,
    Notice,
    NoticeKind,
    Progress,
    RetryScheduled,
    SessionBegun,
    SessionEnded,
    Stage,
    Stopping,
)
from tests.support.copies import (
    PlayedEngine,
    copy_record,
    copy_report,
    failed_lines,
    progress,
    tally,
)

TICKET = f"farline://far.example:5470/v1.YQ.Yg?key=sha256-{'A' * 43}"
CUT = {"kind": "unreachable", "message": "far.example:5470: connection reset"}
LINE = {"path": "d/a", "kind": "file", "status": "copied", "bytes": 3}
Job = Callable[..., CopyJob]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[PlayedEngine]:
    played = PlayedEngine()
    monkeypatch.setattr(session, "RunFollower", played)
    contact = SimpleNamespace(rtt_s=0.1, address="192.0.2.77")
    monkeypatch.setattr(stream_choice, "first_contact", lambda *_: contact)
    for name in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    yield played
    assert not played.sessions, "a session was never begun"
    assert not list((tmp_path / "tmp").iterdir()), "something is left"


@pytest.fixture
def job(engine: PlayedEngine) -> Job:
    def make(**settings: Any) -> CopyJob:
        return CopyJob(CopyRequest.between("a", f"{TICKET}#x", **{"keep": False, **settings}))

    return make


def kinds(events: list[Event]) -> list[type]:
    return [type(event) for event in events]


def test_events_come_by_type_and_in_order_and_the_result_last(
    engine: PlayedEngine, job: Job
) -> None:
    engine.play(copy_record(), Stage("HANDSHAKE"), LINE, progress(), {**LINE, "path": "d/b"})
    made = job(tell_files=True)
    assert made.result is None
    told = list(made)
    assert kinds(told) == [
        Notice, SessionBegun, Stage, FileSettled, Progress, FileSettled, SessionEnded,
    ]  # fmt: skip
    assert isinstance(told[0], Notice) and told[0].kind is NoticeKind.CHOICE
    result = made.wait()
    assert result is made.result and result.checked() is result
    assert result.record is not None and result.record["summary"] is not None
    assert (result.exit_code, result.error, result.kept_run) == (0, None, None)


def test_waiting_alone_drives_it_and_keeps_run_and_receipt(
    engine: PlayedEngine, job: Job, tmp_path: Path
) -> None:
    engine.play(copy_record(), LINE)
    result = job(keep=True, store_path=tmp_path / "store", receipt=str(tmp_path / "r")).wait()
    rows = Store(tmp_path / "store", create=False).find(None)
    assert [row["run_id"] for row in rows] == [result.kept_run]
    assert result.receipt == str(tmp_path / "r") and '"d/a"' in (tmp_path / "r").read_text()


def test_the_time_that_its_caller_had_taken_counts(engine: PlayedEngine, job: Job) -> None:
    engine.play(copy_record())
    record: Any = job(spent_s=1000.0).wait().record
    assert 1000e6 <= record["copy"]["command_us"] < 1100e6


def test_a_failure_to_begin_is_the_error_of_its_kind(engine: PlayedEngine, job: Job) -> None:
    engine.play({"kind": "auth", "message": "far.example: no ticket"})
    made = job()
    assert kinds(list(made)) == [Notice]
    result = made.wait()
    assert result.record is None and isinstance(result.error, AuthError)
    assert result.exit_code == 4
    with pytest.raises(AuthError, match="no ticket"):
        result.checked()


def test_a_cut_is_begun_again_after_a_pause_that_is_told(
    engine: PlayedEngine, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RepeatedSessions, "_pause", lambda *_: iter_of(True))
    engine.play(copy_record(status="failed", error=CUT), progress(moved_bytes=5))
    engine.play(copy_record())
    told = list(made := job())
    (retry,) = [event for event in told if isinstance(event, RetryScheduled)]
    assert isinstance(retry.error, UnreachableError) and retry.wait_s == 1.0
    assert made.wait().checked().exit_code == 0


def iter_of(value: bool) -> Any:
    yield None
    return value


def test_names_that_failed_are_no_error_of_the_copy(engine: PlayedEngine, job: Job) -> None:
    engine.play(copy_record(copy_report(**failed_lines(2))))
    result = job().wait()
    assert (result.checked().error, result.exit_code) == (None, 23)


def test_another_thread_ends_it_in_good_order(engine: PlayedEngine, job: Job) -> None:
    engine.play(copy_record(), *(progress(n / 10) for n in range(100_000)))
    made = job()
    begun = threading.Event()

    def cancel() -> None:
        begun.wait()
        made.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    told: list[Event] = []
    for event in made:
        told.append(event)
        if isinstance(event, Progress) and not begun.is_set():
            begun.set()
            thread.join()
    assert kinds(told).count(Stopping) == 1
    result = made.wait()
    assert isinstance(result.error, InterruptedRun) and result.exit_code == 130
    assert result.record is not None and result.record["status"] == "partial"


def test_a_pause_before_the_next_attempt_can_be_ended(engine: PlayedEngine, job: Job) -> None:
    engine.play(copy_record(status="failed", error=CUT), progress(moved_bytes=5))
    made = job()
    for event in made:
        if isinstance(event, RetryScheduled):
            made.cancel()
    assert made.stop_wanted is Stop.GRACEFULLY
    assert isinstance(made.wait().error, UnreachableError)


def test_whoever_leaves_it_while_it_goes_on_has_ended_it(engine: PlayedEngine, job: Job) -> None:
    engine.play(copy_record(), progress())
    with job() as made:
        assert isinstance(next(made), Notice)
        assert isinstance(next(made), SessionBegun)
    assert isinstance(made.wait().error, InterruptedRun)


@pytest.mark.parametrize("answer", [True, False])
def test_a_deletion_is_asked_for_with_the_count_of_a_dry_run(
    engine: PlayedEngine, job: Job, answer: bool
) -> None:
    engine.play(copy_record(copy_report(deleted=tally(17))))
    if answer:
        engine.play(copy_record())
    made = job(confirm_deletion=True)
    for event in made:
        if event == DeletionPlanned(17) and answer:
            made.confirm_deletion()
    copies: list[Mapping[str, Any]] = [spec["copy"] for _, spec in engine.asked]
    assert (copies[0]["dry_run"], copies[0]["delete"]) == (True, 0)
    assert [copy["delete"] for copy in copies[1:]] == ([17] if answer else [])
    assert made.wait().error is None if answer else isinstance(made.wait().error, UsageError)


def test_a_store_that_fails_is_told_of_and_costs_no_copy(
    engine: PlayedEngine, job: Job, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    engine.play(copy_record())
    made = job(keep=True, store_path=tmp_path / "file")
    notices = [event for event in made if isinstance(event, Notice)]
    assert [notice.kind for notice in notices] == [NoticeKind.CHOICE, NoticeKind.NOT_KEPT]
    assert made.wait().checked().kept_run is None


def test_no_room_for_a_receipt_is_an_error_of_this_machine(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/no/such/folder")
    result = job(tell_files=True).wait()
    assert isinstance(result.error, SystemFailure) and result.record is None


def test_the_room_needs_no_command_line_and_nothing_heavy() -> None:
    heavy = ("click", "rich", "numpy", "pyarrow", "duckdb", "farline.store", "farline.tools.ssh")
    code = f"import sys, farline.copying; print([n for n in {heavy!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_copy_with_a_budget_of_harm_begins_slowly_and_looks_often(
    engine: PlayedEngine, job: Job
) -> None:
    engine.play(copy_record(), progress())
    assert job(max_harm=0.2).wait().exit_code == 0
    (_, spec) = engine.asked[0]
    assert (spec["copy"]["total_rate_bps"], spec["interval_s"]) == (10_000_000, 0.2)
