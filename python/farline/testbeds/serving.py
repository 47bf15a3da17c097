"""farline on the hosts of a testbed: a server on one, a command on another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from farline.errors import SystemFailure, TimeoutFailure
from farline.testbeds.host import Host
from farline.tools.native import TICKET_VARIABLE
from farline.tools.signals import handled_by, waited

PORT = 5470
_READY_S = 20.0
_END_S = 10.0
_POLL_S = 0.05


@contextmanager
def serving(host: Host, address: str, write: str | None = None) -> Iterator[tuple[str, str]]:
    """`farline serve` on a host: where it is, and a ticket for it. It ends with the block.

    With `write` the ticket is one to write below that folder.
    """
    with tempfile.TemporaryDirectory(prefix="farline-serve-") as folder:
        log = Path(folder) / "log"
        command = [
            *(sys.executable, "-m", "farline", "serve", "--json"),
            *("--listen", address, "--port", str(PORT), "--state-dir", folder),
            *(("--write", write) if write is not None else ()),
        ]
        with log.open("wb") as out:
            server = host.popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, process_group=0
            )
        try:
            ready = _ready(server, log)
            ticket = ready["ticket"] if write is None else ready["tickets"]["write"]
            yield f"{address}:{PORT}", ticket
        finally:
            end(server)


def _ready(server: subprocess.Popen[str], log: Path) -> dict[str, Any]:
    """What the server says once it listens."""
    until = time.monotonic() + _READY_S
    while time.monotonic() < until:
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines and lines[0].startswith("{") and lines[0].endswith("\n"):
            ready: dict[str, Any] = json.loads(lines[0])
            return ready
        if server.poll() is not None:
            said = "".join(lines[:1]).strip() or f"it ended with {server.returncode}"
            raise SystemFailure(f"farline serve on the testbed: {said}")
        time.sleep(_POLL_S)
    raise TimeoutFailure(f"farline serve on the testbed: not ready after {_READY_S:g} s")


def end(process: subprocess.Popen[str]) -> None:
    """Ends a program in order; at once if that takes long."""
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run_inside(host: Host, command: list[str], ticket: str) -> int:
    """Runs a command of farline on a host, with a ticket; signals to this process go to it.

    It has a process group of its own, so that Ctrl-C comes once, and by way of this process.
    """
    environment = {**os.environ, TICKET_VARIABLE: ticket}
    with _passing_signals() as passed:
        command_run = host.popen(command, env=environment, process_group=0)
        passed.to(command_run)
        try:
            return exit_code(waited(command_run))
        finally:
            end(command_run)


def exit_code(code: int) -> int:
    """The exit code of a child as a shell says it: 128 + n for signal n."""
    return 128 - code if code < 0 else code


class _Passed:
    """Signals that came, and the process that they go to."""

    def __init__(self) -> None:
        self._early: list[int] = []
        self._process: subprocess.Popen[str] | None = None

    def to(self, process: subprocess.Popen[str]) -> None:
        """Names the process; what came before goes to it now."""
        self._process = process
        for number in self._early:
            process.send_signal(number)

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Signal handler."""
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)


@contextmanager
def _passing_signals() -> Iterator[_Passed]:
    passed = _Passed()
    with handled_by(passed.handle):
        yield passed
