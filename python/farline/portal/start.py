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

DEFAULT_PORT = 5480
BACKLOG = 2048
GRACE_S = 5
"""Seconds that open requests have when the service is to stop; listeners are cut off then."""


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
    import uvicorn

    from farline.portal.app import create_service

    service = create_service(settings)
    token, _ = service.access.make(LOGIN, user or getpass.getuser(), SCOPES, LOGIN_S)
    config = uvicorn.Config(
        service.app, log_config=None, access_log=False, server_header=False, http="h11", ws="none",
        lifespan="on", timeout_graceful_shutdown=GRACE_S, limit_concurrency=4000,
        proxy_headers=listener.family == socket.AF_UNIX, forwarded_allow_ips="*",
    )  # fmt: skip
    ready(token)
    uvicorn.Server(config).run(sockets=[listener])


def with_port(address: Address, listener: socket.socket) -> Address:
    """The address with the port that the kernel chose."""
    if listener.family == socket.AF_UNIX:
        return address
    return replace(address, port=int(listener.getsockname()[1]))
