"""What bounds a copy from outside: kernels' buffers, cores, the interface, the round-trip time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import FarlineError
from farline.tools.native import host_facts, make_contact

if TYPE_CHECKING:
    from farline.tools.native import Contact, Target

_CONNECT_S = 5.0

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
    for interface in host_facts()["interfaces"]:
        if address in interface["addresses"]:
            return interface["speed_bps"]
    return None
