"""Keys and tickets remembered: the file's mode, whole writes, refusals."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from farline.errors import SystemFailure
from farline.tools.known_servers import KnownServer, KnownServers, default_path


@pytest.fixture
def known(tmp_path: Path) -> KnownServers:
    return KnownServers(tmp_path / "farline" / "known_servers.json")


def test_nothing_is_known_at_first(known: KnownServers) -> None:
    assert known.all() == {}
    assert known.get("a:1") == KnownServer()
    assert not known.forget("a:1")


def test_keys_and_tickets_stay_until_forgotten(known: KnownServers) -> None:
    known.remember_key("a:1", "sha256-x")
    known.remember_ticket("b:2", "farline://b:2/t?key=sha256-y", "sha256-y")
    again = KnownServers(known.path)
    assert again.get("a:1") == KnownServer("sha256-x")
    assert again.get("b:2").ticket == "farline://b:2/t?key=sha256-y"
    assert again.forget("a:1")
    assert set(again.all()) == {"b:2"}


def test_a_key_seen_later_keeps_the_ticket(known: KnownServers) -> None:
    known.remember_ticket("b:2", "t", None)
    known.remember_key("b:2", "sha256-y")
    assert known.get("b:2") == KnownServer("sha256-y", "t")


def test_only_the_owner_can_read_it(known: KnownServers) -> None:
    known.remember_key("a:1", "sha256-x")
    assert stat.S_IMODE(known.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(known.path.parent.stat().st_mode) == 0o700
    assert list(known.path.parent.iterdir()) == [known.path]


def test_a_write_that_fails_leaves_what_was_there(
    known: KnownServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    known.remember_key("a:1", "sha256-x")

    def refuse(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(SystemFailure, match="No space left on device"):
        known.remember_key("b:2", "sha256-y")
    assert set(known.all()) == {"a:1"}
    assert list(known.path.parent.iterdir()) == [known.path]


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"schema": 2, "servers": {}}', '{"schema": 1, "servers": {"a": {"x": 1}}}'],
)
def test_a_file_of_another_kind_is_refused_and_kept(known: KnownServers, text: str) -> None:
    known.path.parent.mkdir()
    known.path.write_text(text)
    with pytest.raises(SystemFailure, match="move it away to start with an empty list"):
        known.remember_key("a:1", "sha256-x")
    assert known.path.read_text() == text


def test_the_default_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_path() == tmp_path / "farline" / "known_servers.json"


def test_a_testbed_has_known_servers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/c")
    monkeypatch.setenv("FARLINE_TESTBED_SOCKET", "/run/farline/testbeds/x/control")
    assert default_path() == Path("/run/farline/testbeds/x/known_servers.json")
    monkeypatch.delenv("FARLINE_TESTBED_SOCKET")
    assert default_path() == Path("/c/farline/known_servers.json")
