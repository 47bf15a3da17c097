"""How the engine reaches the other end of a copy: a server by ticket, one over ssh, one in here.

A connector is opened for each attempt; what still stands from the attempt before is used again.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from farline.copying.host_names import HostNames
from farline.copying.locations import Host, SshHost, StandingServer, ThisHost, working_folder
from farline.copying.pools import NodePool
from farline.errors import (
    FarlineError,
    ProtocolError,
    TimeoutFailure,
    UnreachableError,
    UsageError,
)
from farline.tools.kernel_limits import Buffers, own_buffers
from farline.tools.native import Server, Target, mint_ticket, parse_target
from farline.tools.temporary_state import temporary_state

if TYPE_CHECKING:
    from farline.copying.request import DataPath
    from farline.tools import StopQuestion
    from farline.tools.events import Steps
    from farline.tools.ssh import RemoteServer, Tunnel
    from farline.tools.ssh_command import SshCommand

FRESH_S = 3 * 86_400.0
"""A server over ssh serves so long before the next session has a new one with a new ticket."""

HERE_S = 600.0
"""A ticket within this process is made for one session, and is good for so long to begin it."""


class Connector(Protocol):
    """Leads to the other end."""

    def open(self, should_stop: StopQuestion) -> Steps[Target]:
        """The server to go to now; notices say what takes long meanwhile.

        Raises:
            FarlineError: when it cannot be reached.
        """

    def path(self, path: str) -> str:
        """A path there, as the server takes it. The connector is open."""

    def names(self) -> HostNames:
        """What the two ends are called."""

    def buffers(self) -> Buffers | None:
        """Buffers of the other host, if it has said."""

    def advice(self, error: FarlineError) -> str:
        """What may help against an error of this connection, if anything, behind its line."""

    def close(self) -> None:
        """Ends what was started for it."""


@dataclass(eq=False, repr=False)
class ServerConnector:
    """A standing server."""

    server: StandingServer

    def open(self, should_stop: StopQuestion) -> Steps[Target]:
        """What the URL says; a remembered ticket is found where the run begins."""
        yield from ()
        return parse_target(self.server.url)

    def path(self, path: str) -> str:
        """As it is: below the ticket's root."""
        return path

    def names(self) -> HostNames:
        """The server, without its ticket."""
        return HostNames(str(self.server))

    def buffers(self) -> None:
        """It has not said."""

    def advice(self, error: FarlineError) -> str:
        """Nothing that the error does not say."""
        return ""

    def close(self) -> None:
        """Nothing was started."""


def from_home(path: str, home: str) -> str:
    """A path in full, of one that begins at a home folder.

    Raises:
        UsageError: for somebody else's home folder.
    """
    if path == "~" or path.startswith("~/"):
        path = path[2:]
    elif path.startswith("~"):
        raise UsageError(f"{path}: only your own ~ can be expanded; write the path in full")
    if path.startswith("/"):
        return path
    # `host:` is what is in the home folder, as with rsync.
    return f"{home.rstrip('/')}/{'' if path == '.' else path}"


def _is_known(name: str) -> bool:
    """Whether this host knows an address of that name: behind a proxy of ssh it may not."""
    try:
        return bool(socket.getaddrinfo(name, None))
    except (OSError, UnicodeError):
        return False


@dataclass(eq=False, repr=False)
class SshConnector:
    """A server that ssh starts for this copy alone."""

    host: SshHost
    ssh: SshCommand
    may: str
    arguments: Sequence[str] = ()
    tunnelled: bool = False
    _server: RemoteServer | None = field(default=None, init=False)
    _tunnel: Tunnel | None = field(default=None, init=False)
    _name: str | None = field(default=None, init=False)
    _until_s: float = field(default=0.0, init=False)

    def open(self, should_stop: StopQuestion) -> Steps[Target]:
        """Starts it over ssh, unless it runs; one whose ticket is old is started anew."""
        from farline.tools.ssh import RemoteServer, Tunnel

        if not self._server or not self._server.is_alive or time.monotonic() > self._until_s:
            self.close()
            self._until_s = time.monotonic() + FRESH_S
            words = [self.may, *self.arguments]
            words += ["--single-port", "-B", "127.0.0.1"] if self.tunnelled else []
            server = RemoteServer(self.ssh, self.host.target, words)
            yield from server.start(should_stop)
            self._server, self.ssh = server, server.ssh
        ready = self._server.ready
        if not self.tunnelled:
            return ready.target(self.host_name())
        if self._tunnel is None or not self._tunnel.is_alive:
            tunnel = Tunnel(self.ssh, self.host.target, ready.port)
            yield from tunnel.start(should_stop)
            self._tunnel = tunnel
        return ready.target("127.0.0.1", self._tunnel.port)

    def host_name(self) -> str:
        """The host's name behind an alias of ssh's configuration."""
        if self._name is None:
            self._name = self.ssh.host_name(self.host.target, self.host.host)
        return self._name

    def path(self, path: str) -> str:
        """From the root; relative ones begin at the home folder."""
        assert self._server is not None
        return from_home(path, self._server.ready.home)

    def names(self) -> HostNames:
        """The host as ssh knows it."""
        return HostNames(self.host.target)

    def buffers(self) -> Buffers | None:
        """Buffers of that host."""
        ready = self._server.ready if self._server is not None else None
        if ready is None or not ready.send_buffer_bytes or not ready.receive_buffer_bytes:
            return None
        return Buffers(ready.send_buffer_bytes, ready.receive_buffer_bytes)

    def advice(self, error: FarlineError) -> str:
        """A port that cannot be reached although ssh got there: a firewall, most likely."""
        if self.tunnelled or self._server is None or not self._server.is_alive:
            return ""
        if isinstance(error, UnreachableError) and not _is_known(self.host_name()):
            return "; ssh finds the host another way: use --tunnel to send the data through ssh"
        if isinstance(error, UnreachableError | TimeoutFailure):
            return (
                "; ssh connected, so a firewall may block the data port: use --tunnel to send the "
                "data through ssh, or choose other ports with --data-ports or --single-port"
            )
        return ""

    def close(self) -> None:
        """Ends tunnel and server."""
        for part in (self._tunnel, self._server):
            if part is not None:
                part.close()
        self._tunnel = self._server = None


