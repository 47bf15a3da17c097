"""The emulated path in a run's record: which bed this process is in, and what it went over."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import UsageError
from farline.testbeds.bed import Testbed
from farline.testbeds.host import BED_VARIABLE, HOST_VARIABLE, SOCKET_VARIABLE

if TYPE_CHECKING:
    from farline.spec._types import EmulatedPath, ValidityStamp


@dataclass(frozen=True)
class CurrentBed:
    """The bed that this process runs in, and the host of it."""

    bed: Testbed
    host: str

    def host_of(self, address: str) -> str | None:
        """Name of the host that a name or an address of the bed belongs to; None if of none."""
        for name, host in self.bed.hosts.items():
            devices = (f"{name}-{device}" for device in host.devices)
            if address in (name, *devices, *host.addresses, *host.addresses6):
                return name
        return None


def current_bed() -> CurrentBed | None:
    """The bed whose host this process runs in; None outside of any.

    Raises:
        UnreachableError: when the environment names a bed that is not up.
        UsageError: when it names one in part.
    """
    known = [os.environ.get(name) for name in (BED_VARIABLE, HOST_VARIABLE, SOCKET_VARIABLE)]
    if not any(known):
        return None
    bed, host, socket = known
    if bed is None or host is None or socket is None:
        raise UsageError(
            f"{BED_VARIABLE}, {HOST_VARIABLE} and {SOCKET_VARIABLE} must be set together"
        )
    return CurrentBed(Testbed(Path(socket).parent), host)


def path_record(
    bed: Testbed,
    client_host: str,
    server_host: str,
    stamp: ValidityStamp,
    server_address: str | None = None,
) -> EmulatedPath:
    """The path between two hosts as a run's record has it, as it stands now.

    `server_address` is the server's address or name that was used, where it is known: of hosts
    that several links join, each has a path of its own.

    Raises:
        UsageError: when one is no host, or no links join them.
    """
    path = bed.path(client_host, server_address or server_host)
    return {
        "testbed": bed.name,
        "client_host": client_host,
        "server_host": server_host,
        "rtt_s": path.rtt_s,
        "rate_bps": path.rate_bps,
        "topology": bed.topology(),
        "stamp": stamp,
    }
