"""uvicorn as farline's commands behave: a signal that asks for the end is no failure."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from farline.portal.http_protocol import Protocol
from farline.tools.signals import handled_by

if TYPE_CHECKING:
    from starlette.types import ASGIApp

GRACE_S = 5
"""Seconds that open requests have when the service is to stop; listeners are cut off then."""

MOST_CONNECTIONS = 4000


class Server(uvicorn.Server):
    """Ends in good order at SIGINT, SIGTERM and SIGHUP, and at once when asked again."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        """`ready` is called once requests are answered, and signals taken."""
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to answer."""
        await super().startup(sockets=sockets)
        # What is there now stays. The collector went through all of it again and again, for a
        # tenth of a second in which nobody was answered.
        gc.freeze()
        if self.started:
            self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Takes signals for as long as it serves, and does not raise them again after it."""
        with handled_by(self._asked):
            yield

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def config_of(app: ASGIApp, listener: socket.socket) -> uvicorn.Config:
    """How it is served on a socket. Behind a Unix socket a proxy says who asks."""
    return uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, loop="uvloop", http=Protocol,
        ws="none", lifespan="on", timeout_graceful_shutdown=GRACE_S,
        limit_concurrency=MOST_CONNECTIONS,
        proxy_headers=listener.family == socket.AF_UNIX, forwarded_allow_ips="*",
    )  # fmt: skip


def run(app: ASGIApp, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serves on a socket until a signal."""
    Server(config_of(app, listener), ready).run(sockets=[listener])
