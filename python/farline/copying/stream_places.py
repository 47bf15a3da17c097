"""Where the streams of a copy run best on this node: beside the interface that carries their data.

Asked over the channel of orders (`node_look`) before a copy over nodes begins; the CPUs then stand
in the spec of each session (`client_cpus`, `server_cpus`), which pins streams to them in turn.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from farline.findings.host_map import placement_of
from farline.tools.host_layout import HostLayout, devices_below, host_layout

MOST_CPUS = 256
"""So many a spec may name."""


@dataclass(frozen=True)
class StreamPlace:
    """CPUs for streams, best first, and why these; none where the kernel chooses."""

    cpus: tuple[int, ...]
    why: str

    def document(self) -> dict[str, Any]:
        """As it is answered."""
        return {"cpus": list(self.cpus), "why": self.why}


def stream_place(asked: Mapping[str, Any]) -> StreamPlace:
    """On this node: `own` is its address for data, `towards` an address of the other end's node.

    The interface is the one that has `own`; else the one by which packets leave for `towards`.
    """
    from farline.tools.native import host_facts

    addresses = {one["name"]: one["addresses"] for one in host_facts()["interfaces"]}
    wanted = [*_resolved(asked.get("own")), *_leaving_for(asked.get("towards"))]
    return place_beside(host_layout(), addresses, wanted, os.sched_getaffinity(0))


def place_beside(
    layout: HostLayout,
    addresses: Mapping[str, Iterable[str]],
    wanted: Iterable[str],
    allowed: Iterable[int],
    root: Path = Path("/"),
) -> StreamPlace:
    """The place for streams over the first of `wanted` addresses that an interface has.

    `addresses` are those of each interface, `allowed` the CPUs that this process may use, `root`
    where the kernel's files are that `layout` was read from.
    """
    if len(layout.nodes) < 2:
        return StreamPlace((), "it has one NUMA node")
    name = next((nic for one in wanted for nic, has in addresses.items() if one in has), None)
    if name is None:
        return StreamPlace((), "no interface of its own has the address for data")
    below = devices_below(name, root)
    nics = [nic for nic in layout.nics if nic.name in below]
    numa = {nic.numa_node for nic in nics}
    if not nics or None in numa:
        return StreamPlace((), f"it does not say at which NUMA node {name} is")
    if len(numa) > 1:
        listed = " and ".join(str(node) for node in sorted(numa, key=str))
        return StreamPlace((), f"the devices of {name} are at NUMA nodes {listed}")
    interrupts = {cpu for nic in nics for cpu in nic.irq_cpus}
    best = placement_of(layout, replace(nics[0], irq_cpus=tuple(sorted(interrupts))))
    may = set(allowed)
    cpus = tuple(cpu for cpu in best.cpus if cpu in may)[:MOST_CPUS]
    where = f"{name} is at NUMA node {nics[0].numa_node}"
    return StreamPlace(cpus, where if cpus else f"{where}, whose CPUs farline may not use there")


def _resolved(name: object) -> list[str]:
    """Addresses of a name, as this node knows it."""
    if not isinstance(name, str):
        return []
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def _leaving_for(name: object) -> list[str]:
    """The address of this node on packets to another: of the interface that leads there."""
    for address in _resolved(name):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return [str(probe.getsockname()[0])]
    return []
