"""Rules about network interfaces, each asked of every interface that is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from farline.findings.finding import CHECK_MTU, JUMBO_MTU_BYTES
from farline.findings.host_finding import HostFinding, HostView
from farline.spec._types import InterfaceFacts
from farline.spec.units import rate_human

Rule = Callable[[HostView, InterfaceFacts], Iterator[HostFinding]]

STANDARD_MTU_BYTES = 1500
JUMBO_FROM_BPS = 10_000_000_000
"""Rate from which the cost of each packet bounds what a CPU can do."""

QUEUE_PACKETS = 10_000
"""Transmit queue that a FIFO needs at 10 Gbit/s and above."""

_OFFLOADS = {
    "rx-checksumming": "rx",
    "tx-checksumming": "tx",
    "scatter-gather": "sg",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
}
"""Long names of the offloads that bulk data want, and what `ethtool -K` calls them."""

_FAIR_QUEUES = ("fq", "fq_codel", "noqueue", "cake")
_FIFO_QUEUES = ("pfifo", "pfifo_fast", "bfifo")


def link_state(_view: HostView, interface: InterfaceFacts) -> Iterator[HostFinding]:
    """An interface that was named but is down."""
    if not interface["up"]:
        name = interface["name"]
        yield HostFinding(
            "bad", name, "down", ("it carries no traffic"), f"ip link set dev {name} up"
        )


def speed(view: HostView, interface: InterfaceFacts) -> Iterator[HostFinding]:
    """Link speed against the stated rate."""
    speed_bps = interface["speed_bps"]
    if speed_bps is None:
        return
    what = f"link speed {rate_human(speed_bps)}"
    if speed_bps >= view.path.rate_bps:
        yield HostFinding("ok", interface["name"], what)
        return
    stated = rate_human(view.path.rate_bps)
    why = f"the stated path needs {stated}: use a faster link, or several with --pair"
    yield HostFinding("bad", interface["name"], what, why, f"ethtool {interface['name']}")


def jumbo_warning() -> str:
    """What to do before an MTU is raised: one hop that does not take it is a black hole."""
    return (
        "Every hop of the path and the other end must support it: if one does not and its ICMP "
        "message is filtered, large packets are lost silently (an MTU black hole). Check the path "
        f"before and after the change: {CHECK_MTU}"
    )


def mtu(view: HostView, interface: InterfaceFacts) -> Iterator[HostFinding]:
    """Packet size: too small, or standard where jumbo frames would pay."""
    name, size = interface["name"], interface["mtu_bytes"]
    what = f"MTU {size}"
    if size < STANDARD_MTU_BYTES:
        why = f"smaller than Ethernet's {STANDARD_MTU_BYTES}: more packets, more headers"
        command = f"ip link set dev {name} mtu {STANDARD_MTU_BYTES}"
        yield HostFinding("warn", name, what, why, command)
    elif size < JUMBO_MTU_BYTES and view.path.rate_bps >= JUMBO_FROM_BPS:
        packets = view.path.rate_bps / 8 / size
        why = (
            f"{packets / 1000:.0f} thousand packets per second; an MTU of {JUMBO_MTU_BYTES} needs "
            f"a sixth of that. {jumbo_warning()}"
        )
        command = f"ip link set dev {name} mtu {JUMBO_MTU_BYTES}"
        yield HostFinding("warn", name, what, why, command)
    else:
        yield HostFinding("ok", name, what)


def offloads(_view: HostView, interface: InterfaceFacts) -> Iterator[HostFinding]:
    """Work on packets that the NIC or the kernel does in bulk."""
    known = {short: interface["offloads"].get(long) for long, short in _OFFLOADS.items()}
    off = [short for short, on in known.items() if on is False]
    name = interface["name"]
    if off:
        switches = " ".join(f"{short} on" for short in off)
        why = "without them the CPU handles every packet and computes every checksum"
        yield HostFinding(
            "warn", name, f"offloads off: {' '.join(off)}", why, f"ethtool -K {name} {switches}"
        )
    elif any(on is not None for on in known.values()):
        on = " ".join(short for short, on in known.items() if on)
        yield HostFinding("ok", name, f"offloads on: {on}")


def qdisc(view: HostView, interface: InterfaceFacts) -> Iterator[HostFinding]:
    """Queueing discipline: pacing and fairness between streams."""
    name, kind = interface["name"], interface["qdisc"]
    if kind is None:
        return
    if kind == "mq":
        yield from _many_queues(view, name)
    elif kind in _FAIR_QUEUES:
        yield HostFinding("ok", name, f"qdisc {kind}")
    else:
        why = "no pacing and no fairness in the queue: TCP has to pace with its own timers"
        command = f"tc qdisc replace dev {name} root fq"
        yield HostFinding("warn", name, f"qdisc {kind}", why, command)


def _many_queues(view: HostView, name: str) -> Iterator[HostFinding]:
    """One queue a CPU, each with the default discipline."""
    default = view.facts["sysctls"].get("net.core.default_qdisc", "unknown")
    what = f"qdisc mq of {default}"
    if default in _FAIR_QUEUES:
        yield HostFinding("ok", name, what)
        return
    why = "new queues get the default discipline, which does not pace"
    command = f"sysctl -w net.core.default_qdisc=fq && tc qdisc replace dev {name} root mq"
    yield HostFinding("warn", name, what, why, command)


def transmit_queue(view: HostView, interface: InterfaceFacts) -> Iterator[HostFinding]:
    """Length of a FIFO at high rates."""
    length, name = interface["tx_queue_packets"], interface["name"]
    if length is None or interface["qdisc"] not in _FIFO_QUEUES:
        return
    what = f"transmit queue {length} packets"
    if length >= QUEUE_PACKETS or view.path.rate_bps < JUMBO_FROM_BPS:
        yield HostFinding("ok", name, what)
        return
    why = "a burst of one window overflows it: packets are lost on the host itself"
    yield HostFinding("warn", name, what, why, f"ip link set dev {name} txqueuelen {QUEUE_PACKETS}")


def numa_node(view: HostView, interface: InterfaceFacts) -> Iterator[HostFinding]:
    """Which memory is near the NIC."""
    node, nodes = interface["numa_node"], view.facts["cpu"]["numa_nodes"]
    if node is None or nodes < 2:
        return
    why = (
        "threads on another node reach it over the link between nodes: pin them to this node and "
        "compare"
    )
    command = f"numactl --cpunodebind={node} --membind={node} farline probe HOST"
    yield HostFinding("warn", interface["name"], f"on NUMA node {node} of {nodes}", why, command)


RULES: tuple[Rule, ...] = (link_state, speed, mtu, offloads, qdisc, transmit_queue, numa_node)
"""Every rule of this file."""
