"""Copies driven from Python with the real engine."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from farline.copying import CopyJob, CopyRequest
from farline.errors import AuthError, InterruptedRun
from farline.tools.events import Notice, NoticeKind, Progress, SessionEnded
from tests.support.trees import make_tree, shape


def request(*locations: object, **settings: object) -> CopyRequest:
    return CopyRequest.between(*map(str, locations), **{"keep": False, **settings})


def test_a_tree_is_copied_and_its_events_are_typed(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    job = CopyJob(request(f"{tree}/", tmp_path / "copy", spec={"copy": {"recursive": True}}))
    told = list(job)
    result = job.wait().checked()
    assert shape(tmp_path / "copy") == shape(tree)
    assert isinstance(told[-1], SessionEnded) and told[-1].record == result.record
    assert any(isinstance(event, Progress) for event in told)
    notices = [event.kind for event in told if isinstance(event, Notice)]
    assert notices == [NoticeKind.CHOICE, NoticeKind.CIPHER]


def test_another_thread_stops_a_copy_that_goes_on_later(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        for part in range(64):
            file.write(bytes([part]) * (1 << 20))
    slow = {"copy": {"total_rate_bps": 80_000_000}}
    job = CopyJob(request(tmp_path / "large", tmp_path / "copy", spec=slow))
    threading.Timer(1.0, job.cancel).start()
    result = job.wait()
    assert isinstance(result.error, InterruptedRun) and not (tmp_path / "copy").exists()
    again = CopyJob(request(tmp_path / "large", tmp_path / "copy")).wait().checked()
    report = None if again.record is None else again.record["copy"]
    assert report is not None and report["resumed_bytes"] > 0
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "large").read_bytes()


def test_a_server_that_wants_a_ticket_is_an_error_of_its_kind(
    tmp_path: Path, server: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    address = server.ticket.split("/")[2]  # type: ignore[attr-defined]
    (tmp_path / "a").write_text("x")
    result = CopyJob(request(tmp_path / "a", f"farline://{address}#a")).wait()
    assert isinstance(result.error, AuthError)
    with pytest.raises(AuthError):
        result.checked()
