"""How the other end of a copy is reached."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from farline.copying.connector import LocalConnector, SshConnector
from farline.copying.locations import SshHost
from farline.errors import TimeoutFailure, UnreachableError
from farline.tools import never_stop
from farline.tools.ssh_command import SshCommand
from tests.support.steps import finished


def test_a_server_for_one_copy_signs_with_a_secret_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    connector = LocalConnector()
    first = finished(connector.open(never_stop))
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    connector.close()
    assert first.ticket is not None and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "said"),
    [("127.0.0.1", "a firewall may block"), ("behind.invalid", "ssh finds the host another way")],
)
def test_a_name_that_only_ssh_knows_is_no_matter_of_a_firewall(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = SshConnector(SshHost(name), SshCommand(), "write")
    monkeypatch.setattr(connector, "_server", SimpleNamespace(is_alive=True))
    monkeypatch.setattr(connector, "_name", name)

    def look_up(name: str, _port: None) -> list[str]:
        if name == "behind.invalid":
            raise socket.gaierror
        return [name]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    for error in (UnreachableError("no"), TimeoutFailure("no")):
        advice = connector.advice(error)
        assert "--tunnel" in advice
        # Something that answers too late has an address.
        is_late = isinstance(error, TimeoutFailure)
        assert ("a firewall may block" if is_late else said) in advice
