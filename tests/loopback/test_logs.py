"""What the log says of copies that fail, of sessions at a server, and what it never says."""

from __future__ import annotations

import base64
import contextlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support.log_lines import Line, field, read_lines, said
from tests.support.serving import FARLINE, Serving, environment, farline, serving

SECRET = b"the-content-of-a-file-is-nobody's-business "
QUICK = ("--retries", "0", "-q")
SLOW = (*QUICK, "--bwlimit", "500KB/s")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "large").write_bytes(SECRET * 100_000)
    (folder / "small").write_bytes(SECRET)
    return folder


@contextmanager
def logged_server(folder: Path, *arguments: str, level: str = "debug") -> Iterator[Serving]:
    """A server that takes files into `there` and logs to `server.log`."""
    (folder / "there").mkdir(exist_ok=True)
    words = ["--write", str(folder / "there"), "--read", str(folder / "there")]
    log = ["--log-level", level, "--log-format", "json", "--log-file", str(folder / "server.log")]
    with serving(folder, *words, *log, *arguments) as server:
        yield server


def copy(
    folder: Path, *arguments: str, level: str = "debug", prefix: tuple[str, ...] = ()
) -> tuple[subprocess.CompletedProcess[str], list[Line]]:
    """A copy with FARLINE_LOG, and what it logged."""
    log = folder / "client.log"
    words = ["copy", *arguments, "--log-format", "json", "--log-file", str(log)]
    done = subprocess.run(
        [*prefix, *FARLINE, *words], capture_output=True, text=True, check=False, timeout=100,
        env=environment(folder, FARLINE_LOG=level),
    )  # fmt: skip
    return done, read_lines(log)


def session_of(lines: list[Line]) -> str:
    """The one session that the lines speak of."""
    sessions = {line["session"] for line in lines if "session" in line}
    assert len(sessions) == 1
    return str(sessions.pop())


def test_a_copy_that_goes_well_is_told_from_connecting_to_its_end(
    tmp_path: Path, source: Path
) -> None:
    with logged_server(tmp_path) as server:
        done, client = copy(tmp_path, str(source), f"{server.tickets['write']}#.")
        server.stop()
    assert done.returncode == 0, done.stderr
    there = read_lines(tmp_path / "server.log")
    session = session_of(client)
    assert session == session_of(there)
    (connecting,) = said(client, "connected")
    assert field(connecting, "address") == server.address
    assert [field(line, "version") for line in said(client, "TLS of the control channel stands")]
    assert said(client, "copy begins", cipher="aes128-gcm", session=session)
    for name in ("source/large", "source/small"):
        assert said(client, "entry announced", entry=name)
        assert said(there, "entry wanted", entry=name, session=session)
        assert said(there, "entry named", entry=name, session=session)
        for lines in (client, there):
            assert said(lines, "entry settled", entry=name, status="copied", session=session)
    opened = {line["stream"] for line in said(client, "stream opened")}
    assert opened == {line["stream"] for line in said(there, "stream ends")} != set()
    assert said(there, "destination synced") and said(there, "all of entry proved")
    (end,) = said(there, "receiving end has settled every entry")
    assert field(end, "failed_files") == 0 and field(end, "settled_files") == 3


