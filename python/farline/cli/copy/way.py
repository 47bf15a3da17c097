"""How the engine reaches the other end of a copy: a server by ticket, one over ssh, one in here.

A way is opened for each attempt; what still stands from the attempt before is used again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from farline.cli.copy.blame import Names
from farline.cli.copy.place import Here, Host, ServerPlace, SshHost
from farline.errors import (
    FarlineError,
    ProtocolError,
    TimeoutFailure,
    UnreachableError,
    UsageError,
)
from farline.tools.native import Target, make_contact, parse_target

if TYPE_CHECKING:
    from farline.tools import StopQuestion
    from farline.tools.native import Contact, Server
    from farline.tools.ssh import RemoteServer, SshCommand, Tunnel

_CONNECT_S = 5.0

FRESH_S = 3 * 86_400.0
"""A server over ssh serves so long before the next session has a new one with a new ticket."""

HERE_S = 600.0
"""A ticket within this process is made for one session, and is good for so long to begin it."""

_BUFFERS = {"send": "/proc/sys/net/ipv4/tcp_wmem", "receive": "/proc/sys/net/ipv4/tcp_rmem"}


@dataclass(frozen=True)
class Buffers:
    """The largest buffers that a host gives a TCP stream."""

    send_bytes: int
    receive_bytes: int


def own_buffers() -> Buffers:
    """Those of this host; 4 MiB and 6 MiB, the kernel's defaults, where they cannot be read."""

    def largest(path: str, otherwise: int) -> int:
        try:
            return int(Path(path).read_text(encoding="ascii").split()[2])
        except (OSError, ValueError, IndexError):
            return otherwise

    return Buffers(largest(_BUFFERS["send"], 4 << 20), largest(_BUFFERS["receive"], 6 << 20))


def own_cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


class Way(Protocol):
    """Leads to the other end."""

    def open(self, should_stop: StopQuestion) -> Target:
        """The server to go to now.

        Raises:
            FarlineError: when it cannot be reached.
        """

    def path(self, path: str) -> str:
        """A path there, as the server takes it. The way is open."""

    def names(self) -> Names:
        """What the two ends are called."""

    def buffers(self) -> Buffers | None:
        """Buffers of the other host, if it has said."""

    def advice(self, error: FarlineError) -> str:
        """What may help against an error on this way, if anything; it follows the error's line."""

    def close(self) -> None:
        """Ends what was started for it."""


@dataclass(eq=False, repr=False)
class ServerWay:
    """A standing server."""

    place: ServerPlace

    def open(self, should_stop: StopQuestion) -> Target:
        """What the URL says; a remembered ticket is found where the run begins."""
        return parse_target(self.place.url)

    def path(self, path: str) -> str:
        """As it is: below the ticket's root."""
        return path

    def names(self) -> Names:
        """The server, without its ticket."""
        return Names(str(self.place))

    def buffers(self) -> None:
        """It has not said."""

    def advice(self, error: FarlineError) -> str:
        """Nothing that the error does not say."""
        return ""

    def close(self) -> None:
        """Nothing was started."""


def tell_waits(way: Way, tell: Callable[[str], None]) -> None:
    """Has `way` tell of a wait that is long for a person."""
    if isinstance(way, SshWay):
        way.tell = tell


def from_home(path: str, home: str) -> str:
    """A path in full, of one that begins at a home folder.

    Raises:
        UsageError: for somebody else's home folder.
    """
    if path == "~" or path.startswith("~/"):
        path = path[2:]
    elif path.startswith("~"):
        raise UsageError(f"{path}: only one's own ~ is known; write the path in full")
    if path.startswith("/"):
        return path
    # `host:` is what is in the home folder, as with rsync.
    return f"{home.rstrip('/')}/{'' if path == '.' else path}"


