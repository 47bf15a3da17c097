"""`farline.open_folder`: names on another host, without a copy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from farline.copying.connector import connector_to
from farline.copying.locations import Host, StandingServer, ThisHost, read_location
from farline.copying.request import DataPath
from farline.errors import AuthError, ProtocolError, TimeoutFailure, UsageError
from farline.tools import never_stop
from farline.tools.job import result_of
from farline.tools.known_servers import KnownServers
from farline.tools.names import Name, NameSession
from farline.tools.native import find_right

if TYPE_CHECKING:
    from farline.copying.connector import Connector
    from farline.tools import StopQuestion
    from farline.tools.native import Target
    from farline.tools.ssh_command import SshCommand

IDLE_S = 45.0
"""After such a silence a new session is begun: servers end silent ones after a minute."""

_Value = TypeVar("_Value")


class Folder:
    """A folder on another host. Paths are below it; it may be shared between threads.

    Names are what `farline.copy` calls them: text, in which bytes that are no UTF-8 and what is
    not printable stand as `\\\\xNN`.
    """

    def __init__(self, host: Host, path: str, connector: Connector, target: Target) -> None:
        """See `open_folder`."""
        self._shown = f"{host}#{path}" if isinstance(host, StandingServer) else f"{host}:{path}"
        self._connector, self._target = connector, target
        self._base = connector.path(path) if path else ""
        self._session: NameSession | None = None
        self._used_s = 0.0
        self._lock = threading.Lock()

    def list(self, path: str = "") -> Iterator[Name]:
        """What is in the folder or in one below it, sorted by name.

        Raises:
            NoSuchName, NoFolder: where there is no such folder.
        """
        return iter(self._do(lambda session: list(session.list(self._at(path)))))

    def stat(self, path: str = "", follow: bool = False, sums: Sequence[str] = ()) -> Name:
        """What a name stands for; `sums` of `blake3`, `adler32`, `md5` read all of the file there.

        Raises:
            NoSuchName: where there is none.
        """
        return self._do(lambda session: session.stat(self._at(path), follow, sums))

    def exists(self, path: str = "") -> bool:
        """Whether something has this name."""
        try:
            self.stat(path)
        except FileNotFoundError:
            return False
        return True

    def make_folder(self, path: str, parents: bool = False) -> int:
        """Makes a folder, with those above it if `parents`; how many were made.

        Raises:
            NameExists: for one that is there, unless `parents`.
        """
        return self._do(lambda session: session.make_folder(self._at(path), parents))

    def rename(self, path: str, to: str, replace: bool = False, parents: bool = False) -> None:
        """Gives a file or folder another name on the same file system.

        Raises:
            NameExists: where something has it already, unless `replace`.
        """
        self._do(lambda session: session.rename(self._at(path), self._at(to), replace, parents))

    def remove(self, path: str, recursive: bool = False) -> int:
        """Removes a file, a link, or a folder: an empty one, unless `recursive`; how many names."""
        return self._do(lambda session: session.remove(self._at(path), recursive))

    def read(self, path: str, offset: int = 0, count: int | None = None) -> bytes:
        """Bytes of a file from `offset` on: up to `count` of them, or all.

        For what is large `farline.copy` is the way.
        """
        most = (1 << 62) if count is None else count
        return self._do(lambda session: session.read(self._at(path), offset, most))

    def close(self) -> None:
        """Ends the session, and the server if ssh started it."""
        with self._lock:
            self._drop()
        self._connector.close()

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<farline folder {self._shown}>"

    def place(self, path: str) -> str:
        """A path as people write it: over ssh, a relative one begins at the home folder."""
        return self._connector.path(path)

    def _at(self, path: str) -> str:
        """Below the folder; `.` and `..` are the server's to judge."""
        path = path.strip("/")
        base = self._base if self._base not in (".", "./") else ""
        return f"{base.rstrip('/')}/{path}" if base and path else base or path

    def _do(self, work: Callable[[NameSession], _Value]) -> _Value:
        with self._lock:
            if time.monotonic() - self._used_s > IDLE_S:
                self._drop()
            if self._session is None:
                self._session = NameSession(self._target)
            try:
                return work(self._session)
            except (ProtocolError, TimeoutFailure, KeyboardInterrupt):
                # It is over, or an answer is still to come.
                self._drop()
                raise
            finally:
                self._used_s = time.monotonic()

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def open_folder(
    location: str,
    *,
    may: str = "read",
    ssh: SshCommand | None = None,
    tunnel: bool = False,
    should_stop: StopQuestion = never_stop,
) -> Folder:
    """Opens a folder on another host: `farline://…#path` by a ticket, or `[user@]host:path` by ssh.

    What may be done follows from the ticket: one to read lists, tells and reads; one to write
    lists, tells, makes, renames and removes. Over ssh, `may` says which of the two is wanted.

    Raises:
        UsageError: for a path on this host.
        AuthError: without a ticket.
        FarlineError: when it cannot be reached.
    """
    at = read_location(location)
    return open_host(at.host, at.path, may=may, ssh=ssh, tunnel=tunnel, should_stop=should_stop)


def open_host(
    host: Host,
    path: str = "",
    *,
    may: str = "read",
    ssh: SshCommand | None = None,
    tunnel: bool = False,
    should_stop: StopQuestion = never_stop,
) -> Folder:
    """As `open_folder`; without a path all names that the ticket reaches, or over ssh all."""
    if isinstance(host, ThisHost):
        raise UsageError(f"{path}: is on this host; name [user@]host:path or a ticket")
    if may not in ("read", "write"):
        raise UsageError(f"may: {may!r} is not allowed; one of: read, write")
    connector = connector_to(host, may, ssh, DataPath(tunnel=tunnel))
    try:
        target = result_of(connector.open(should_stop))
        if isinstance(host, StandingServer):
            target = find_right(target, KnownServers())
            if target.ticket is None:
                raise AuthError(
                    f"{host}: names need a ticket: pass the farline://... line for the folder, "
                    "or store it with farline trust"
                )
        return Folder(host, path, connector, target)
    except BaseException:
        connector.close()
        raise
