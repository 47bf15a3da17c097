"""`farline ticket`: tickets are made, listed, shown and revoked without the server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from farline.cli.group import run


def made(capsys: pytest.CaptureFixture[str], state: Path, *words: str) -> str:
    assert run(["ticket", *words, "--state-dir", str(state)]) == 0
    return capsys.readouterr().out.strip()


def listed(capsys: pytest.CaptureFixture[str], state: Path) -> list[dict[str, object]]:
    assert run(["ticket", "list", "--json", "--state-dir", str(state)]) == 0
    tickets: list[dict[str, object]] = json.loads(capsys.readouterr().out)["tickets"]
    return tickets


def test_a_ticket_is_listed_with_what_it_allows_and_without_its_signature(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = ("--limit-rate", "1Gbit", "--limit-time", "30s", "--limit-sessions", "2")
    ticket = made(capsys, tmp_path, "make", "far.example", "--lifetime", "8h", *limits)
    assert run(["ticket", "list", "--state-dir", str(tmp_path)]) == 0
    line = capsys.readouterr().out
    assert "valid for 8 hours  far.example:5470  measure; at most 1Gbit/s" in line
    assert "at most 30s per session, at most 2 sessions" in line
    assert ticket.partition("?")[0].rpartition(".")[2] not in line


@pytest.mark.parametrize(
    "words", [("serve", "--ticket-lifetime"), ("ticket", "make", "far.example", "--lifetime")]
)
@pytest.mark.parametrize("time", ["0s", "4000d"])
def test_a_lifetime_that_no_ticket_can_have_is_refused_by_its_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], time: str
) -> None:
    assert run([*words, time, "--state-dir", str(tmp_path)]) == 1
    said = f"farline: {words[-1]}: {time} is out of range; allowed: 1s to 3650d "
    assert capsys.readouterr().err.startswith(said)
    assert not list(tmp_path.iterdir())


def test_a_host_without_a_command_makes_a_ticket_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made(capsys, tmp_path, "far.example").startswith("farline://far.example:5470/v1.")
    assert made(capsys, tmp_path, "-p", "7", "far.example").startswith("farline://far.example:7/")
    assert len(listed(capsys, tmp_path)) == 2


def test_a_ticket_is_shown_by_its_text_or_a_part_of_its_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ticket = made(capsys, tmp_path, "make", "far.example", "--read", str(tmp_path))
    name = str(listed(capsys, tmp_path)[0]["claims"]["id"])  # type: ignore[index]
    # The line of a ticket for files, as a server prints it, ends in a path.
    for named in (ticket, f"{ticket}#.", name, name[-8:].lower()):
        assert run(["ticket", "show", named, "--state-dir", str(tmp_path)]) == 0
        text = capsys.readouterr().out
        assert f"allows   read files below {tmp_path}" in text
        assert "limits   none" in text and "state    valid for 24 hours" in text
    elsewhere = str(tmp_path / "none")
    assert run(["ticket", "show", ticket, "--state-dir", elsewhere]) == 0
    assert "only the server that made it can tell" in capsys.readouterr().out
    assert not Path(elsewhere).exists()


def test_a_revoked_ticket_is_listed_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ticket = made(capsys, tmp_path, "make", "one.example")
    made(capsys, tmp_path, "make", "two.example")
    assert run(["ticket", "revoke", ticket, "--state-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("revoked ")
    assert [one["revoked"] for one in listed(capsys, tmp_path)] == [True, False]
    assert run(["ticket", "revoke", "--all", "--state-dir", str(tmp_path)]) == 0
    capsys.readouterr()
    assert [one["revoked"] for one in listed(capsys, tmp_path)] == [True, True]
    assert run(["ticket", "show", ticket, "--state-dir", str(tmp_path)]) == 0
    assert "state    revoked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "ABC"], "no such ticket"),
        (["show", "farline://far.example:5470"], "this is no ticket"),
        (["revoke"], "give TICKET or --all"),
        (["revoke", "--all", "ABC"], "give TICKET or --all"),
        (["make"], "HOST"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = [] if words == ["make"] else ["--state-dir", str(tmp_path)]
    assert run(["ticket", *words, *state]) == 1
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_ticket_of_another_server_is_not_revoked_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    made(capsys, mine, "make", "far.example")
    stranger = made(capsys, other, "make", "other.example")
    assert run(["ticket", "revoke", stranger, "--state-dir", str(mine)]) == 1
    error = capsys.readouterr().err
    assert "not a ticket of this server" in error and "revoke it on other.example:5470" in error
