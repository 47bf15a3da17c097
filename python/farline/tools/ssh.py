"""Hosts reached over the user's own ssh: a server for one copy, tunnels, orders.

`ssh_command` says how ssh is called; `RemoteServer` starts `farline serve --copy-session` there,
which prints one marked JSON line (`start_mark`) and serves as long as its standard input is open.
Where the shell there does not find farline, a second ssh looks for it in `usual_folders`. What ssh
and the shell behind it may print beside it is skipped; what they answer instead becomes an error
that says what to do (`ssh_failure`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from farline.errors import (
    FarlineError,
    InterruptedRun,
    ProtocolError,
    TimeoutFailure,
    UnreachableError,
    UsageError,
    VersionError,
)
from farline.logs import Log, words_for_far_end
from farline.spec.json_text import read_object
from farline.tools import Stop, StopQuestion
from farline.tools.child import Child
from farline.tools.events import Notice, NoticeKind
from farline.tools.native import Target, parse_target
from farline.tools.ssh_command import NAME, START_S, SshCommand
from farline.tools.ssh_failure import (
    is_missing,
    not_started,
    ssh_failure,
    taking_back,
    why_search_ended,
)
from farline.tools.start_mark import MarkedLines, mark_of, new_nonce

if TYPE_CHECKING:
    from farline.tools.events import Steps

_LOG = Log(__name__)

READY_SCHEMA = 2
"""Version of the line that `farline serve --copy-session --mark` prints."""

FIRST_SCHEMA = 1
"""Version of the line without a mark, which is printed to who asks for none."""

LOGIN_S = 180.0
"""So long while nothing has come and ssh may be asking for a password on a terminal."""

NOTICE_S = 10.0
"""After so long a start is told of."""

_POLL_S = 0.05
_END_S = 5.0
_BROKEN_S = 0.5
"""What failed to start gets so long to end by itself."""


class RemoteCommand:
    """A farline that runs on another host, as lines of JSON; ends when `close` is called."""

    def __init__(self, ssh: SshCommand, target: str, arguments: Sequence[str]) -> None:
        """Starts ssh.

        Raises:
            SystemFailure: when there is no ssh.
        """
        self.target = target
        self.ssh = ssh
        """How ssh is called; with `searches` once farline had to be looked for."""
        self._arguments = arguments
        self._is_missing = False
        self._log_in()

    def _log_in(self) -> None:
        nonce = new_nonce()
        self._lines = MarkedLines(mark_of(nonce))
        logging = words_for_far_end()
        words = self.ssh.farline(self.target, *self._arguments, *logging, "--mark", nonce)
        takes = None
        if logging:
            from farline.logs.far_lines import FarLines

            takes = FarLines(self.target).feed
        self._process = Child(words, takes, self.ssh.no_program())

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.is_alive

    def send(self, document: object) -> None:
        """Sends a line of JSON; one that nobody takes is told of by `line`."""
        self._process.send(json.dumps(document).encode() + b"\n")

    def start(self, should_stop: StopQuestion) -> Steps[dict[str, Any]]:
        """Waits for its first line, which is returned; a notice says when that takes long.

        Raises:
            FarlineError: when it has ended, or does not come in the time allowed.
            InterruptedRun: when somebody would not wait.
        """
        began, is_told = time.monotonic(), False
        limit_s = self.ssh.start_s or START_S
        while should_stop() is Stop.GO_ON:
            try:
                if (document := self.line(_POLL_S)) is not None:
                    return document
            except (UsageError, UnreachableError):
                if self._takes_back():
                    _LOG.debug("logging in again", host=self.target, option=self.ssh.options[-1])
                elif self._can_search():
                    yield self._search()
                elif self._can_send():
                    yield from self._send(should_stop)
                    began = time.monotonic()
                else:
                    raise
            waited_s = time.monotonic() - began
            if not is_told and waited_s > NOTICE_S:
                is_told = True
                line = f"waiting for farline to start on {self.target}"
                yield Notice(NoticeKind.WAITING, line)
            yield None
            if waited_s > limit_s:
                limit_s = self._extended_s(limit_s)
                if waited_s > limit_s:
                    raise not_started(
                        self.target, limit_s, self._process.said.lines(), self._lines.said
                    )
        raise InterruptedRun(f"ssh {self.target}: interrupted")

    def _takes_back(self) -> bool:
        """Logs in again without what ssh's configuration asks for and could not have."""
        option = taking_back(self._process.said.lines())
        if option is None or option in self.ssh.options:
            return False
        self._process.close(_BROKEN_S)
        self.ssh = replace(self.ssh, options=(*self.ssh.options, option))
        self._log_in()
        return True

    def _can_search(self) -> bool:
        """Whether the shell there did not find farline, and nobody has said where it is."""
        return self._is_missing and self.ssh.remote_farline is None and not self.ssh.searches

    def _search(self) -> Notice:
        """Logs in again to look for farline in the usual folders."""
        _LOG.debug("farline is not in the PATH; searching the usual folders", host=self.target)
        self._process.close(_BROKEN_S)
        self.ssh = replace(self.ssh, searches=True)
        self._log_in()
        line = (
            f"farline is not in the PATH on {self.target}: ssh logs in again to look in the "
            "usual folders"
        )
        return Notice(NoticeKind.WAITING, line)

    def _can_send(self) -> bool:
        """Whether there is no farline there, and one may be sent."""
        return self._is_missing and self.ssh.sends and self.ssh.remote_farline is None

    def _send(self, should_stop: StopQuestion) -> Steps[None]:
        """Sends a program for this copy, unless the cache there has it, and logs in to start it."""
        from farline.tools.bootstrap import send_program

        self._process.close(_BROKEN_S)
        path = yield from send_program(self.ssh, self.target, self.ssh.program, should_stop)
        self.ssh = replace(self.ssh, remote_farline=shlex.quote(path), searches=False)
        self._log_in()

    def _extended_s(self, limit_s: float) -> float:
        """The limit again, longer while ssh is asking for a password or still connecting."""
        if self.ssh.start_s is not None or self._lines.said:
            return limit_s
        asks = LOGIN_S if _has_terminal() else 0.0
        return max(limit_s, asks, self.ssh.start_limit_s(self.target))

    def line(self, timeout_s: float) -> dict[str, Any] | None:
        """The next line that it prints, or None after `timeout_s`; any other text is skipped.

        Raises:
            FarlineError: when it has ended: ssh's failure, or why farline could not run there.
        """
        until = time.monotonic() + timeout_s
        try:
            while (raw := self._lines.next()) is None:
                if (more := self._process.read(max(0.0, until - time.monotonic()))) is None:
                    return None
                if not more:
                    raise self._ended()
                self._lines.feed(more)
            return read_object(raw)
        except ValueError as error:
            raise ProtocolError(
                f"{self.target}: farline on that host sent no JSON: {error}"
            ) from None
        except ProtocolError as error:
            if error.message.startswith(f"{self.target}: "):
                raise
            raise ProtocolError(f"{self.target}: {error.message}") from None

    def _ended(self) -> FarlineError:
        code = self._process.wait(_END_S)
        said = self._process.said.lines()
        farline = self.ssh.remote_farline or NAME
        self._is_missing = is_missing(farline, code, said, self._lines.said)
        if self.ssh.searches:
            return why_search_ended(self.target, code, said, self._lines.said)
        return self.ssh.why_ended(self.target, farline, code, said, self._lines.said)

    def drop_output(self) -> None:
        """Nothing more that it prints is of interest; it never waits to print more."""
        self._process.drop_output()

    def end_input(self) -> None:
        """Closes its input: it comes to its end, and says so."""
        self._process.end_input()

    def close(self, patience_s: float = _END_S) -> None:
        """Closes its input, by which it ends; ends ssh too if that takes longer than that."""
        self._process.close(patience_s)


