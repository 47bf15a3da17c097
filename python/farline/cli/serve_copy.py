"""`farline serve --copy-session`: what `farline copy` starts over ssh for one copy.

Prints one JSON line (`farline.tools.ssh.Ready`), serves whoever has the ticket in it, and ends
when its standard input closes: when ssh goes, so does the server.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.common import interruptible
from farline.cli.copy_way import own_buffers
from farline.cli.passing_state import TICKET_S, passing_state
from farline.spec.path_text import to_path_text
from farline.tools.native import Server, mint_ticket
from farline.tools.ssh import READY_SCHEMA

if TYPE_CHECKING:
    from farline.spec._types import ServerConfig

DEFAULT_PORT = 5470
_POLL_S = 0.25
_SESSIONS = 16
"""Sessions at once: one that hangs does not keep the next attempt of the same copy out."""


def serve_copy_session(configured: Callable[[Path], ServerConfig], may: str) -> int:
    """Serves until standard input closes or a signal comes; `configured` says how, by a folder."""
    with interruptible(quiet=True) as asked, passing_state() as state:
        config = configured(state)
        port = config.get("port", DEFAULT_PORT)
        server = Server(
            {**config, "port": 0 if port == DEFAULT_PORT else port, "max_sessions": _SESSIONS}
        )
        try:
            click.echo(json.dumps(ready_line(server, str(state), may)))
            sys.stdout.flush()
            closed = _closed_input()
            while not asked() and not closed.is_set():
                server.poll(_POLL_S)
        finally:
            server.stop()
            server.join()
    return 0


def ready_line(server: Server, state_dir: str, may: str) -> dict[str, Any]:
    """What the other end has to know; the ticket reaches whatever the user may reach."""
    from importlib.metadata import version

    address = server.addresses()[0]
    scope: Any = {"may": may, "root": "/"}
    buffers = own_buffers()
    return {
        "event": "ready",
        "schema": READY_SCHEMA,
        "version": version("farline"),
        "port": int(address.rpartition(":")[2]),
        "ticket": mint_ticket(state_dir, _loopback(address), scope, {}, TICKET_S),
        "home": to_path_text(os.fsencode(Path.home())),
        "tcp_send_bytes": buffers.send_bytes,
        "tcp_receive_bytes": buffers.receive_bytes,
    }


def _loopback(address: str) -> str:
    """A ticket needs an address; whoever started this server knows the right one."""
    return f"127.0.0.1:{address.rpartition(':')[2]}"


def _closed_input() -> threading.Event:
    """Is set when standard input ends. What comes over it before is dropped."""
    closed = threading.Event()

    def watch() -> None:
        while os.read(0, 4096):
            pass
        closed.set()

    threading.Thread(target=watch, daemon=True).start()
    return closed