@dataclass(eq=False, repr=False)
class SshWay:
    """A server that ssh starts for this copy alone."""

    place: SshHost
    ssh: SshCommand
    may: str
    arguments: Sequence[str] = ()
    tunnelled: bool = False
    tell: Callable[[str], None] | None = None
    _server: RemoteServer | None = field(default=None, init=False)
    _tunnel: Tunnel | None = field(default=None, init=False)
    _name: str | None = field(default=None, init=False)
    _until_s: float = field(default=0.0, init=False)

    def open(self, should_stop: StopQuestion) -> Target:
        """Starts it over ssh, unless it runs; one whose ticket is old is started anew."""
        from farline.tools.ssh import RemoteServer, Tunnel

        if not self._server or not self._server.is_alive or time.monotonic() > self._until_s:
            self.close()
            self._until_s = time.monotonic() + FRESH_S
            words = [self.may, *self.arguments]
            words += ["--single-port", "-B", "127.0.0.1"] if self.tunnelled else []
            server = RemoteServer(self.ssh, self.place.target, words, should_stop, self.tell)
            self._server = server
        ready = self._server.ready
        if not self.tunnelled:
            return ready.target(self.host_name())
        if self._tunnel is None or not self._tunnel.is_alive:
            self._tunnel = Tunnel(self.ssh, self.place.target, ready.port, should_stop)
        return ready.target("127.0.0.1", self._tunnel.port)

    def host_name(self) -> str:
        """The host's name behind an alias of ssh's configuration."""
        if self._name is None:
            self._name = self.ssh.host_name(self.place.target, self.place.host)
        return self._name

    def path(self, path: str) -> str:
        """From the root; relative ones begin at the home folder."""
        assert self._server is not None
        return from_home(path, self._server.ready.home)

    def names(self) -> Names:
        """The host as ssh knows it."""
        return Names(self.place.target)

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
        if isinstance(error, UnreachableError | TimeoutFailure):
            return (
                "; ssh got there, so a firewall may stand before the port: --tunnel takes the data"
                " through ssh, --data-ports and --single-port choose ports"
            )
        return ""

    def close(self) -> None:
        """Ends tunnel and server."""
        for part in (self._tunnel, self._server):
            if part is not None:
                part.close()
        self._tunnel = self._server = None


@dataclass(eq=False, repr=False)
class BackWay(SshWay):
    """A server that ssh starts for this copy, and that connects to this host for each session."""

    port: int = 0
    """Where this host waits for it; 0 lets the kernel choose."""

    def open(self, should_stop: StopQuestion) -> Target:
        """Starts it over ssh, unless it runs."""
        target = super().open(should_stop)
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
                f"{self.place.target}: --connect-back: ssh there does not say where this host is"
                " (SSH_CONNECTION is not set)"
            )
        return client

    def advice(self, error: FarlineError) -> str:
        """The other host did not get here: a firewall on this side, most likely."""
        if isinstance(error, TimeoutFailure):
            return "; a firewall may stand before this host: --connect-back PORT names the port"
        return ""


@dataclass(eq=False, repr=False)
class HereWay:
    """A server in this process: both ends of the copy are on this host."""

    _server: Server | None = field(default=None, init=False)
    _state: str = field(default="", init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)

    def open(self, should_stop: StopQuestion) -> Target:
        """Starts it on the loopback, for a ticket that nobody else has."""
        from farline.cli.passing_state import passing_state
        from farline.tools.native import Server, mint_ticket

        if self._server is None:
            self._state = str(self._stack.enter_context(passing_state()))
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
        from farline.cli.copy.place import path_here

        return path if path.startswith("/") else f"{path_here()}/{path}"

    def names(self) -> Names:
        """Both are this host: none needs a name."""
        return Names("")

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


def way_to(
    host: Host,
    may: str,
    ssh: SshCommand | None,
    arguments: Sequence[str],
    tunnelled: bool,
    back_port: int | None = None,
) -> Way:
    """The way to `host`, which `may` be read from or written to."""
    if isinstance(host, SshHost):
        assert ssh is not None
        if back_port is not None:
            return BackWay(host, ssh, may, [*arguments, "--connect-back"], port=back_port)
        return SshWay(host, ssh, may, arguments, tunnelled)
    if isinstance(host, ServerPlace):
        return ServerWay(host)
    assert isinstance(host, Here)
    return HereWay()


def first_contact(target: Target, family: str | None = None) -> Contact | None:
    """Connects to a server: tells of the path, and a session begins with it.

    None if it does not come about: a failure is left to the run, which says it better.
    """
    try:
        return make_contact(target, family or "any", _CONNECT_S)
    except FarlineError:
        return None


def interface_bps(address: str) -> int | None:
    """Speed of the interface that has `address`, if its driver knows it."""
    from farline.tools.native import host_facts

    for interface in host_facts()["interfaces"]:
        if address in interface["addresses"]:
            return interface["speed_bps"]
    return None
