"""`farline serve` as the service of the Debian package, under a systemd that runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.booted import Booted, boot, needs_namespaces, shut_down
from tests.interop.clean_root import HOME, devices, reach_sources

pytestmark = [pytest.mark.timeout(900), pytest.mark.alone]
UNIT = "farline-serve.service"
SOCKET = "farline-serve.socket"
STATE = "/var/lib/farline"
CLIENTS = Path(__file__).with_name("hostile_clients.py")
DROP_IN = """\
[Service]
Environment="FARLINE_SERVE_OPTIONS=--write /srv/data"
LoadCredential=server.pem:/etc/farline/keys/server.pem
LoadCredential=ticket.key:/etc/farline/keys/ticket.key
ReadWritePaths=/srv/data
# A test does not wait half a minute.
WatchdogSec=3
"""
ADMINISTRATOR = ("--keys", "/etc/farline/keys", "--state-dir", STATE)
BYTES = 200_000_000
GROWN_KB = 32_768
PROVED_BYTES = 500
"""Length of a journal that has more than the names of one file."""


@pytest.fixture(scope="module")
def system(bare: Path, deb: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booted]:
    """Debian with systemd and the package; the server has keys that belong to root."""
    needs_namespaces()
    root = tmp_path_factory.mktemp("booted") / "root"
    subprocess.run(["cp", "-a", "--reflink=auto", bare, root], check=True)
    reach_sources(root)
    devices(root)
    shutil.copy(deb, root / "tmp" / "farline.deb")
    words = ["apt-get", "install", "-qq", "--no-install-recommends", "systemd-sysv", "dbus"]
    subprocess.run(
        ["chroot", root, *words, "/tmp/farline.deb"], check=True, capture_output=True,
        env={**HOME, "DEBIAN_FRONTEND": "noninteractive"}, timeout=600,
    )  # fmt: skip
    group = f"farline-test-{os.getpid()}"
    outer, running = boot(root, group)
    try:
        drop_in = root / "etc/systemd/system" / f"{UNIT}.d"
        drop_in.mkdir(parents=True)
        (drop_in / "test.conf").write_text(DROP_IN)
        (root / "root" / "source").write_bytes(os.urandom(BYTES))
        running.run("install", "-d", "-o", "farline", "/srv/data")
        running.run("install", "-d", "-m", "700", "/etc/farline/keys")
        # Made by root, before there is a server.
        ticket(running)
        running.run("systemctl", "daemon-reload")
        running.run("systemctl", "enable", "--now", SOCKET)
        yield running
    finally:
        shut_down(outer, running, group)


def ticket(system: Booted) -> str:
    """A ticket for files below /srv/data, made by the administrator."""
    made = system.run(
        "farline", "ticket", "make", "127.0.0.1", "--write", "/srv/data",
        *ADMINISTRATOR,
    )  # fmt: skip
    return made.strip()


def wait_for(what: Callable[[], bool], seconds: float = 30.0) -> None:
    """Until `what` holds."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.1)


def main_pid(system: Booted) -> str:
    """Number of the server's process in the system; 0 for none."""
    return system.shown(UNIT, "MainPID")


def resident_kb(system: Booted, pid: str) -> int:
    """Memory that a process of the system holds."""
    status = system.run("cat", f"/proc/{pid}/status")
    return int(status.split("VmRSS:")[1].split()[0])


def copy(system: Booted, name: str, *words: str) -> subprocess.Popen[str]:
    """A copy of the source to the server, under this name."""
    target = f"{ticket(system)}#{name}"
    return system.start("farline", "copy", "/root/source", target, *words)


def copied(system: Booted, name: str) -> None:
    """Copies the source, and finds it there."""
    with copy(system, name) as one:
        said = one.communicate(timeout=60)
    assert one.returncode == 0, said
    assert is_whole(system, name)


def journal_bytes(system: Booted) -> int:
    """What is written down of the copy that is under way: the file, then what of it is proved."""
    journals = list((system.root / "srv/data").glob(".farline-partial/*/journal"))
    return sum(path.stat().st_size for path in journals)


def is_whole(system: Booted, name: str) -> bool:
    """Whether the file arrived as it was."""
    data = system.root / "srv/data" / name
    return data.exists() and data.read_bytes() == (system.root / "root/source").read_bytes()


