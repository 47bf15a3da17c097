"""Which of a host's addresses is reached on the shortest way from another host."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from farline.errors import UsageError

if TYPE_CHECKING:
    from farline.spec._types import Topology
    from farline.testbed.host import Host


def nearest_port(topology: Topology, origin: Host, target: Host) -> int:
    """Place among the target's ports of the one with the fewest links on the way; ties: the first.

    Only routers forward, so an address is reached over its own link or not at all.

    Raises:
        UsageError: when no links join them.
    """
    if origin.name == target.name:
        return 0
    distance = _distances(topology, origin.name)
    ways = [
        (distance[far], place)
        for place, port in enumerate(target.ports)
        if (far := _far_end(topology, port.link, target.name)) in distance
    ]
    if not ways:
        raise UsageError(f"testbed: no links join {origin.name!r} and {target.name!r}")
    return min(ways)[1]


def _far_end(topology: Topology, link: str, near: str) -> str:
    found = next(item for item in topology["links"] if item["name"] == link)
    return found["b"] if found["a"] == near else found["a"]


def _distances(topology: Topology, origin: str) -> dict[str, int]:
    """Links from `origin` to itself and to the routers it reaches."""
    routers = set(topology.get("routers") or ())
    distance = {origin: 0}
    waiting = deque([origin])
    while waiting:
        point = waiting.popleft()
        for link in topology["links"]:
            for near, far in ((link["a"], link["b"]), (link["b"], link["a"])):
                if near == point and far in routers and far not in distance:
                    distance[far] = distance[point] + 1
                    waiting.append(far)
    return distance