@dataclass(eq=False, repr=False)
class ReverseConnector(SshConnector):
    """A server that ssh starts for this copy, and that connects to this host for each session."""

    port: int = 0
    """Where this host waits for it; 0 lets the kernel choose."""

    def open(self, should_stop: StopQuestion) -> Steps[Target]:
        """Starts it over ssh, unless it runs."""
        target = yield from super().open(should_stop)
        self.listen_address()
        return target

    def listen_address(self) -> str:
        """Where this host is to wait, in the family of addresses that ssh used.

        Raises:
            ProtocolError: when nobody has told that host where this one is.
        """
        address = self._client()
        return f"{'[::]' if ':' in address else '0.0.0.0'}:{self.port}"

    def listens(self, address: str) -> None:
        """This host waits at `address`: the other one is told."""
        client, port = self._client(), address.rpartition(":")[2]
        assert self._server is not None
        self._server.connect_to(f"[{client}]:{port}" if ":" in client else f"{client}:{port}")

    def _client(self) -> str:
        client = self._server.ready.client if self._server is not None else None
        if client is None:
            raise ProtocolError(
                f"{self.host.target}: --connect-back: ssh on that host does not report the "
                "address of this host (SSH_CONNECTION is not set)"
            )
        return client

    def advice(self, error: FarlineError) -> str:
        """The other host did not get here: a firewall on this side, most likely."""
        if isinstance(error, TimeoutFailure):
            return (
                "; a firewall may block connections to this host: choose an open port with "
                "--connect-back PORT"
            )
        return ""


@dataclass(eq=False, repr=False)
class LocalConnector:
    """A server in this process: both ends of the copy are on this host."""

    _server: Server | None = field(default=None, init=False)
    _state: str = field(default="", init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)

    def open(self, should_stop: StopQuestion) -> Steps[Target]:
        """Starts it on the loopback, for a ticket that nobody else has."""
        yield from ()
        if self._server is None:
            self._state = str(self._stack.enter_context(temporary_state()))
            self._server = Server(
                {
                    "listen": ["127.0.0.1"], "port": 0, "state_dir": self._state,
                    "keep_owners": True,
                }
            )  # fmt: skip
        address = self._server.addresses()[0]
        ticket = mint_ticket(self._state, address, {"may": "write", "root": "/"}, {}, HERE_S)
        return parse_target(ticket)

    def path(self, path: str) -> str:
        """From the root; relative ones begin where this process is."""
        return path if path.startswith("/") else f"{working_folder()}/{path}"

    def names(self) -> HostNames:
        """Both are this host: none needs a name."""
        return HostNames("")

    def buffers(self) -> Buffers:
        """This host's."""
        return own_buffers()

    def advice(self, error: FarlineError) -> str:
        """Nothing that the error does not say."""
        return ""

    def close(self) -> None:
        """Ends it."""
        if self._server is not None:
            self._server.stop()
            self._server.join()
        self._server = None
        self._stack.close()


def connector_to(host: Host, may: str, ssh: SshCommand | None, data_path: DataPath) -> Connector:
    """The connector to `host`, which `may` be read from or written to."""
    if isinstance(host, StandingServer):
        return ServerConnector(host)
    if isinstance(host, ThisHost):
        return LocalConnector()
    if isinstance(host, NodePool):
        raise UsageError(f"{host}: has several nodes: only a copy of files can use them")
    from farline.tools.ssh_command import SshCommand

    ssh, words = ssh or SshCommand(), data_path.server_words()
    if (port := data_path.connect_back) is not None:
        return ReverseConnector(host, ssh, may, [*words, "--connect-back"], port=port)
    return SshConnector(host, ssh, may, words, data_path.tunnel)
