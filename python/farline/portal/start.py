"""Starting a service: its address, the one-time token of who starts it, uvicorn around it."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from farline.errors import SystemFailure
from farline.portal.access import LOGIN, LOGIN_S, SCOPES
from farline.portal.settings import Settings
from farline.tools.service_manager import ServiceManager

DEFAULT_PORT = 5480
BACKLOG = 2048


@dataclass(frozen=True)
class Address:
    """Where a service listens."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT

    @property
    def text(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@contextmanager
def listening(address: Address, unix: Path | None = None) -> Iterator[socket.socket]:
    """A socket that listens; a Unix socket for a proxy on this host, where one is named.

    Raises:
        SystemFailure: when it cannot be had, with what to do.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    made = socket.socket(socket.AF_UNIX if unix else family, socket.SOCK_STREAM)
    try:
        if unix is None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Its connections have it from here: asyncio sets it only where the protocol is named.
            # Without it the second part of an answer waited 40 ms for the first one's receipt.
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.bind((address.host, address.port))
        else:
            with suppress(FileNotFoundError):
                unix.unlink()
            made.bind(str(unix))
            unix.chmod(0o660)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        where = unix or address.text
        raise SystemFailure(
            f"cannot listen on {where}: {error.strerror}; choose another with --listen"
        ) from None
    with made:
        yield made


def serve(
    settings: Settings,
    listener: socket.socket,
    ready: Callable[[str], None],
    user: str | None = None,
) -> None:
    """Serves until SIGINT or SIGTERM. `ready` gets a one-time token once requests are answered.

    Raises:
        SystemFailure: when the database or the store cannot be read.
    """
    from farline.portal.app import create_service
    from farline.portal.server import run

    manager = ServiceManager()

    def told(token: str) -> None:
        """The token is for who started it; a service manager hears that requests are answered."""
        ready(token)
        manager.ready("answering requests")

    service = create_service(settings)
    token, _ = service.access.make(LOGIN, user or getpass.getuser(), SCOPES, LOGIN_S)
    run(service.app, listener, lambda: told(token))
    manager.stopping()


def with_port(address: Address, listener: socket.socket) -> Address:
    """The address with the port that the kernel chose."""
    if listener.family == socket.AF_UNIX:
        return address
    return replace(address, port=int(listener.getsockname()[1]))
