"""The server's side of a copy over ssh: what it says of itself, and how long it serves.

It ends when its input closes: when ssh goes, so does the server.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import ProtocolError
from farline.spec.json_text import read_object
from farline.spec.path_text import to_path_text
from farline.spec.user_folders import expanded
from farline.tools.kernel_limits import own_buffers
from farline.tools.native import Server, mint_ticket
from farline.tools.temporary_state import TICKET_S, temporary_state

if TYPE_CHECKING:
    from farline.spec._types import ServerConfig
    from farline.tools import StopQuestion

DEFAULT_PORT = 5470
_POLL_S = 0.25
_SESSIONS = 16
"""Sessions at once: one that hangs does not keep the next attempt of the same copy out."""

Configured = Callable[[Path], "ServerConfig"]
"""How to serve, with a folder for the server's state."""

Announce = Callable[[dict[str, Any]], None]
"""Told once what the other end has to know."""


def serve_copy(
    configured: Configured,
    may: str,
    announce: Announce,
    should_stop: StopQuestion,
    closed: threading.Event,
) -> None:
    """Serves whoever has the ticket that is announced, until `closed` is set or somebody stops it.

    Raises:
        FarlineError: when it cannot listen.
    """
    with temporary_state() as state:
        config = configured(state)
        port = config.get("port", DEFAULT_PORT)
        server = Server(
            {**config, "port": 0 if port == DEFAULT_PORT else port, "max_sessions": _SESSIONS}
        )
        try:
            announce(ready_line(server, str(state), may))
            while not should_stop() and not closed.is_set():
                server.poll(_POLL_S)
        finally:
            server.stop()
            server.join()


def serve_copy_back(
    configured: Configured,
    may: str,
    announce: Announce,
    should_stop: StopQuestion,
    lines: queue.Queue[bytes],
) -> None:
    """The same for a host that cannot be connected to: it connects to its client.

    Each line, `{"connect_to": "ADDRESS:PORT"}`, is a session; an empty one is the end.

    Raises:
        FarlineError: for a line that names no address, and when it cannot connect.
    """
    with temporary_state() as state:
        config = configured(state)
        ticket = mint_ticket(str(state), _loopback(f":{DEFAULT_PORT}"), _scope(may), {}, TICKET_S)
        servers: list[Server] = []
        try:
            announce(_ready(DEFAULT_PORT, ticket))
            while not should_stop():
                with contextlib.suppress(queue.Empty):
                    if not (line := lines.get(timeout=_POLL_S)):
                        break
                    servers.append(Server(config, _address(line)))
        finally:
            _end(servers)


def _end(servers: Iterable[Server]) -> None:
    for server in servers:
        server.stop()
        server.join()


def _address(line: bytes) -> str:
    try:
        return str(read_object(line)["connect_to"])
    except (ValueError, KeyError) as error:
        raise ProtocolError(
            f"--connect-back: no address arrived on standard input: {error}"
        ) from None


def ready_line(server: Server, state_dir: str, may: str) -> dict[str, Any]:
    """What the other end has to know; the ticket reaches whatever the user may reach."""
    address = server.addresses()[0]
    ticket = mint_ticket(state_dir, _loopback(address), _scope(may), {}, TICKET_S)
    return _ready(int(address.rpartition(":")[2]), ticket)


def _scope(may: str) -> Any:
    return {"may": may, "root": "/"}


def _ready(port: int, ticket: str) -> dict[str, Any]:
    buffers = own_buffers()
    # sshd says: client's address and port, own address and port.
    client = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
    return {
        "event": "ready",
        "version": version("farline"),
        "port": port,
        "ticket": ticket,
        "home": to_path_text(os.fsencode(expanded("~"))),
        "tcp_send_bytes": buffers.send_bytes,
        "tcp_receive_bytes": buffers.receive_bytes,
        "client": client or None,
    }


def _loopback(address: str) -> str:
    """A ticket needs an address; whoever started this server knows the right one."""
    return f"127.0.0.1:{address.rpartition(':')[2]}"
