"""`farline serve --copy-session`: what `farline copy` starts over ssh for one copy.

Prints one JSON line (`farline.tools.ssh.Ready`) behind the mark that was asked for, serves whoever
has the ticket in it, and ends when its standard input closes: when ssh goes, so does the server.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from farline.cli.common import interruptible
from farline.tools import copy_server
from farline.tools.ssh import FIRST_SCHEMA, READY_SCHEMA
from farline.tools.start_mark import mark_of

if TYPE_CHECKING:
    from farline.tools.copy_server import Configured

_LINE_BYTES = 1024


def serve_copy_session(configured: Configured, may: str, nonce: str | None) -> int:
    """Serves until standard input closes or a signal comes; `configured` says how, by a folder."""
    announce = partial(_announce, nonce)
    with interruptible(quiet=True) as asked:
        copy_server.serve_copy(configured, may, announce, asked, _closed_input())
    return 0


def serve_copy_back(configured: Configured, may: str, nonce: str | None) -> int:
    """As `serve_copy_session`, for a host that cannot be connected to: it connects to its client.

    Each line of standard input, `{"connect_to": "ADDRESS:PORT"}`, is a session.
    """
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read_lines, args=(lines,), daemon=True).start()
    with interruptible(quiet=True) as asked:
        copy_server.serve_copy_back(configured, may, partial(_announce, nonce), asked, lines)
    return 0


def _read_lines(lines: queue.Queue[bytes]) -> None:
    """Each line of standard input, and an empty one when it has ended."""
    while line := sys.stdin.buffer.readline(_LINE_BYTES):
        lines.put(line)
    lines.put(b"")


def _announce(nonce: str | None, ready: dict[str, Any]) -> None:
    """Prints the ready line; without a mark for a farline of the first version of the start."""
    mark = "" if nonce is None else mark_of(nonce)
    schema = FIRST_SCHEMA if nonce is None else READY_SCHEMA
    click.echo(mark + json.dumps({**ready, "schema": schema}))
    sys.stdout.flush()


def _closed_input() -> threading.Event:
    """Is set when standard input ends. What comes over it before is dropped."""
    closed = threading.Event()

    def watch() -> None:
        while os.read(0, 4096):
            pass
        closed.set()

    threading.Thread(target=watch, daemon=True).start()
    return closed
