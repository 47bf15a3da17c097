"""`farline serve --copy-session`: what `farline copy` starts over ssh for one copy.

Prints one JSON line (`farline.tools.ssh.Ready`) behind the mark that was asked for, serves whoever
has the ticket in it, and ends when its standard input closes: when ssh goes, so does the server.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.common import interruptible
from farline.copying.network_limits import own_buffers
from farline.errors import ProtocolError
from farline.spec.json_text import read_object
from farline.spec.path_text import to_path_text
from farline.tools.native import Server, mint_ticket
from farline.tools.ssh import FIRST_SCHEMA, READY_SCHEMA
from farline.tools.start_mark import mark_of
from farline.tools.temporary_state import TICKET_S, temporary_state

if TYPE_CHECKING:
    from farline.spec._types import ServerConfig

DEFAULT_PORT = 5470
_POLL_S = 0.25
_LINE_BYTES = 1024
_SESSIONS = 16
"""Sessions at once: one that hangs does not keep the next attempt of the same copy out."""


def serve_copy_back(configured: Callable[[Path], ServerConfig], may: str, nonce: str | None) -> int:
    """As `serve_copy_session`, for a host that cannot be connected to: it connects to its client.

    Each line of standard input, `{"connect_to": "ADDRESS:PORT"}`, is a session.
    """
    with interruptible(quiet=True) as asked, temporary_state() as state:
        config = configured(state)
        ticket = mint_ticket(str(state), _loopback(f":{DEFAULT_PORT}"), _scope(may), {}, TICKET_S)
        lines: queue.Queue[bytes] = queue.Queue()
        servers: list[Server] = []
        try:
            _announce(_ready(DEFAULT_PORT, ticket), nonce)
            threading.Thread(target=_read_lines, args=(lines,), daemon=True).start()
            while not asked():
                with contextlib.suppress(queue.Empty):
                    if not (line := lines.get(timeout=_POLL_S)):
                        break
                    servers.append(Server(config, _address(line)))
        finally:
            for server in servers:
                server.stop()
                server.join()
    return 0


def _read_lines(lines: queue.Queue[bytes]) -> None:
    """Each line of standard input, and an empty one when it has ended."""
    while line := sys.stdin.buffer.readline(_LINE_BYTES):
        lines.put(line)
    lines.put(b"")


def _address(line: bytes) -> str:
    try:
        return str(read_object(line)["connect_to"])
    except (ValueError, KeyError) as error:
        raise ProtocolError(f"--connect-back: no address on standard input: {error}") from None


def _announce(ready: dict[str, Any], nonce: str | None) -> None:
    """Prints the ready line; without a mark for a farline of the first version of the start."""
    mark = "" if nonce is None else mark_of(nonce)
    schema = FIRST_SCHEMA if nonce is None else READY_SCHEMA
    click.echo(mark + json.dumps({**ready, "schema": schema}))
    sys.stdout.flush()


def serve_copy_session(
    configured: Callable[[Path], ServerConfig], may: str, nonce: str | None
) -> int:
    """Serves until standard input closes or a signal comes; `configured` says how, by a folder."""
    with interruptible(quiet=True) as asked, temporary_state() as state:
        config = configured(state)
        port = config.get("port", DEFAULT_PORT)
        server = Server(
            {**config, "port": 0 if port == DEFAULT_PORT else port, "max_sessions": _SESSIONS}
        )
        try:
            _announce(ready_line(server, str(state), may), nonce)
            closed = _closed_input()
            while not asked() and not closed.is_set():
                server.poll(_POLL_S)
        finally:
            server.stop()
            server.join()
    return 0


def ready_line(server: Server, state_dir: str, may: str) -> dict[str, Any]:
    """What the other end has to know; the ticket reaches whatever the user may reach."""
    address = server.addresses()[0]
    ticket = mint_ticket(state_dir, _loopback(address), _scope(may), {}, TICKET_S)
    return _ready(int(address.rpartition(":")[2]), ticket)


def _scope(may: str) -> Any:
    return {"may": may, "root": "/"}


def _ready(port: int, ticket: str) -> dict[str, Any]:
    from importlib.metadata import version

    buffers = own_buffers()
    # sshd says: client's address and port, own address and port.
    client = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
    return {
        "event": "ready",
        "version": version("farline"),
        "port": port,
        "ticket": ticket,
        "home": to_path_text(os.fsencode(Path.home())),
        "tcp_send_bytes": buffers.send_bytes,
        "tcp_receive_bytes": buffers.receive_bytes,
        "client": client or None,
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
