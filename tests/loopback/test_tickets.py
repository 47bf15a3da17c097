"""Tickets of a running `farline serve`: one that is revoked is refused, the others are not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.loopback.conftest import Start
from tests.support.serving import Serving, farline, serving

REVOKED = 4


def make(folder: Path, server: Serving, *options: str) -> str:
    """A ticket for that server, made beside it; one for files names their folder itself."""
    port = server.address.rpartition(":")[2]
    done = ticket(folder, "make", "127.0.0.1", "-p", port, *options)
    return done.stdout.strip() + ("#." if options else "")


def ticket(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What `farline ticket` does in the state folder of the server."""
    done = farline(folder, "ticket", *words, "--state-dir", str(folder / "state"))
    assert done.returncode == 0, done.stderr
    return done


def id_of(folder: Path, text: str) -> str:
    """By which the list of tickets names this one."""
    shown = json.loads(ticket(folder, "show", text, "--json").stdout)
    return str(shown["ticket"]["claims"]["id"])


def probe(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """A short measurement with a ticket."""
    return farline(folder, "probe", text, "-t", "0.2", "--no-store")


def is_refused(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether the ticket was refused, in one line."""
    return done.returncode == REVOKED and "revoked" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("named", ["the whole line", "the id"])
def test_a_revoked_ticket_is_refused_at_its_next_use_and_another_is_not(
    tmp_path: Path, named: str
) -> None:
    with serving(tmp_path) as server:
        first, second = make(tmp_path, server), make(tmp_path, server)
        assert [probe(tmp_path, one).returncode for one in (first, second)] == [0, 0]
        by_id = named == "the id"
        ticket(tmp_path, "revoke", id_of(tmp_path, first) if by_id else first)
        done = probe(tmp_path, first)
        assert is_refused(done), done.stderr
        others = [probe(tmp_path, one).returncode for one in (second, server.ticket)]
        assert others == [0, 0]
        assert server.process.poll() is None


def test_all_tickets_are_revoked_but_not_those_made_afterwards(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        first = make(tmp_path, server)
        ticket(tmp_path, "revoke", "--all")
        for revoked in (first, server.ticket):
            done = probe(tmp_path, revoked)
            assert is_refused(done), done.stderr
        assert probe(tmp_path, make(tmp_path, server)).returncode == 0


def test_a_revoked_ticket_for_files_moves_none(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    with serving(tmp_path, "--write", str(root)) as server:
        first, second = (make(tmp_path, server, "--write", str(root)) for _ in range(2))
        assert farline(tmp_path, "copy", str(tmp_path / "a"), first).returncode == 0
        ticket(tmp_path, "revoke", first.removesuffix("#."))
        done = farline(tmp_path, "copy", str(tmp_path / "b"), first)
        assert is_refused(done), done.stderr
        assert farline(tmp_path, "copy", str(tmp_path / "c"), second).returncode == 0
    assert (root / "a").read_text() == "a" and (root / "c").read_text() == "c"
    assert not (root / "b").exists()


def test_a_session_that_has_begun_goes_on(tmp_path: Path, start: Start) -> None:
    with serving(tmp_path) as server:
        text = make(tmp_path, server)
        client = start(tmp_path, "probe", text, "-t", "5", "--no-store", "--json")
        assert server.process.stdout is not None
        events = map(json.loads, server.process.stdout)
        assert any(event["event"] == "session_started" for event in events)
        ticket(tmp_path, "revoke", text)
        out, err = client.communicate(timeout=60)
        assert (client.returncode, json.loads(out)["status"]) == (0, "complete"), err
        assert is_refused(probe(tmp_path, text))
