"""Signals that ask a process to end, handled for the time of a block."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_LOOK_S = 0.5


@contextmanager
def handled_by(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """SIGINT, SIGTERM and, unless it was ignored, SIGHUP go to `handle` within the block."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def waited(process: subprocess.Popen[Any]) -> int:
    """The code with which a process ended; signals are handled meanwhile.

    Python notes a signal and handles it before its next step: one that comes just before a wait
    without a limit would be handled after it.
    """
    while True:
        try:
            return process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            continue
