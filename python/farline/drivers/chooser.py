"""Which tool does a run, and where its server is to be."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from farline.drivers.catalogue import NATIVE, tool_of
from farline.drivers.driven_tool import DrivenTool
from farline.drivers.places import Here, HostOfBed, InHost, OverSsh, ServerPlace, Standing
from farline.errors import SpecError
from farline.tools import SteppedTool
from farline.tools.native import NativeTool, parse_target
from farline.tools.ssh_command import SshCommand

if TYPE_CHECKING:
    from farline.tools.native import ConnectionKeeper

FindHost = Callable[[str], HostOfBed | None]
"""The testbed's host behind an address; None where it is of none, or there is no testbed."""


def no_testbed(_address: str) -> HostOfBed | None:
    """Outside of testbeds there is no such host."""
    return None


class ToolChooser:
    """Makes the tool that a spec names.

    `tool_server` says where its server is: `auto` is the testbed's host of the target, this host
    where the target is this host, else a server that runs already.
    """

    def __init__(
        self, find_host: FindHost = no_testbed, ssh: SshCommand | None = None,
        port: int | None = None, login: str | None = None,
    ) -> None:  # fmt: skip
        """`port` is that of a server that runs already, if not the tool's usual one.

        `login` is what ssh logs in at, if not the target.
        """
        self._find_host = find_host
        self._ssh = ssh or SshCommand()
        self._port, self._login = port, login

    def tool(
        self, spec: Mapping[str, Any], target: str, keeper: ConnectionKeeper | None = None
    ) -> SteppedTool:
        """What does the run of `spec` towards `target`; farline over the connection of `keeper`.

        Raises:
            SpecError: when its server cannot be where it is wanted.
        """
        name = tool_of(spec)
        if name == NATIVE:
            return NativeTool(keeper=keeper)
        return self.driven(spec, parse_target(target).host)

    def driven(self, spec: Mapping[str, Any], host: str) -> DrivenTool:
        """The same where it is known that another tool does it."""
        place = self.place(spec.get("tool_server") or "auto", host)
        return DrivenTool(tool_of(spec), place)

    def place(self, wanted: str, host: str) -> ServerPlace:
        """Where the server is, by the word of `tool_server`."""
        bed_host = self._find_host(host)
        if wanted == "ssh":
            return OverSsh(self._login or host, self._ssh)
        if wanted == "here" and not is_here(host):
            raise SpecError(f"tool_server: here, but {host} is not this host; use ssh or standing")
        if wanted == "standing":
            return Standing(self._port)
        if bed_host is not None:
            return InHost(bed_host)
        return Here() if is_here(host) and self._port is None else Standing(self._port)


def is_here(host: str) -> bool:
    """Whether an address or a name is one of this host's own: whether a socket can have it."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host in ("localhost", socket.gethostname())
    if address.is_loopback:
        return True
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True
