"""A service manager such as systemd: sockets and secrets from it, and what it is told.

It is told when the service is ready, alive and stopping (sd_notify(3)); without `NOTIFY_SOCKET`
nobody asks, and nothing is sent. Sockets come as sd_listen_fds(3) says, secrets as files in a
folder (systemd.exec(5), Credentials).
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Collection, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path

from farline.logs import Log

_LOG = Log(__name__)


_FIRST_SOCKET = 3
_COUNT = re.compile(r"\d{1,4}", re.ASCII)


def sockets_handed_down(environment: MutableMapping[str, str] = os.environ) -> range:
    """Numbers of the descriptors on which this process is to listen; empty where nobody said so.

    They are taken once: programs that this one starts do not hear of them (sd_listen_fds(3)).
    """
    meant_for, count = environment.pop("LISTEN_PID", ""), environment.pop("LISTEN_FDS", "")
    environment.pop("LISTEN_FDNAMES", None)
    if meant_for != str(os.getpid()) or not _COUNT.fullmatch(count):
        return range(0)
    sockets = range(_FIRST_SOCKET, _FIRST_SOCKET + int(count))
    for number in sockets:
        # What is no descriptor is refused by its number where it is listened on.
        with suppress(OSError):
            os.set_inheritable(number, False)
    return sockets


def credentials_folder(
    names: Collection[str], environment: Mapping[str, str] = os.environ
) -> Path | None:
    """The folder of this service's secrets, if all these files are in it."""
    folder = environment.get("CREDENTIALS_DIRECTORY")
    if not folder or not all((Path(folder) / name).is_file() for name in names):
        return None
    return Path(folder)


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
