"""Where a copy's lines go: standard output and standard error, which may be closed or full.

Whoever reads them may leave (`farline copy -v ... | head`); files under way are no reason to.
"""

from __future__ import annotations

import errno
import os
import sys

import click

from farline.errors import FarlineError, SystemFailure


class Output:
    """Writes lines; from the first that cannot be written on, the rest goes nowhere."""

    def __init__(self) -> None:
        """Nothing has gone wrong yet."""
        self.error: FarlineError | None = None
        """Why results could not be written, unless it was their reader who left."""

    def line(self, text: str, err: bool = False) -> None:
        """A line of the results; with `err`, of what people are told meanwhile."""
        try:
            click.echo(text, err=err)
        except OSError as error:
            self._drop(sys.stderr.fileno() if err else sys.stdout.fileno())
            if not err and error.errno != errno.EPIPE:
                self.error = SystemFailure(f"standard output: {error.strerror}")

    @staticmethod
    def _drop(number: int) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
