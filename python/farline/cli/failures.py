"""How an error is printed: one line on standard error; a document too, where JSON was asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import click

from farline.cli.shown import shown
from farline.errors import FarlineError

_COMPACT_J = r"-[A-Za-z0-9]*J[A-Za-z0-9]*"


def json_style(arguments: Sequence[str]) -> str | None:
    """`farline`, `iperf3`, `stream`, `events` or nothing, from the raw arguments.

    Raw, since an error in the arguments themselves must come as JSON too.
    """
    if arguments[:1] == ["copy"]:
        # -J is ssh's here, and the events are farline's own.
        events = {"--json-stream", "--order"}.intersection(arguments)
        return "events" if events else "farline" if "--json" in arguments else None
    for argument in arguments:
        if argument == "--json-stream":
            return "stream"
        if argument == "--json=iperf3" or re.fullmatch(_COMPACT_J, argument):
            return "iperf3"
        if argument == "--json":
            return "farline"
    return None


def print_failure(error: FarlineError, style: str | None) -> None:
    """One line for people; the document of `style` for programs."""
    click.echo(f"farline: {shown(error.message)}", err=True)
    if style is not None:
        click.echo(json.dumps(failure_document(error, style)))


def failure_document(error: FarlineError, style: str) -> dict[str, object]:
    """What takes the place of the result: our document, iperf3's, or the last event."""
    if style == "iperf3":
        return {"start": {}, "intervals": [], "end": {}, "error": f"error - {error.message}"}
    if style == "stream":
        return {"event": "error", "data": f"error - {error.message}"}
    if style == "events":
        return {"event": "error", "data": error.failure()}
    return {"schema": 1, "error": error.failure()}
