"""A program on a testbed's host, and at its end a line that says whether the emulation held."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING

import click

from farline.cli.path_text import stamp_line

if TYPE_CHECKING:
    from farline.testbed import Testbed


def run_stamped(bed: Testbed, argv: Sequence[str]) -> int:
    """Runs `argv`, prints the stamp's line, and ends as the program did.

    Ctrl-C reaches the program from the terminal; SIGTERM and SIGHUP are passed on.
    """
    mark = bed.mark()
    process = subprocess.Popen(argv)

    def hand_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    click.echo(f"farline: {stamp_line(bed.stamp(mark))}", err=True)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code