def test_it_starts_when_the_first_client_comes_and_keeps_within_its_walls(system: Booted) -> None:
    assert main_pid(system) == "0"
    copied(system, "first")
    assert system.shown(UNIT, "User") == "farline"
    assert system.run("stat", "-c", "%U", "/srv/data/first").strip() == "farline"
    # The keys stayed where only root writes; the state has none.
    assert {path.name for path in (system.root / "etc/farline/keys").iterdir()} == {
        "server.pem", "ticket.key",
    }  # fmt: skip
    state = system.run("ls", STATE).split()
    assert "server.pem" not in state
    assert "ticket.key" not in state
    rating = system.run("systemd-analyze", "security", "--threshold=20", "--no-pager", UNIT)
    assert "Overall exposure level" in rating


def test_hostile_clients_leave_it_as_it_was(system: Booted) -> None:
    copied(system, "before")
    pid, restarts = main_pid(system), system.shown(UNIT, "NRestarts")
    grown = []
    for _ in range(2):
        came = system.from_outside(sys.executable, str(CLIENTS), "127.0.0.1", "5470")
        assert came.returncode == 0, came.stdout + came.stderr
        grown.append(resident_kb(system, pid))
    assert (main_pid(system), system.shown(UNIT, "NRestarts")) == (pid, restarts)
    assert grown[1] - grown[0] < GROWN_KB
    said = system.run("journalctl", "-u", UNIT, "-o", "cat", "--no-pager")
    assert "\x1b" not in said
    # One address that is refused again and again is told of in sums.
    assert said.count("refused") < 200
    copied(system, "after")


@pytest.mark.parametrize("harm", ["STOP", "KILL"])
def test_a_server_that_hangs_or_dies_comes_back_and_copies_go_on(system: Booted, harm: str) -> None:
    copied(system, f"before-{harm}")
    pid, restarts = main_pid(system), int(system.shown(UNIT, "NRestarts"))
    slow = "--bwlimit", "40M", "--retry-for", "60s", "--stall-timeout", "2s", "--json"
    with copy(system, harm, *slow) as one:
        wait_for(lambda: journal_bytes(system) > PROVED_BYTES)
        system.run("systemctl", "kill", "--signal", harm, UNIT)
        said = one.communicate(timeout=90)
    assert one.returncode == 0, said
    # What was there when it was struck down did not come again.
    assert json.loads(said[0])["copy"]["resumed_bytes"] > 0
    assert is_whole(system, harm)
    assert int(system.shown(UNIT, "NRestarts")) == restarts + 1
    assert main_pid(system) not in ("0", pid)


def test_what_the_administrator_revokes_is_refused(system: Booted) -> None:
    """Root writes into a folder of the server, which has to read it, now and after a restart."""
    given = ticket(system)
    copied(system, "given")
    system.run("farline", "ticket", "revoke", given, *ADMINISTRATOR)
    for verb, is_another in (("show", False), ("reload", False), ("restart", True)):
        before = main_pid(system), system.shown(UNIT, "NRestarts")
        system.run("systemctl", verb, UNIT)
        # A signal ends a process after `systemctl` has returned.
        time.sleep(0.5)
        after = main_pid(system), system.shown(UNIT, "NRestarts")
        assert (after[0] != before[0]) == is_another
        # One that systemd is asked for begins to count anew.
        assert is_another or after[1] == before[1]
        with system.start("farline", "copy", "/root/source", f"{given}#x") as one:
            _, said = one.communicate(timeout=60)
        assert one.returncode != 0
        assert "revoked" in said
        copied(system, f"after-{verb}")
    owners = system.run("find", STATE, "-printf", "%u\n")
    assert set(owners.split()) == {"farline"}


def test_what_it_may_not_write_is_refused(system: Booted) -> None:
    made = system.run(
        "farline", "ticket", "make", "127.0.0.1", "--write", "/etc",
        *ADMINISTRATOR,
    )  # fmt: skip
    with system.start("farline", "copy", "/root/source", f"{made.strip()}#x") as one:
        _, said = one.communicate(timeout=60)
    assert one.returncode != 0
    assert "Read-only file system" in said or "read-only" in said, said
    assert not (system.root / "etc/x").exists()
