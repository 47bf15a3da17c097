"""Which of a host's addresses is reached on the shortest way from another host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farline.testbeds.host import Host


def nearest_port(layout: Mapping[str, Any], origin: Host, target: Host) -> int:
    """Place among the target's ports of the one that its name means on `origin`.

    The emulator's layout says which: `/etc/hosts` and a path's facts mean the same one.

    Raises:
        UsageError: when no links join them.
    """
    hosts = {host["name"]: host for host in layout["hosts"]}
    number = hosts[origin.name]["nearest"][target.name]
    if number is None:
        raise UsageError(f"testbed: no links join {origin.name!r} and {target.name!r}")
    place: int = hosts[target.name]["ports"].index(number)
    return place
