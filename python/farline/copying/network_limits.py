"""What bounds a copy from outside: cores, the interface, the round-trip time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from farline.errors import FarlineError
from farline.tools.native import host_facts, make_contact

if TYPE_CHECKING:
    from farline.tools.native import Contact, Target

_CONNECT_S = 5.0


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
