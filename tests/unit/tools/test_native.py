"""farline's engine as a tool: rights, events, stopping, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farline.errors import BusyError, InternalError, SpecError, UsageError
from farline.spec._types import RunRecord
from farline.tools import RunResult, Stop, events, ignore_event, native, never_stop
from farline.tools.known_servers import KnownServers
from tests.support import fake_native as fake
from tests.support.kept_copies import make_mover_samples
from tests.support.runs import columns, run_record, steady_rows

KEY = "sha256-" + "A" * 43
OTHER = "sha256-" + "E" * 43
TICKET = f"farline://far.example:5470/v1.abc.def?key={KEY}"

Play = Callable[..., tuple[native.NativeTool, fake.FakeExtension]]


@pytest.fixture
def known(tmp_path: Path) -> KnownServers:
    return KnownServers(tmp_path / "known_servers.json")


@pytest.fixture
def play(known: KnownServers, monkeypatch: pytest.MonkeyPatch) -> Play:
    monkeypatch.delenv(native.TICKET_VARIABLE, raising=False)

    def start(*events: fake.Played) -> tuple[native.NativeTool, fake.FakeExtension]:
        extension = fake.FakeExtension(fake.FakeRun(list(events)))
        monkeypatch.setattr("farline._native.start_run", extension.start_run)
        return native.NativeTool(known), extension

    return start


def test_record_and_samples_come_back_whole(play: Play) -> None:
    first, second = (columns(steady_rows([1e9] * 2, end=0, role=0)) for _ in range(2))
    tool, extension = play(
        fake.stage("HANDSHAKE"), None, fake.samples(first), fake.samples(second),
        fake.done(run_record()),
    )  # fmt: skip
    told: list[events.Event] = []
    result = tool.run("far.example", {"streams": 1}, told.append, never_stop)
    assert result.record == run_record()
    assert {name: len(column) for name, column in result.samples.items()} == dict.fromkeys(first, 4)
    kinds = [events.Stage, events.StreamSamples, events.StreamSamples, events.SessionEnded]
    assert [type(event) for event in told] == kinds
    assert told[0] == events.Stage("HANDSHAKE")
    assert extension.spec == {"streams": 1}


def test_samples_of_files_stand_beside_those_of_streams(play: Play) -> None:
    rows = columns(steady_rows([1e9] * 2, end=0, role=0))
    files = make_mover_samples(3)
    mover = ("mover_samples", "null", fake.FakeColumns(files))
    progress = ("progress", json.dumps({"moved_bytes": 1}), None)
    tool, _ = play(mover, fake.samples(rows), progress, mover, fake.done(run_record()))
    told: list[events.Event] = []
    result = tool.run("far.example", {}, told.append, never_stop)
    assert {name: len(column) for name, column in result.samples.items()} == dict.fromkeys(rows, 2)
    assert {name: len(column) for name, column in result.mover.items()} == dict.fromkeys(files, 12)
    assert [type(event) for event in told] == [
        events.FileSamples, events.StreamSamples, events.Progress, events.FileSamples,
        events.SessionEnded,
    ]  # fmt: skip


def test_a_run_without_samples_has_empty_columns(play: Play) -> None:
    tool, _ = play(fake.done(run_record(status="failed")))
    result = tool.run("far.example", {}, ignore_event, never_stop)
    assert all(len(column) == 0 for column in result.samples.values())
    assert "end_us" in result.samples


def test_the_first_key_is_kept_and_then_demanded(play: Play, known: KnownServers) -> None:
    tool, extension = play(fake.server_key(KEY), fake.done(run_record()))
    told: list[events.Event] = []
    tool.run("far.example", {}, told.append, never_stop)
    assert told[0] == events.ServerKey(KEY)
    assert isinstance(told[1], events.Notice)
    assert told[1].kind is events.NoticeKind.FIRST_CONTACT and KEY in told[1].text
    assert "pin" not in extension.target
    assert known.get("far.example:5470").fingerprint == KEY
    tool, extension = play(fake.server_key(KEY), fake.done(run_record()))
    tool.run("far.example", {}, ignore_event, never_stop)
    assert extension.target["pin"] == KEY


def test_a_key_is_never_replaced_by_what_a_server_shows(play: Play, known: KnownServers) -> None:
    known.remember_key("far.example:5470", KEY)
    tool, _ = play(fake.server_key(OTHER), fake.done(run_record()))
    tool.run("far.example", {}, ignore_event, never_stop)
    assert known.get("far.example:5470").fingerprint == KEY


def test_a_refused_key_says_how_to_mend_it(play: Play, known: KnownServers) -> None:
    known.remember_key("far.example:5470", KEY)
    error = {"kind": "auth", "message": "the server's key is not the pinned one"}
    tool, _ = play(fake.server_key(OTHER), fake.done(run_record(status="failed", error=error)))
    result = tool.run("far.example", {}, ignore_event, never_stop)
    assert result.record["error"] is not None
    assert "farline trust --forget far.example:5470" in result.record["error"]["message"]


@pytest.mark.parametrize("where", ["argument", "environment", "memory"])
def test_a_ticket_comes_from_where_it_is_known(
    play: Play, known: KnownServers, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    tool, extension = play(fake.done(run_record()))
    if where == "environment":
        monkeypatch.setenv(native.TICKET_VARIABLE, TICKET)
    elif where == "memory":
        known.remember_ticket("far.example:5470", TICKET, KEY)
    host = TICKET if where == "argument" else "far.example"
    tool.run(host, {}, ignore_event, never_stop)
    assert (extension.target["ticket"], extension.target["pin"]) == ("v1.abc.def", KEY)


def test_a_ticket_for_another_server_stays_here(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(native.TICKET_VARIABLE, TICKET)
    tool, extension = play(fake.done(run_record()))
    tool.run("elsewhere.example", {}, ignore_event, never_stop)
    assert "ticket" not in extension.target


def test_notices_have_their_kind_whatever_they_say(play: Play) -> None:
    notice = ("notice", json.dumps("files are encrypted with care"), None)
    tool, _ = play(notice, fake.stage("PROFILING_START"), notice, fake.done(run_record()))
    told: list[events.Event] = []
    tool.run("far.example", {}, told.append, never_stop)
    kinds = [event.kind for event in told if isinstance(event, events.Notice)]
    assert kinds == [events.NoticeKind.GRANTED, events.NoticeKind.CIPHER]


def test_an_event_that_nobody_knows_is_a_defect(play: Play) -> None:
    tool, extension = play(("surprise", "null", None))
    with pytest.raises(InternalError, match="unknown kind 'surprise'"):
        tool.run("far.example", {}, ignore_event, never_stop)
    assert extension.run.calls == ["abort"]


def test_the_first_wish_stops_and_the_second_aborts(play: Play) -> None:
    partial: RunRecord = run_record(status="partial")
    tool, extension = play(None, None, None, fake.done(partial))
    answers = iter([Stop.GO_ON, Stop.GRACEFULLY, Stop.GRACEFULLY, Stop.NOW])
    result = tool.run("far.example", {}, ignore_event, lambda: next(answers))
    assert extension.run.calls[:2] == ["stop", "abort"]
    assert result.record["status"] == "partial"


def test_a_sink_that_fails_ends_the_run(play: Play) -> None:
    tool, extension = play(fake.stage("HANDSHAKE"))

    def refuse(_event: events.Event) -> None:
        raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        tool.run("far.example", {}, refuse, never_stop)
    assert extension.run.calls == ["abort"]


def test_failures_of_the_extension_are_errors_of_ours(play: Play) -> None:
    with pytest.raises(SpecError, match="allowed: 1 to 256 streams"):
        native.resolve_spec({"streams": 0})
    with pytest.raises(UsageError):
        native.parse_target("")
    with pytest.raises(UsageError, match="allowed: 1 to"):
        native.memory_copy_bps(0, 1.0)


def test_a_failed_record_is_an_error_to_raise() -> None:
    failed = run_record(
        status="failed", error={"kind": "busy", "message": "full", "retry_after_s": 5}
    )
    error = native.error_of(RunResult(failed, {}))
    assert isinstance(error, BusyError) and error.retry_after_s == 5
    stopped = run_record(status="partial", error={"kind": "interrupted", "message": "stopped"})
    assert native.error_of(RunResult(stopped, {})) is None
    assert native.error_of(RunResult(run_record(), {})) is None


def test_specs_go_through_the_validator_of_every_door() -> None:
    spec: Any = native.resolve_spec({"transport": "udp"})
    assert spec["rate_bps"] == 1_000_000
    assert json.loads(json.dumps(spec)) == spec


def test_what_it_can_do_is_said() -> None:
    can = native.NativeTool().capabilities()
    assert can.transports == ("tcp", "udp", "udt", "rbudp", "quic", "null") and can.samples
