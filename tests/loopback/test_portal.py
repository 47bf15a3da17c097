"""The service as a process: copies that outlive it, and what it tells to whom."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farline.portal.start import Address, listening
from tests.support.portals import Process, portal_command, portal_process
from tests.support.serving import environment, serving

LONG = os.environ.get("FARLINE_LONG") == "1"
KILLS = 50 if LONG else 3
FILES, FILE_BYTES = 6, 400_000
SLOW_BPS = 8_000_000
"""Holds a copy of these files for about two seconds."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files to copy, and the endpoints of a service."""
    made = tmp_path_factory.mktemp("portal")
    (made / "src").mkdir()
    (made / "dst").mkdir()
    for number in range(FILES):
        (made / "src" / f"{number}.bin").write_bytes(random.Random(number).randbytes(FILE_BYTES))
    for name in ("src", "dst"):
        portal_command(made, "endpoint", "add", name, str(made / name))
    return made


@pytest.fixture(scope="module")
def portal(folder: Path) -> Iterator[Process]:
    """One service for all."""
    with portal_process(folder) as made:
        yield made


def wish(path: str, rate_bps: int | None = None) -> dict[str, Any]:
    """A copy of all files into a folder."""
    options = {} if rate_bps is None else {"total_rate_bps": rate_bps}
    destination = {"endpoint": "dst", "path": path}
    return {"source": {"endpoint": "src"}, "destination": destination, "options": options}


def begin(portal: Process, path: str, rate_bps: int | None = None) -> str:
    """Begins it; its address."""
    return f"/v1/transfers/{portal.ask('/v1/transfers', wish(path, rate_bps))['id']}"


def is_whole(folder: Path, path: str) -> bool:
    """Whether all files have arrived as they are."""
    return all(
        (folder / "dst" / path / f"{n}.bin").read_bytes()
        == (folder / "src" / f"{n}.bin").read_bytes()
        for n in range(FILES)
    )


def names(portal: Process, where: str, name: str) -> list[dict[str, Any]]:
    """Data of the events of one name."""
    found = portal.events(where.rpartition("/")[2])
    return [event["data"] for event in found if event["event"] == name]


def test_files_arrive_with_a_receipt_and_a_run(portal: Process, folder: Path) -> None:
    where = begin(portal, "plain")
    found = portal.until(where, "succeeded", "failed")
    assert found["error"] is None and is_whole(folder, "plain")
    assert found["report"]["copied"] == {"files": FILES, "bytes": FILES * FILE_BYTES}
    lines = [json.loads(line) for line in portal.ask(f"{where}/receipt").splitlines()]
    assert {line["path"] for line in lines if line["kind"] == "file"} == {
        f"{n}.bin" for n in range(FILES)
    }
    assert portal.ask(f"/v1/runs/{found['run']}")["copy"]["copied"]["files"] == FILES
    events = portal.ask(f"{where}/events")
    assert "event: progress" in events and events.endswith("event: close\ndata: {}\n\n")


def test_a_rotation_of_logs_that_it_does_not_have_leaves_it_as_it_was(portal: Process) -> None:
    assert portal.process is not None
    portal.process.send_signal(signal.SIGUSR1)
    with pytest.raises(subprocess.TimeoutExpired):
        portal.process.wait(0.5)
    assert isinstance(portal.ask("/v1/transfers"), list)


def test_a_running_copy_is_adjusted_paused_and_resumed(portal: Process, folder: Path) -> None:
    where = begin(portal, "paused", 200_000)
    assert adjusted(portal, where, 300_000)["after"] == 300_000
    portal.ask(f"{where}/pause", {})
    found = portal.until(where, "paused")
    assert found["error"] is None and not is_partly_there(folder, "paused")
    assert found["options"]["total_rate_bps"] == 300_000, "it holds after the pause too"
    portal.ask(f"{where}/resume", {})
    adjusted(portal, where, 0)
    found = portal.until(where, "succeeded", "failed")
    assert (found["state"], found["attempt"]) == ("succeeded", 2)
    assert is_whole(folder, "paused")


def adjusted(portal: Process, where: str, rate_bps: int) -> dict[str, Any]:
    """What came of another rate, once the copy runs."""
    deadline_s = time.monotonic() + 60
    while True:
        try:
            (change,) = portal.ask(f"{where}/adjust", {"rate_bps": rate_bps})
        except urllib.error.HTTPError:
            assert time.monotonic() < deadline_s
            time.sleep(0.2)
            continue
        found: dict[str, Any] = change
        return found


def is_partly_there(folder: Path, path: str) -> bool:
    """Whether a file stands under its name without being whole."""
    found = (folder / "dst" / path).glob("*.bin")
    return any(one.stat().st_size != FILE_BYTES for one in found)