def test_what_an_earlier_attempt_left_is_told_with_the_bytes_that_are_trusted(
    tmp_path: Path,
) -> None:
    source = tmp_path / "large"
    source.write_bytes(SECRET * 400_000)
    with logged_server(tmp_path) as server:
        target = f"{server.tickets['write']}#."
        words = [str(source), target, "--bwlimit", "4MB/s", "--log-level", "debug"]
        first = subprocess.Popen(
            [*FARLINE, "copy", *words, "--log-file", str(tmp_path / "first.log")],
            env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with first:
            wait_for_journal(tmp_path / "there")
            first.kill()
        done, client = copy(tmp_path, str(source), target, *QUICK)
        server.stop()
    assert done.returncode == 0, done.stderr
    there = read_lines(tmp_path / "server.log")
    (read,) = said(there, "journal of an earlier session read", files_begun=1)
    (wanted,) = said(there, "entry wanted", entry="large", session=read["session"])
    assert field(wanted, "trusted_bytes") == field(read, "trusted_bytes") > 0
    assert said(client, "entry wanted", trusted_bytes=field(read, "trusted_bytes"))


def wait_for_journal(folder: Path) -> None:
    """Until a journal has proofs of parts."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if any(path.stat().st_size > 200 for path in folder.rglob("journal")):
            return
        time.sleep(0.05)
    raise AssertionError("no journal was written")


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv of util-linux")
def test_an_unreadable_source_is_named_with_the_kernels_reason(
    tmp_path: Path, source: Path
) -> None:
    (source / "small").chmod(0)
    # Root reads anything, unless it may not be what root is.
    limited = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    with logged_server(tmp_path) as server:
        target = f"{server.tickets['write']}#."
        done, client = copy(tmp_path, str(source), target, *QUICK, prefix=limited)
        server.stop()
    assert done.returncode == 23, done.stderr
    (lost,) = said(client, "entry cannot be read as announced", entry="source/small", errno=13)
    assert "ermission denied" in field(lost, "reason") and lost["session"] == session_of(client)
    there = read_lines(tmp_path / "server.log")
    for lines in (client, there):
        (settled,) = said(lines, "entry settled", entry="source/small", status="failed")
        assert "ermission denied" in field(settled, "reason")
    (end,) = said(there, "session ends")
    assert (field(end, "files_copied"), field(end, "files_failed")) == (1, 1)


def test_a_wrong_ticket_is_refused_by_both_logs(tmp_path: Path, source: Path) -> None:
    with logged_server(tmp_path) as server:
        right = server.tickets["write"]
        head, question, key = right.partition("?")
        flipped = "A" if head[-1] != "A" else "B"
        wrong = f"{head[:-1]}{flipped}{question}{key}"
        done, client = copy(tmp_path, str(source), f"{wrong}#.", *QUICK)
        server.stop()
    assert done.returncode == 4, done.stderr
    (end,) = said(client, "attempt ended", kind="auth")
    (refused,) = said(read_lines(tmp_path / "server.log"), "connection refused", kind="auth")
    assert refused["level"] == "info" and "ticket" in field(refused, "reason")
    assert field(refused, "peer").startswith("127.0.0.1:") and refused["session"]
    assert "ticket" in field(end, "reason")


class Proxy:
    """Passes bytes between clients and a server until it cuts every connection."""

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._server = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Ends every connection, and takes no more."""
        for one in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def once_it_moves(folder: Path, act: Callable[[], None]) -> Iterator[None]:
    """Does `act` when the server's log says that the large file is wanted."""
    log = folder / "server.log"

    def is_wanted() -> bool:
        lines = log.read_text().splitlines() if log.exists() else []
        return any("entry wanted" in line and "source/large" in line for line in lines)

    def watch() -> None:
        until = time.monotonic() + 60
        while not is_wanted():
            assert time.monotonic() < until
            time.sleep(0.02)
        act()

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield
    watcher.join(60)


def test_a_connection_that_is_cut_is_told_with_its_session_and_streams(
    tmp_path: Path, source: Path
) -> None:
    with logged_server(tmp_path) as server:
        proxy = Proxy(server.address)
        target = f"{server.tickets['write'].replace(server.address, proxy.address)}#."
        with once_it_moves(tmp_path, proxy.cut):
            done, client = copy(tmp_path, str(source), target, *SLOW)
        server.stop()
    assert done.returncode in (5, 7), done.stderr
    session = session_of(client)
    (attempt,) = said(client, "attempt ended")
    assert field(attempt, "kind") in ("protocol", "unreachable") and field(attempt, "reason")
    (connected,) = said(client, "connected")
    assert field(connected, "address") == proxy.address
    ended = {line["stream"] for line in said(client, "stream ends", session=session)}
    assert ended == {line["stream"] for line in said(client, "stream begins", session=session)}
    (end,) = said(client, "client's session ends", session=session)
    assert field(end, "reason") == field(attempt, "reason")
    there = read_lines(tmp_path / "server.log")
    (gone,) = said(there, "session ends", session=session)
    assert field(gone, "status") == "failed" and field(gone, "reason")
    assert said(there, "entry wanted", entry="source/large", session=session)
    assert not said(there, "entry named", entry="source/large")


def test_a_server_that_is_killed_is_told_by_the_client(tmp_path: Path, source: Path) -> None:
    with logged_server(tmp_path) as server:
        target = f"{server.tickets['write']}#."
        with once_it_moves(tmp_path, server.process.kill):
            done, client = copy(tmp_path, str(source), target, *SLOW)
    assert done.returncode in (5, 7), done.stderr
    (end,) = said(client, "client's session ends")
    assert end["session"] == session_of(client) and field(end, "reason")
    (attempt,) = said(client, "attempt ended", status="failed")
    assert field(attempt, "reason") and field(attempt, "kind") in ("protocol", "unreachable")
    # The log of the server ends in the middle: it says what it was at.
    assert said(read_lines(tmp_path / "server.log"), "entry wanted", entry="source/large")


def test_a_server_logs_who_did_what_and_how_it_ended_and_a_rotation_loses_nothing(
    tmp_path: Path, source: Path
) -> None:
    rotations, log = 4, tmp_path / "server.log"
    with logged_server(tmp_path, level="info") as server:
        for number in range(rotations):
            target = f"{server.tickets['write']}#{number}"
            assert farline(tmp_path, "copy", f"{source}/", target, "-q").returncode == 0
            log.rename(tmp_path / f"server.log.{number}")
            server.process.send_signal(signal.SIGUSR1)
            wait_for(log)
        assert farline(tmp_path, "probe", server.ticket, "-t", "0.2s").returncode == 0
        server.stop()
    parts = [read_lines(tmp_path / f"server.log.{number}") for number in range(rotations)]
    lines = [line for part in [*parts, read_lines(log)] for line in part]
    begun, ended = said(lines, "session begins"), said(lines, "session ends")
    assert len(begun) == len(ended) == rotations + 1
    assert [line["session"] for line in begun] == [line["session"] for line in ended]
    assert len(lines) == 2 * len(begun) + 1 and lines[-1]["message"] == "server stopped"
    (first, probe) = (begun[0], begun[-1])
    assert field(first, "peer").startswith("127.0.0.1:")
    assert re.fullmatch("[0-9A-Z]{26}", field(first, "ticket"))
    assert [field(first, name) for name in ("what", "direction", "transport", "root")] == [
        "copy", "forward", "tcp", str(tmp_path / "there"),
    ]  # fmt: skip
    assert field(probe, "what") == "probe" and field(probe, "root") is None
    (copied,) = said(lines, "session ends", session=first["session"])
    assert [field(copied, name) for name in ("status", "files_copied", "files_failed")] == [
        "complete", 2, 0,
    ]  # fmt: skip
    assert field(copied, "bytes_received") >= 100_001 * len(SECRET)


def wait_for(path: Path) -> None:
    """Until the file is there."""
    until = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < until, f"{path} was not opened anew"
        time.sleep(0.02)


def test_content_tickets_and_keys_are_in_no_line(tmp_path: Path, source: Path) -> None:
    with logged_server(tmp_path, level="trace") as server:
        write, read = server.tickets["write"], server.tickets["read"]
        copy(tmp_path, str(source), f"{write}#.", level="trace")
        logs = (tmp_path / "client.log").read_text()
        copy(tmp_path, f"{read}#source", str(tmp_path / "back"), level="trace")
        farline(tmp_path, "probe", server.ticket, "-t", "0.2s", "--log-level", "trace",
                "--log-file", str(tmp_path / "probe.log"))  # fmt: skip
        # A ticket that is none is quoted by whoever refuses it.
        bad = f"{write.partition('?')[0]}?key=nonsense"
        done, _ = copy(tmp_path, str(source), f"{bad}#.", *QUICK, level="trace")
        assert done.returncode != 0
        fingerprint = server.fingerprint
        server.stop()
    names = ("client.log", "server.log", "probe.log")
    logs += "".join((tmp_path / name).read_text() for name in names)
    assert logs.count("entry settled") >= 12 and "stream begins" in logs
    assert SECRET.decode()[:20] not in logs
    for ticket in (write, read, server.ticket):
        secret = ticket.partition("?")[0].rpartition("/")[2]
        parts = [part for part in secret.split(".") if len(part) > 12]
        assert parts and not any(part in logs for part in parts)
    for kept in (tmp_path / "state").rglob("*"):
        if kept.is_file():
            assert not spellings(kept.read_bytes()) & set(words_of(logs))
    # What is as long as a key and looks like one is the fingerprint, which is public.
    long = set(re.findall(r"[A-Za-z0-9+_-]{40,}", logs.replace(str(tmp_path), "")))
    assert {one for one in long if fingerprint not in one} == set()


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z0-9+/_=-]{16,}", text))


