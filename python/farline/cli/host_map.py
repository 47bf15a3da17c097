"""`farline host --map`: NUMA nodes, cores and interfaces, and where streams should run."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator

import click

from farline.findings.host_map import Placement, map_document, placements
from farline.spec.units import counted, rate_human, size_human
from farline.tools.host_layout import HostLayout, Nic, NumaNode, cpu_text, host_layout

MOST_SHOWN = 16
"""CPUs that a line shows; `--json` has all."""


def print_map(as_json: bool) -> None:
    """Prints the map of this host."""
    layout, allowed = host_layout(), os.sched_getaffinity(0)
    if as_json:
        click.echo(json.dumps(map_document(layout, allowed), indent=2))
        return
    for line in map_lines(layout, allowed):
        click.echo(line)


def map_lines(layout: HostLayout, allowed: Collection[int] | None = None) -> Iterator[str]:
    """A line for each node, and below it those of its interfaces.

    `allowed` are the CPUs that this process may use, if not all.
    """
    nodes, cpus = counted(len(layout.nodes), "NUMA node"), counted(len(layout.cpus), "CPU")
    yield f"{nodes}, {cpus} in {counted(len(layout.siblings), 'core')}"
    if allowed is not None and not set(layout.cpus) <= set(allowed):
        yield f"farline may use CPUs {cpu_text(allowed)} here"
    placed = {one.nic: one for one in placements(layout, allowed)}
    known = {node.number for node in layout.nodes}
    for node in layout.nodes:
        yield _node_text(layout, node)
        for nic in layout.nics:
            at = nic.numa_node if nic.numa_node in known else layout.nodes[0].number
            if at == node.number:
                yield from _nic_lines(nic, placed.get(nic.name))
    if not layout.nics:
        yield "no network interface has a device of its own here"


def _node_text(layout: HostLayout, node: NumaNode) -> str:
    memory = "" if node.memory_bytes is None else f", {size_human(node.memory_bytes)} of memory"
    far = [
        f"{distance} to node {other.number}"
        for other, distance in zip(layout.nodes, node.distances, strict=False)
        if other.number != node.number
    ]
    distance = f"; distance {', '.join(far)}" if far else ""
    return f"node {node.number}: CPUs {cpu_text(node.cpus) or 'none'}{memory}{distance}"


def _nic_lines(nic: Nic, placement: Placement | None) -> Iterator[str]:
    words = [
        "up" if nic.is_up else "down",
        rate_human(nic.speed_bps) if nic.speed_bps else "speed unknown",
        nic.driver or "driver unknown",
        counted(nic.queues, "queue"),
        f"interrupts on CPUs {cpu_text(nic.irq_cpus)}" if nic.irq_cpus else "interrupts unknown",
    ]
    yield f"  {nic.name}: {', '.join(words)}"
    if placement is not None and placement.cpus:
        shown = ",".join(map(str, placement.cpus[:MOST_SHOWN]))
        yield f"    streams: --client-cpus {shown} ({placement.why})"
