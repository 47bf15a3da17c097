"""What a service manager such as systemd is told: ready, alive, stopping (sd_notify(3)).

Without `NOTIFY_SOCKET` nobody asks, and nothing is sent.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping

from farline.logs import Log

_LOG = Log(__name__)


class ServiceManager:
    """The socket that the environment names, and how often it wants to hear of this process."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Takes both from `environment`; the watchdog's only if it is meant for this process."""
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._now_s = now_s
        self._told_s = now_s()
        self._every_s: float | None = None
        if environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid()):
            period = environment.get("WATCHDOG_USEC", "")
            self._every_s = int(period) / 2e6 if period.isdigit() and int(period) else None

    def ready(self, status: str) -> None:
        """Everything listens; `status` is a line for people."""
        self._tell(f"READY=1\nSTATUS={status}")

    def alive(self) -> None:
        """Called at least every half of the watchdog's period; tells it when half of it is over."""
        now_s = self._now_s()
        if self._every_s is not None and now_s - self._told_s >= self._every_s:
            self._told_s = now_s
            self._tell("WATCHDOG=1")

    def stopping(self) -> None:
        """No new sessions; those that run are ended."""
        self._tell("STOPPING=1")

    def _tell(self, message: str) -> None:
        if not self._address:
            return
        # A name that begins with @ is in the abstract namespace.
        address = f"\0{self._address[1:]}" if self._address[0] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as one:
                one.sendto(message.encode(), address)
        except OSError as error:
            _LOG.warning("service manager not reached", socket=self._address, reason=error.strerror)
