"""Which processors are best for the streams of which interface. Pure.

A stream is worked by a thread. It is fastest on a core beside the memory that the interface writes
to (the same NUMA node), and apart from the CPUs that take the interface's interrupts; two threads
of one core share its units, so each stream gets a core of its own first (Hanford et al. 2013).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from farline.tools.host_layout import HostLayout, Nic, cpu_text


@dataclass(frozen=True, slots=True)
class Placement:
    """CPUs for the streams of an interface, best first, and why these."""

    nic: str
    cpus: tuple[int, ...]
    why: str


def placements(layout: HostLayout, allowed: Collection[int] | None = None) -> list[Placement]:
    """For each interface that is up; of the CPUs that are `allowed`, if they are said."""
    return [placement_of(layout, nic, allowed) for nic in layout.nics if nic.is_up]


def placement_of(layout: HostLayout, nic: Nic, allowed: Collection[int] | None = None) -> Placement:
    """For an interface: one thread of each core of its node, those without its interrupts first."""
    near = _near(layout, nic)
    may = layout.cpus if allowed is None else allowed
    cores = [core for core in layout.siblings if core[0] in near]
    first = {core: next((cpu for cpu in core if cpu in may), None) for core in cores}
    busy = set(nic.irq_cpus)
    quiet = [cpu for core, cpu in first.items() if cpu is not None and not busy & set(core)]
    loud = [cpu for core, cpu in first.items() if cpu is not None and busy & set(core)]
    # Interrupts that may go to any CPU say nothing.
    is_spread = not quiet
    chosen = tuple(loud if is_spread else quiet)
    where = "all CPUs" if near == set(layout.cpus) else f"node {nic.numa_node}, beside it"
    if len(layout.nodes) > 1 and nic.numa_node is None:
        where = "all CPUs: the host does not say which node it is at"
    if not set(layout.cpus) <= set(may):
        where += " that farline may use here"
    apart = "" if is_spread else f", without those of its interrupts ({cpu_text(nic.irq_cpus)})"
    return Placement(nic.name, chosen, f"{where}, one of each core{apart}")


def _near(layout: HostLayout, nic: Nic) -> set[int]:
    """CPUs of its node."""
    for node in layout.nodes:
        if node.number == nic.numa_node and node.cpus:
            return set(node.cpus)
    return set(layout.cpus)


def map_document(layout: HostLayout, allowed: Collection[int] | None = None) -> Mapping[str, Any]:
    """The map as JSON; CPUs are lists of numbers, memory in bytes, speeds in bit/s."""
    return {
        "schema": 1,
        "cpus": list(layout.cpus),
        "allowed_cpus": sorted(layout.cpus if allowed is None else allowed),
        "cores": [list(core) for core in layout.siblings],
        "nodes": [asdict(node) for node in layout.nodes],
        "interfaces": [asdict(nic) for nic in layout.nics],
        "placements": [asdict(one) for one in placements(layout, allowed)],
    }
