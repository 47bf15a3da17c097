"""A program on a testbed's host, and at its end a line that says whether the emulation held."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress

import click

from farline.cli.path_text import stamp_line
from farline.errors import FarlineError
from farline.testbeds import Testbed
from farline.testbeds.stamped import run_with_stamp


def run_stamped(bed: Testbed, argv: Sequence[str]) -> int:
    """Runs `argv`, prints the stamp's line, and ends as the program did.

    Raises:
        UsageError: when there is no such program.
        UnreachableError: when the bed is gone before the program starts.
    """
    end = run_with_stamp(bed, argv)
    if isinstance(end.stamp, FarlineError):
        text = f"no stamp: {end.stamp.message}"
    else:
        text = stamp_line(end.stamp)
    click.echo(f"farline: {text}", err=True)
    return end.code if end.code >= 0 else _die_of(-end.code)


def _die_of(number: int) -> int:
    """Ends this process by a signal, as the program was; the shell's code for it if that fails."""
    with suppress(OSError, ValueError):  # SIGKILL's action cannot be set, and need not be
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
