"""`farline trust`, and the arguments of `farline serve`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from farline.cli import group
from farline.cli.serve import event_line
from farline.tools.reachable import reachable_address

KEY = "sha256-" + "A" * 43
TICKET = f"farline://far.example:5470/v1.abc.def?key={KEY}"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def test_a_ticket_is_remembered_listed_without_its_secret_and_forgotten(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert group.run(["trust", TICKET]) == 0
    assert group.run(["trust", "--list"]) == 0
    told = capsys.readouterr().out
    assert f"far.example:5470  key {KEY}, with a ticket" in told
    assert "abc" not in told
    assert group.run(["trust", "--forget", "far.example", "--json"]) == 0
    assert "far.example:5470" in json.loads(capsys.readouterr().out)["servers"]
    assert group.run(["trust", "--forget", "far.example"]) == 1
    assert "is not known" in capsys.readouterr().err


def test_what_is_no_ticket_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert group.run(["trust", "far.example"]) == 1
    assert "is not a ticket" in capsys.readouterr().err


def test_a_ticket_without_a_key_is_refused_and_the_pinned_key_stays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert group.run(["trust", TICKET]) == 0
    assert group.run(["trust", "farline://far.example:5470/garbage"]) == 1
    error = capsys.readouterr().err
    assert "contains no server key" in error and error.count("\n") == 1
    assert group.run(["trust", "--list"]) == 0
    assert f"key {KEY}, with a ticket" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["1", "9-1", "0-5", "a-b", "1-99999"])
def test_data_ports_are_two_ports(
    text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert group.run(["serve", "--data-ports", text, "--state-dir", str(tmp_path)]) == 1
    assert "is not FIRST-LAST" in capsys.readouterr().err


def test_events_are_lines_with_the_time_of_day() -> None:
    at = {"at": "2026-11-21T20:00:01.000000Z", "peer": "10.0.0.9:4"}
    begun = {
        "ticket": None,
        "transport": "tcp",
        "direction": "forward",
        "streams": 4,
        "notes": ["n"],
    }
    assert event_line("session_started", at | begun) == (
        "20:00:01 10.0.0.9:4 started: tcp forward, 4 streams (anonymous); n"
    )
    ended = {"status": "failed", "session_s": 1.25, "bytes_sent": 0, "bytes_received": 1 << 20}
    assert event_line("session_ended", at | ended | {"error": {"message": "gone"}}) == (
        "20:00:01 10.0.0.9:4 failed after 1.2 s, sent 0 B, received 1.00 MiB: gone"
    )
    assert event_line("refused", at | {"error": {"message": "no right"}}).endswith("no right")
    assert event_line("novel", at).startswith("20:00:01 novel: {")


def test_a_ticket_names_an_address_others_can_reach() -> None:
    assert reachable_address(["0.0.0.0:7"], "far.example") == "far.example:7"
    assert reachable_address(["[::]:7"], "2001:db8::1") == "[2001:db8::1]:7"
    assert reachable_address(["127.0.0.1:7"], None) == "127.0.0.1:7"
