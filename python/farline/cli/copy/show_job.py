"""Follows a copy's job with a view, and says what it came to."""

from __future__ import annotations

import select
import sys
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING

import click

from farline.cli.option_words import in_flags
from farline.cli.shown import shown
from farline.copying.job import CopyJob, CopyResult
from farline.errors import FarlineError
from farline.spec.units import counted
from farline.tools import Stop
from farline.tools.events import DeletionPlanned
from farline.tools.signals import handled_by

if TYPE_CHECKING:
    from farline.cli.copy.view import View


def show(job: CopyJob, view: View, destination: str = "") -> int:
    """Drives `job` to its end, which a signal may ask for; the exit code.

    A second signal asks for its end at once. `destination` is what a question names.

    Raises:
        FarlineError: when no session came about.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        job.cancel(at_once=job.stop_wanted is not Stop.GO_ON)

    try:
        with handled_by(stop), job:
            for event in job:
                if isinstance(event, DeletionPlanned):
                    view.close()
                    if _is_typed(event.names, destination, job):
                        job.confirm_deletion()
                view.event(event)
        return _finish(job.wait(), view)
    finally:
        view.close()


def _is_typed(count: int, destination: str, job: CopyJob) -> bool:
    """Whether a person types the count."""
    asks = f"delete {counted(count, 'name')} at {shown(destination)}? type {count}: "
    click.echo(asks, nl=False, err=True)
    # A read would begin again by itself after Ctrl-C: whoever asks must look up between.
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        if job.stop_wanted is not Stop.GO_ON:
            return False
    return sys.stdin.readline().strip() == str(count)


def _finish(result: CopyResult, view: View) -> int:
    """Shows what it came to; the exit code."""
    error = None if result.error is None else in_flags(result.error)
    view.finish(result.record, _places(result))
    if error is not None and result.record is None:
        raise error
    told = [error] if error is not None else [result.receipt_error, view.out.error]
    for one in told:
        if one is not None:
            view.out.line(f"farline: {shown(one.message)}", err=True)
    return result.exit_code or _code(view.out.error)


def _code(error: FarlineError | None) -> int:
    return 0 if error is None else error.exit_code


def _places(result: CopyResult) -> Mapping[str, str]:
    """Where run and receipt are."""
    known = {"run": result.kept_run, "receipt": result.receipt}
    return {name: where for name, where in known.items() if where is not None}
