"""Sockets that systemd hands down, what it is told of a server, and what the units allow it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from farline.tools.service_manager import (
    ServiceManager,
    credentials_folder,
    sockets_handed_down,
)

UNITS = Path(__file__).parents[3] / "packaging" / "systemd"


def listener(name: str) -> socket.socket:
    """A service manager's socket that does not wait."""
    one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.bind(name)
    one.setblocking(False)
    return one


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_it_hears_of_the_start_of_life_and_of_the_end(kind: str, tmp_path: Path) -> None:
    name = str(tmp_path / "notify") if kind == "path" else f"@farline-{os.getpid()}"
    now_s = 100.0
    with listener(name.replace("@", "\0")) as heard:
        wanted = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "30000000"}
        manager = ServiceManager(wanted, lambda: now_s)
        manager.ready("listening on [::]:5470")
        assert heard.recv(100) == b"READY=1\nSTATUS=listening on [::]:5470"
        manager.alive()
        with pytest.raises(BlockingIOError):
            heard.recv(100)
        now_s += 15
        manager.alive()
        assert heard.recv(100) == b"WATCHDOG=1"
        manager.stopping()
        assert heard.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"NOTIFY_SOCKET": "/nosuch/socket"},
        {"NOTIFY_SOCKET": "", "WATCHDOG_USEC": "1"},
        {"WATCHDOG_USEC": "none", "NOTIFY_SOCKET": "/nosuch/socket"},
    ],
)
def test_nobody_who_listens_is_no_trouble(environment: dict[str, str]) -> None:
    now_s = 0.0
    manager = ServiceManager(environment, lambda: now_s)
    now_s = 1e6
    manager.ready("listening")
    manager.alive()
    manager.stopping()


def test_the_watchdog_of_another_process_is_not_served(tmp_path: Path) -> None:
    now_s = 0.0
    with listener(str(tmp_path / "notify")) as heard:
        environment = {
            "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1",
        }  # fmt: skip
        manager = ServiceManager(environment, lambda: now_s)
        now_s = 1e6
        manager.alive()
        with pytest.raises(BlockingIOError):
            heard.recv(100)


def test_sockets_are_taken_once_by_the_process_that_they_are_meant_for() -> None:
    ours = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a:b", "HOME": "/"}
    assert list(sockets_handed_down(ours)) == [3, 4]
    assert ours == {"HOME": "/"}
    assert not sockets_handed_down(ours)


@pytest.mark.parametrize("count", ["", "-1", "\u00b2", "1x"])
def test_what_is_no_number_of_sockets_is_none(count: str) -> None:
    assert not sockets_handed_down({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": count})


@pytest.mark.parametrize("pid", ["1", ""])
def test_sockets_of_others_are_left_alone(pid: str) -> None:
    assert not sockets_handed_down({"LISTEN_PID": pid, "LISTEN_FDS": "1"})


def test_secrets_are_taken_from_the_folder_that_has_them_all(tmp_path: Path) -> None:
    names, there = ("server.pem", "ticket.key"), {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert credentials_folder(names, {}) is None
    (tmp_path / names[0]).touch()
    assert credentials_folder(names, there) is None
    (tmp_path / names[1]).touch()
    assert credentials_folder(names, there) == tmp_path


def test_the_socket_unit_is_valid(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: install systemd")
    # The program that a unit starts has to be there for it to be valid.
    for name in ("farline-serve.socket", "farline-serve.service"):
        text = (UNITS / name).read_text().replace("/usr/bin/farline", "/bin/true")
        (tmp_path / name).write_text(text)
    words = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "farline-serve.socket")]
    said = subprocess.run(words, capture_output=True, text=True)
    ours = [line for line in said.stderr.splitlines() if "farline-serve" in line]
    assert (said.returncode, ours) == (0, []), said.stderr


@pytest.mark.parametrize("name", ["farline-serve.service", "farline-portal.service"])
def test_the_units_are_valid_and_confine(name: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: install systemd")
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(UNITS / name)]
    said = subprocess.run(words, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout[-200:] + said.stderr
    assert "Unknown" not in said.stderr and "ignoring" not in said.stderr, said.stderr
