"""A bench as a program: it runs on a release build alone, and when it is stopped leaves nothing.

SIGINT, SIGTERM and SIGHUP end it the way an exception does, so that what it made (files in memory,
servers, hosts, namespaces, control groups) goes as it goes at a bench's end. While that takes its
time, further signals change nothing; only SIGKILL leaves things behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CLEAN_UP_S = 120.0
"""How long a bench may take to remove what it made; the largest has a million files."""
_INSIST_S = 0.1


def program(main: Callable[[], int], *, any_build: bool = False) -> NoReturn:
    """Runs a bench and ends the process with its exit code, or with 128 + the signal's number.

    With `any_build` it runs on a development build too: its rows are no speeds.
    """
    stop_cleanly()
    if not any_build:
        refuse_slow_build()
    try:
        sys.exit(main())
    finally:
        _end_children()


def stop_cleanly() -> None:
    """From now on a signal that stops the process raises `SystemExit`, once.

    A signal that is ignored already, as by nohup, stays so. To be called once, by the main thread.
    """
    seen, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    threading.Thread(target=_insist, args=(seen, threading.get_ident()), daemon=True).start()
    for number in STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _insist(seen: int, main: int) -> None:
    """Sends the main thread its signal again until it has taken it.

    Python notes a signal and looks at it before its next step: one that comes just before the main
    thread begins to wait for a process would be looked at only when that has ended.
    """
    while True:
        (number,) = os.read(seen, 1)
        while signal.getsignal(number) is _stop:
            signal.pthread_kill(main, number)
            time.sleep(_INSIST_S)


def _stop(number: int, _frame: FrameType | None) -> None:
    for other in STOPPING:
        # No SIG_IGN: programs that are started to clean up would inherit it.
        signal.signal(other, _pass)
    name = signal.Signals(number).name
    print(f"bench: stopped by {name}; removing what was made", file=sys.stderr, flush=True)
    raise SystemExit(128 + number)


def _end_children() -> None:
    """Kills what the signal met while it was being started, so that nobody knew of it yet."""
    for listed in Path("/proc/self/task").glob("*/children"):
        for pid in map(int, listed.read_text(encoding="ascii").split()):
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _pass(_number: int, _frame: FrameType | None) -> None:
    """The bench is ending already."""


def refuse_slow_build() -> None:
    """Ends the process where the extension is a development build, but for a short run."""
    from farline.tools.native import version_info

    profile = version_info()["profile"]
    if profile != "release" and "--short" not in sys.argv and not os.environ.get("SHORT"):
        raise SystemExit(
            f"bench: the extension is a {profile} build, whose speeds say nothing: run `make setup`"
            " first, or give --short to see only that the bench works"
        )


def run_until(command: Sequence[str], limit_s: float, output: IO[str] | None = None) -> int:
    """Exit code of a bench in a process of its own, which is ended with this one.

    Raises:
        subprocess.TimeoutExpired: when it took longer; it has ended then.
    """
    with subprocess.Popen(
        command, stdout=output, stderr=None if output is None else subprocess.STDOUT
    ) as child:
        try:
            return child.wait(limit_s)
        finally:
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Lets a bench that still runs clean up."""
    child.terminate()
    try:
        child.wait(CLEAN_UP_S)
    except subprocess.TimeoutExpired:
        print(f"bench: {child.args!r} does not end; it is killed", file=sys.stderr, flush=True)
        child.kill()