def spellings(raw: bytes) -> set[str]:
    """How a key of a state folder could stand in a text."""
    lines = {line.decode("latin-1") for line in raw.splitlines() if len(line) >= 16}
    coded = {base64.b64encode(raw), base64.urlsafe_b64encode(raw), raw.hex().encode()}
    return lines | {one.decode().rstrip("=") for one in coded}


def test_the_default_output_of_a_copy_and_a_server_has_no_log_line(
    tmp_path: Path, source: Path
) -> None:
    errors = tmp_path / "errors"
    (tmp_path / "there").mkdir()
    command = [*FARLINE, "serve", "-B", "127.0.0.1", "-p", "0", "--one-off"]
    command += ["--state-dir", str(tmp_path / "state"), "--write", str(tmp_path / "there")]
    with (
        errors.open("w") as into,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=into, text=True, env=environment(tmp_path)
        ) as server,
        closing(server.stdout) as output,  # type: ignore[type-var]
    ):
        assert output is not None
        head = [output.readline() for _ in range(5)]
        target = re.findall(r"'(farline://.*)'", head[4])[0]
        done = farline(tmp_path, "copy", str(source), target)
        rest = output.read()
        assert server.wait(30) == 0
    assert done.returncode == 0 and done.stderr == ""
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "files", "bytes", "time", "by", "disks", "verdict", "run",
    ]  # fmt: skip
    assert errors.read_text() == ""
    begins, ends, stopped = rest.splitlines()
    assert re.fullmatch(
        r"..:..:.. 127\.0\.0\.1:\d+ started: tcp forward, \d+ streams \(.*\)", begins
    )
    assert " complete after " in ends and stopped.endswith("stopped after 1 session")


SSH = """#!/bin/sh
# Takes ssh's words and runs the command here, which is told of the log by these words alone.
unset FARLINE_LOG
while [ "$1" != dtn ]; do case "$1" in -G) echo "hostname 127.0.0.1"; exit 0 ;; esac; shift; done
shift; echo "a greeting" >&2; exec sh -c "$*"
"""


def test_the_farline_that_ssh_starts_logs_as_this_one_does(tmp_path: Path, source: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o700)
    over = ["-e", str(ssh), "--remote-farline", shlex.join(FARLINE), "--start-timeout", "100s"]
    done, lines = copy(tmp_path, f"{source}/", f"dtn:{tmp_path}/there", *over, level="debug")
    assert done.returncode == 0, done.stderr
    far = [line for line in lines if field(line, "host") == "dtn" and "host_time" in str(line)]
    near = [line for line in lines if line not in far]
    assert {line["target"] for line in far} >= {"session", "mover", "transport"}
    assert session_of(far) == session_of(near)
    assert "a greeting" not in str(lines) and "time" not in done.stderr.partition("files")[0]
