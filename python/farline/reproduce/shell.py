"""Runs commands of farline: what the page of an item shows is what runs."""

from __future__ import annotations

import ctypes
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from farline.errors import InterruptedRun, SystemFailure

_POLL_S = 0.2
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1

Asked = Callable[[], object]
"""Whether somebody wants to stop: true to stop."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended and what it took; `cpu_s` is that of it and of all that it waited for."""

    code: int
    wall_s: float
    cpu_s: float
    last_line: str


def command_line(words: Sequence[str]) -> str:
    """A command as people type it."""
    return shlex.join(["farline", *words])


def run_farline(words: Sequence[str], folder: Path, log: Path, asked: Asked) -> Ran:
    """Runs `farline WORDS` in a folder; what it prints goes to the end of `log`.

    Raises:
        InterruptedRun: when somebody wanted to stop; the command was asked to, and has ended.
        SystemFailure: when it cannot be started or the log cannot be written.
    """
    command = [sys.executable, "-m", "farline", *words]
    begun, before = time.monotonic(), _cpu_s()
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            out.write(f"$ {command_line(words)}\n".encode())
            out.flush()
            start = out.tell()
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                process_group=0, env={**os.environ, "PYTHONUNBUFFERED": "1"},
                preexec_fn=_end_with_parent,
            )  # fmt: skip
            code = _waited(process, asked)
    except OSError as error:
        raise SystemFailure(f"{log}: cannot run farline: {error.strerror}") from error
    ran = Ran(code, time.monotonic() - begun, _cpu_s() - before, _last_line(log, start))
    if asked():
        raise InterruptedRun("stopped; --resume continues where this ended")
    return ran


def _end_with_parent() -> None:
    """Interrupts this process when its parent has died, `kill -9` included."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)


def _waited(process: subprocess.Popen[bytes], asked: Asked) -> int:
    has_asked = False
    while True:
        try:
            return process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            if asked() and not has_asked:
                has_asked = True
                process.send_signal(signal.SIGINT)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _last_line(log: Path, start: int) -> str:
    lines = log.read_bytes()[start:].decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it printed nothing"
