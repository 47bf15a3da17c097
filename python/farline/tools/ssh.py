"""Hosts reached over the user's own ssh: a server for one copy, tunnels, orders.

`SshCommand` says how ssh is called; `RemoteServer` starts `farline serve --copy-session` there,
which prints one JSON line and serves as long as its standard input is open. What ssh and the
shell behind it may answer instead becomes an error that says what to do.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from farline.errors import (
    AuthError,
    FarlineError,
    InterruptedRun,
    PeerError,
    ProtocolError,
    SystemFailure,
    TimeoutFailure,
    UnreachableError,
    UsageError,
    VersionError,
)
from farline.tools import Stop, StopQuestion
from farline.tools.native import Target, parse_target

READY_SCHEMA = 1
"""Version of the line that `farline serve --copy-session` prints."""

MAX_LINE_BYTES = 64 * 1024
"""Most that a host may say before its line is taken for noise."""

_POLL_S = 0.05
_END_S = 5.0
_NOT_FOUND = 127
_SSH_FAILED = 255


@dataclass(frozen=True)
class SshCommand:
    """How ssh is called, and what farline is called there."""

    command: tuple[str, ...] = ("ssh",)
    port: int | None = None
    identity: str | None = None
    options: tuple[str, ...] = ()
    config: str | None = None
    jump: str | None = None
    family: str | None = None
    remote_farline: str = "farline"

    def words(self, target: str, *more: str) -> list[str]:
        """Words of a command that logs in at `target`; `more` are options before it."""
        flags = [
            *(("-p", str(self.port)) if self.port is not None else ()),
            *(("-i", self.identity) if self.identity else ()),
            *(("-F", self.config) if self.config else ()),
            *(("-J", self.jump) if self.jump else ()),
            *((self.family,) if self.family else ()),
            *(word for option in self.options for word in ("-o", option)),
        ]
        return [*self.command, *flags, *more, target]

    def farline(self, target: str, *arguments: str) -> list[str]:
        """Words of a command that runs farline at `target`."""
        return [*self.words(target, "-T"), f"{self.remote_farline} {shlex.join(arguments)}"]

    def host_name(self, target: str, fallback: str) -> str:
        """The name behind an alias in ssh's configuration; `fallback` if ssh does not say."""
        try:
            done = subprocess.run(
                self.words(target, "-G"), capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return fallback
        for line in done.stdout.splitlines():
            key, _, value = line.partition(" ")
            if key == "hostname" and done.returncode == 0:
                return value.strip()
        return fallback


class _Sayings:
    """Keeps the last that a process says on standard error, so that it never waits to say more."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        """Listens from now on."""
        assert stream is not None
        self._stream = stream
        self._said: deque[str] = deque(maxlen=20)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        while raw := self._stream.readline(MAX_LINE_BYTES):
            if line := raw.decode(errors="replace").strip():
                self._said.append(line)

    def last(self) -> list[str]:
        """The last lines of a process that has ended."""
        self._listener.join(_END_S)
        return list(self._said)

    def close(self) -> None:
        """Of a process that has ended."""
        self._listener.join(_END_S)
        if not self._listener.is_alive():
            self._stream.close()


class RemoteCommand:
    """A farline that runs on another host, as lines of JSON; ends when `close` is called."""

    def __init__(self, ssh: SshCommand, target: str, arguments: Sequence[str]) -> None:
        """Starts ssh.

        Raises:
            SystemFailure: when there is no ssh.
        """
        self.target = target
        self._ssh = ssh
        words = ssh.farline(target, *arguments)
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise SystemFailure(
                f"{words[0]}: {error.strerror}; install an ssh client, or name another with -e"
            ) from None
        self._rest = b""
        self._said = _Sayings(self._process.stderr)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def send(self, document: object) -> None:
        """Sends a line of JSON; one that nobody takes is told of by `line`."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps(document).encode() + b"\n")
            self._process.stdin.flush()

    def line(self, timeout_s: float) -> dict[str, Any] | None:
        """The next JSON object that it prints, or None after `timeout_s`; other lines are noise.

        Raises:
            FarlineError: when it has ended: ssh's failure, or why farline could not run there.
        """
        until = time.monotonic() + timeout_s
        while True:
            raw = self._next_line(max(0.0, until - time.monotonic()))
            if raw is None:
                return None
            with contextlib.suppress(ValueError):
                document = json.loads(raw)
                if isinstance(document, dict):
                    return document

    def _next_line(self, timeout_s: float) -> bytes | None:
        assert self._process.stdout is not None
        while b"\n" not in self._rest:
            if len(self._rest) > MAX_LINE_BYTES * 64:
                raise ProtocolError(f"{self.target}: farline there says too much in one line")
            ready, _, _ = select.select([self._process.stdout], [], [], timeout_s)
            if not ready:
                return None
            more = os.read(self._process.stdout.fileno(), MAX_LINE_BYTES)
            if not more:
                raise self._ended()
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _ended(self) -> FarlineError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        words = self._ssh.remote_farline
        return why_ended(self.target, words, self._process.returncode, self._said.last())

    def end_input(self) -> None:
        """Closes its input: it comes to its end, and says so."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def close(self) -> None:
        """Closes its input, by which it ends; ends ssh too if that takes long."""
        self.end_input()
        assert self._process.stdout is not None
        # Whoever still has something to say would wait for ever for someone to hear it.
        self._process.stdout.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait()
        self._said.close()


def why_ended(target: str, farline: str, code: int | None, said: Sequence[str]) -> FarlineError:
    """Why a command over ssh ended before it had said what it should."""
    last = said[-1] if said else ""
    if code == _NOT_FOUND:
        return UsageError(
            f"{target}: no {farline} there; install farline on that host,"
            " or say where it is with --remote-farline"
        )
    if code == _SSH_FAILED:
        return _ssh_failure(target, said)
    if "No such option: --copy-session" in last or "No such command" in last:
        return VersionError(f"{target}: the farline there is too old to copy: {last}")
    what = f"ended with {code}" if code is not None else "does not answer"
    return ProtocolError(f"{target}: farline there {what}" + (f": {last}" if last else ""))


def _ssh_failure(target: str, said: Sequence[str]) -> FarlineError:
    text = " ".join(said)
    last = said[-1] if said else "no reason given"
    refused = ("Permission denied", "Host key verification failed", "HOST IDENTIFICATION")
    kind: type[PeerError] | type[UnreachableError] = UnreachableError
    if any(word in text for word in refused):
        kind = AuthError
    return kind(f"ssh {target}: {last}")


@dataclass(frozen=True)
class Ready:
    """What a server for one copy says of itself."""

    port: int
    ticket: str
    home: str
    send_buffer_bytes: int | None
    receive_buffer_bytes: int | None
    client: str | None = None
    """Address from which ssh got there, as that host sees it, if it knows."""

    def target(self, host: str, port: int | None = None) -> Target:
        """Where its sessions are, seen from here."""
        there = parse_target(self.ticket)
        return Target(host, port or self.port, there.ticket, there.pin)


def read_ready(target: str, document: dict[str, Any]) -> Ready:
    """The ready line of a server for one copy.

    Raises:
        VersionError: when it is one of another version.
        ProtocolError: when it makes no sense.
    """
    schema = document.get("schema")
    if document.get("event") != "ready" or schema != READY_SCHEMA:
        there = document.get("version", "unknown")
        raise VersionError(
            f"{target}: farline {there} there speaks version {schema} of the start over ssh,"
            f" this one version {READY_SCHEMA}: install the same version on both hosts"
        )
    port, ticket, home = document.get("port"), document.get("ticket"), document.get("home")
    if not isinstance(port, int) or not 0 < port < 65536 or not isinstance(ticket, str):
        raise ProtocolError(f"{target}: farline there names no port and ticket")
    if not isinstance(home, str) or not home.startswith("/"):
        raise ProtocolError(f"{target}: farline there names no home folder")
    numbers = (document.get(f"tcp_{way}_bytes") for way in ("send", "receive"))
    send, receive = (one if isinstance(one, int) else None for one in numbers)
    client = document.get("client")
    return Ready(port, ticket, home, send, receive, client if isinstance(client, str) else None)


class RemoteServer:
    """A server on another host that serves this copy alone; ends with `close`, or with ssh."""

    def __init__(
        self, ssh: SshCommand, target: str, arguments: Sequence[str], should_stop: StopQuestion
    ) -> None:
        """Starts it and waits for its ready line, as long as ssh may ask for passwords.

        Raises:
            FarlineError: what ssh or the farline there failed with.
            InterruptedRun: when somebody would not wait.
        """
        self._command = RemoteCommand(ssh, target, ["serve", "--copy-session", *arguments])
        try:
            self.ready = read_ready(target, self._first_line(should_stop))
        except BaseException:
            self._command.close()
            raise

    def _first_line(self, should_stop: StopQuestion) -> dict[str, Any]:
        while should_stop() is Stop.GO_ON:
            if (document := self._command.line(_POLL_S)) is not None:
                return document
        raise InterruptedRun(f"ssh {self._command.target}: interrupted")

    def connect_to(self, address: str) -> None:
        """Has it serve one session to who waits at `address`; it was started to do so."""
        self._command.send({"connect_to": address})

    @property
    def is_alive(self) -> bool:
        """Whether it still serves."""
        return self._command.is_alive

    def close(self) -> None:
        """Ends it."""
        self._command.close()


class Tunnel:
    """A port of this host that ssh leads to a port on the loopback of another."""

    def __init__(
        self, ssh: SshCommand, target: str, remote_port: int, should_stop: StopQuestion
    ) -> None:
        """Opens it and waits until it takes connections.

        Raises:
            FarlineError: when ssh is not there or does not open it.
        """
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        lead = f"127.0.0.1:{self.port}:127.0.0.1:{remote_port}"
        words = ssh.words(target, "-N", "-o", "ExitOnForwardFailure=yes", "-L", lead)
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise SystemFailure(f"{words[0]}: {error.strerror}") from None
        self._said = _Sayings(self._process.stderr)
        try:
            self._wait(target, should_stop)
        except BaseException:
            self.close()
            raise

    def _wait(self, target: str, should_stop: StopQuestion) -> None:
        """ssh says nothing when it listens: asking the port is the only way to know."""
        until = time.monotonic() + 60
        while should_stop() is Stop.GO_ON:
            if self._process.poll() is not None:
                raise _ssh_failure(target, self._said.last())
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), 1),
            ):
                return
            if time.monotonic() > until:
                raise TimeoutFailure(f"ssh {target}: no tunnel within 60 s")
            time.sleep(_POLL_S)
        raise InterruptedRun(f"ssh {target}: interrupted")

    @property
    def is_alive(self) -> bool:
        """Whether it still leads there."""
        return self._process.poll() is None

    def close(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait()
        self._said.close()