def test_a_cancelled_copy_stops(portal: Process, folder: Path) -> None:
    where = begin(portal, "cancelled", SLOW_BPS // 8)
    portal.until(where, "running")
    portal.ask(f"{where}/cancel", {})
    portal.until(where, "cancelled")
    time.sleep(0.5)
    assert not is_partly_there(folder, "cancelled")


def test_a_copy_whose_process_is_killed_goes_on(portal: Process, folder: Path) -> None:
    where = begin(portal, "killed", SLOW_BPS)
    portal.until(where, "running")
    name, killed = where.rpartition("/")[2], 0
    deadline_s = time.monotonic() + 30
    while not killed and time.monotonic() < deadline_s:
        killed = _kill_keeper(folder, name) if names(portal, where, "session") else 0
        time.sleep(0.05)
    assert killed == 1
    assert portal.until(where, "succeeded", "failed")["state"] == "succeeded"
    assert is_whole(folder, "killed") and len(names(portal, where, "start")) == 2


def _kill_keeper(folder: Path, name: str) -> int:
    """Ends the processes that work on a transfer; how many there were."""
    killed = 0
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
        except (OSError, UnicodeDecodeError):
            continue
        if "farline.portal.keeper" in words and str(folder) in str(words) and name in str(words):
            os.kill(int(entry.name), signal.SIGKILL)
            killed += 1
    return killed


@pytest.mark.timeout(1800 if LONG else 400)
def test_killed_at_any_moment_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path) -> None:
    sites = tmp_path / "sites.toml"
    sites.write_text(
        'capacity_bps = 10e9\n[sites.A]\n[sites.B]\n[connections."A - B"]\nrtt_ms = 10\n'
    )
    (tmp_path / "src").mkdir()
    (tmp_path / "dst").mkdir()
    for number in range(FILES):
        content = random.Random(number).randbytes(FILE_BYTES)
        (tmp_path / "src" / f"{number}.bin").write_bytes(content)
    for name in ("src", "dst"):
        portal_command(tmp_path, "endpoint", "add", name, str(tmp_path / name))
    draw = random.Random(None if LONG else 5)
    asked: dict[str, str] = {}
    with portal_process(tmp_path, "--sites", str(sites), "--parallel", "8") as portal:
        for round_ in range(KILLS):
            path = f"round{round_}"
            body = wish(path, SLOW_BPS)
            asked[path] = portal.ask("/v1/transfers", body, Idempotency_Key=path)["id"]
            held = portal.ask("/v1/reservations", reservation(round_))
            time.sleep(draw.uniform(0, 1.5))
            portal.stop()
            portal.start()
            again = portal.ask("/v1/transfers", body, Idempotency_Key=path)["id"]
            assert again == asked[path], "asked for once"
            assert portal.ask(f"/v1/reservations/{held['id']}")["phase"] == "held"
        for path, name in asked.items():
            found = portal.until(f"/v1/transfers/{name}", "succeeded", "failed")
            assert found["state"] == "succeeded" and is_whole(tmp_path, path)
            kinds = [event["event"] for event in portal.events(name)]
            assert kinds.count("start") == kinds.count("end") == 1, "no copy ran twice"
        assert len(portal.ask("/v1/transfers?limit=1000")) == KILLS
        assert len(portal.ask("/v1/reservations")) == KILLS


def reservation(number: int) -> dict[str, Any]:
    """An hour of a day of its own."""
    day = time.time() + 86_400 * (1 + number)
    start, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for at in (day, day + 3600))
    return {"source": "A", "destination": "B", "rate_bps": 10**9, "start": start, "end": end}


def test_a_ticket_and_a_token_are_nowhere_but_in_files_of_the_owner(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.bin").write_bytes(b"x" * 1000)
    (tmp_path / "served").mkdir()
    portal_command(tmp_path, "endpoint", "add", "src", str(tmp_path / "src"))
    with serving(tmp_path, "--write", str(tmp_path / "served")) as server:
        ticket = server.tickets["write"]
        secret = max(re.split(r"[/?=&#]", ticket.removeprefix("farline://")), key=len)
        portal_command(tmp_path, "endpoint", "add", "server", f"{ticket}#in")
        assert secret not in portal_command(tmp_path, "endpoint", "list", "--json")
        with portal_process(tmp_path) as portal:
            body = {"source": {"endpoint": "src"}, "destination": {"endpoint": "server"}}
            where = f"/v1/transfers/{portal.ask('/v1/transfers', body)['id']}"
            found = portal.until(where, "succeeded", "failed")
            assert found["state"] == "succeeded", found
            assert (tmp_path / "served" / "in" / "a.bin").read_bytes() == b"x" * 1000
            shown = [portal.ask(path) for path in (where, f"{where}/events", "/v1/endpoints",
                                                   "/v1/audit", "/v1/metrics")]  # fmt: skip
            once = portal.login.partition("#")[2]
            portal.stop(signal.SIGTERM)
        state = tmp_path / "home-state" / "farline" / "portal"
        kept = "".join(p.read_text() for p in state.rglob("*") if p.suffix in (".json", ".jsonl"))
        for text in (*map(str, shown), portal.log.read_text(), kept):
            assert secret not in text and portal.token not in text and once not in text
        assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_it_says_what_is_wrong_and_how_to_help(tmp_path: Path) -> None:
    def fails(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "farline", "portal", *words], env=environment(tmp_path),
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stderr

    with portal_process(tmp_path) as portal:
        address = portal.url.removeprefix("http://")
        code, text = fails("-B", address)
    assert code == 2 and f"cannot listen on {address}" in text and "--listen" in text
    assert fails("token", "--revoke", "nothing")[0] == 4
    code, text = fails("endpoint", "add", "x", "/no/such/folder")
    assert code == 1 and "no such folder" in text
    assert fails("-B", ":0", "--unix", "/tmp/x")[0] == 1


def test_no_answer_waits_for_the_receipt_of_its_head() -> None:
    with listening(Address(port=0)) as listener:
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_service_that_is_told_to_stop_does(tmp_path: Path) -> None:
    with portal_process(tmp_path) as portal:
        assert portal.process is not None
        process = portal.process
        portal.stop(signal.SIGTERM)
        assert process.returncode == 0
