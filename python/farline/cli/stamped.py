"""A program on a testbed's host, and at its end a line that says whether the emulation held."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

import click

from farline.cli.path_text import stamp_line
from farline.errors import FarlineError, UsageError

if TYPE_CHECKING:
    from farline.testbed import Testbed

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


def run_stamped(bed: Testbed, argv: Sequence[str]) -> int:
    """Runs `argv`, prints the stamp's line, and ends as the program did.

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
        code = program.start(argv).wait()
    except OSError as error:
        raise UsageError(f"{argv[0]}: {error.strerror}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    click.echo(f"farline: {_stamp_text(bed, mark)}", err=True)
    return code if code >= 0 else _die_of(-code)


def _stamp_text(bed: Testbed, mark: int) -> str:
    """The stamp's line; why there is none must not hide how the program ended."""
    try:
        return stamp_line(bed.stamp(mark))
    except FarlineError as error:
        return f"no stamp: {error.message}"


def _die_of(number: int) -> int:
    """Ends this process by a signal, as the program was; the shell's code for it if that fails."""
    with suppress(OSError, ValueError):  # SIGKILL's action cannot be set, and need not be
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
