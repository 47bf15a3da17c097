"""A program on a testbed's host, and whether the emulation held meanwhile."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from farline.errors import FarlineError, UsageError
from farline.testbeds.bed import Testbed
from farline.tools.signals import waited

if TYPE_CHECKING:
    from farline.spec._types import ValidityStamp

_HANDED_ON = (signal.SIGTERM, signal.SIGHUP)


class _Program:
    """The program, which signals may be meant for before it is there."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: list[int] = []

    def start(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts it, and hands on what came meanwhile."""
        self._process = subprocess.Popen(argv)
        for number in self._asked:
            self._process.send_signal(number)
        return self._process

    def hand_on(self, number: int, _frame: FrameType | None) -> None:
        """Signal handler: Ctrl-C reaches the program from the terminal, the others from here."""
        if number not in _HANDED_ON:
            return
        if self._process is None:
            self._asked.append(number)
        else:
            self._process.send_signal(number)


@dataclass(frozen=True)
class StampedEnd:
    """How a program ended (a signal's number is negative), and the stamp, or why there is none."""

    code: int
    stamp: ValidityStamp | FarlineError


def run_with_stamp(bed: Testbed, argv: Sequence[str]) -> StampedEnd:
    """Runs `argv` to its end.

    Ctrl-C reaches the program from the terminal; SIGTERM and SIGHUP are passed on.

    Raises:
        UsageError: when there is no such program.
        UnreachableError: when the bed is gone before the program starts.
    """
    mark = bed.mark()
    program = _Program()
    # A handler, not SIG_IGN for Ctrl-C: the program would start with it ignored as well. What is
    # ignored already (`nohup`) stays so, for the program too.
    heard = [
        number
        for number in (*_HANDED_ON, signal.SIGINT)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, program.hand_on) for number in heard}
    try:
        code = waited(program.start(argv))
    except OSError as error:
        raise UsageError(f"{argv[0]}: {error.strerror}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    try:
        return StampedEnd(code, bed.stamp(mark))
    except FarlineError as error:
        # Why there is none must not hide how the program ended.
        return StampedEnd(code, error)