def _has_terminal() -> bool:
    """Whether ssh can ask somebody."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


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
            f"{target}: farline {there} on that host uses version {schema} of the start over ssh, "
            f"but this host uses version {READY_SCHEMA}: install the same version on both hosts"
        )
    port, ticket, home = document.get("port"), document.get("ticket"), document.get("home")
    if not isinstance(port, int) or not 0 < port < 65536 or not isinstance(ticket, str):
        raise ProtocolError(f"{target}: farline on that host sent no port and ticket")
    if not isinstance(home, str) or not home.startswith("/"):
        raise ProtocolError(f"{target}: farline on that host sent no home folder")
    numbers = (document.get(f"tcp_{way}_bytes") for way in ("send", "receive"))
    send, receive = (one if isinstance(one, int) else None for one in numbers)
    client = document.get("client")
    return Ready(port, ticket, home, send, receive, client if isinstance(client, str) else None)


class RemoteServer:
    """A server on another host that serves this copy alone; ends with `close`, or with ssh."""

    ready: Ready
    """What it says of itself, once it has started."""

    def __init__(self, ssh: SshCommand, target: str, arguments: Sequence[str]) -> None:
        """Starts ssh.

        Raises:
            SystemFailure: when there is no ssh.
        """
        _LOG.debug(
            "starting farline over ssh", host=target, remote_farline=ssh.remote_farline or NAME
        )
        self._target = target
        self._command = RemoteCommand(ssh, target, ["serve", "--copy-session", *arguments])

    def start(self, should_stop: StopQuestion) -> Steps[None]:
        """Waits for its ready line, as long as ssh may ask for passwords.

        Raises:
            FarlineError: what ssh or the farline there failed with.
            InterruptedRun: when somebody would not wait.
        """
        try:
            document = yield from self._command.start(should_stop)
            self.ready = read_ready(self._target, document)
            _LOG.debug("farline has started over ssh", host=self._target, port=self.ready.port)
            self._command.drop_output()
        except BaseException as error:
            _LOG.debug("farline has not started over ssh", host=self._target, reason=error)
            self._command.close(_BROKEN_S)
            raise

    def connect_to(self, address: str) -> None:
        """Has it serve one session to who waits at `address`; it was started to do so."""
        self._command.send({"connect_to": address})

    @property
    def ssh(self) -> SshCommand:
        """How ssh is called to start another there: where farline was looked for, it is again."""
        return self._command.ssh

    @property
    def is_alive(self) -> bool:
        """Whether it still serves."""
        return self._command.is_alive

    def close(self) -> None:
        """Ends it."""
        _LOG.debug("ending farline over ssh", is_alive=self.is_alive)
        self._command.close()


class Tunnel:
    """A port of this host that ssh leads to a port on the loopback of another."""

    def __init__(self, ssh: SshCommand, target: str, remote_port: int) -> None:
        """Starts ssh.

        Raises:
            SystemFailure: when there is no ssh.
        """
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        lead = f"127.0.0.1:{self.port}:127.0.0.1:{remote_port}"
        self._process = Child(ssh.words(target, "-N", "-o", "ExitOnForwardFailure=yes", "-L", lead))
        self._process.end_input()
        self._process.drop_output()
        self._target, self._limit_s = target, ssh.start_s or LOGIN_S

    def start(self, should_stop: StopQuestion) -> Steps[None]:
        """Waits until it takes connections.

        Raises:
            FarlineError: when ssh does not open it.
            InterruptedRun: when somebody would not wait.
        """
        try:
            yield from self._opened(self._target, self._limit_s, should_stop)
        except BaseException:
            self.close()
            raise

    def _opened(self, target: str, limit_s: float, should_stop: StopQuestion) -> Steps[None]:
        """ssh says nothing when it listens: asking the port is the only way to know."""
        until = time.monotonic() + limit_s
        while should_stop() is Stop.GO_ON:
            if not self._process.is_alive:
                raise ssh_failure(target, self._process.said.lines())
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), 1),
            ):
                return
            if time.monotonic() > until:
                said = "; ".join(self._process.said.lines()[-1:])
                raise TimeoutFailure(
                    f"ssh {target}: no tunnel opened within {limit_s:g} s"
                    + (f": {said}" if said else "")
                    + "; allow more time with --start-timeout"
                )
            yield None
            time.sleep(_POLL_S)
        raise InterruptedRun(f"ssh {target}: interrupted")

    @property
    def is_alive(self) -> bool:
        """Whether it still leads there."""
        return self._process.is_alive

    def close(self) -> None:
        """Ends it."""
        self._process.close(0.0)
