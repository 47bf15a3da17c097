"""Where processors, memory and network interfaces of this host are, as the kernel says.

Sources: sysfs (Documentation/ABI/stable/sysfs-devices-node, sysfs-devices-system-cpu,
Documentation/ABI/testing/sysfs-class-net), proc(5) for interrupts. What a host does not say stays
unknown; nothing is guessed.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_KIB = 1024


@dataclass(frozen=True, slots=True)
class NumaNode:
    """Memory, and the CPUs beside it."""

    number: int
    cpus: tuple[int, ...]
    memory_bytes: int | None
    distances: tuple[int, ...]
    """To each node, as the firmware states them: 10 is its own memory."""


@dataclass(frozen=True, slots=True)
class Nic:
    """A network interface with a device of its own."""

    name: str
    driver: str | None
    is_up: bool
    speed_bps: int | None
    numa_node: int | None
    """None where the host has one node, or does not say."""
    queues: int
    """Queues for reception."""
    irq_cpus: tuple[int, ...]
    """CPUs that may take its interrupts; empty where the host does not say."""


@dataclass(frozen=True, slots=True)
class HostLayout:
    """All of it."""

    cpus: tuple[int, ...]
    """CPUs that are online."""
    siblings: tuple[tuple[int, ...], ...]
    """CPUs of each core, the first of each in order."""
    nodes: tuple[NumaNode, ...]
    nics: tuple[Nic, ...]


def host_layout(root: Path = Path("/")) -> HostLayout:
    """Of this host, or of a tree of files with the same names below `root`."""
    system = root / "sys" / "devices" / "system"
    cpus = cpu_list(_text(system / "cpu" / "online") or "")
    nodes = [_node(path, cpus) for path in sorted((system / "node").glob("node[0-9]*"), key=_last)]
    if not nodes:
        nodes = [NumaNode(0, cpus, None, ())]
    nics = [_nic(root, path) for path in _interfaces(root) if (path / "device").exists()]
    return HostLayout(cpus, _siblings(system / "cpu", cpus), tuple(nodes), tuple(nics))


def _interfaces(root: Path) -> list[Path]:
    """In a network namespace /sys may still be that of another one."""
    found = sorted((root / "sys" / "class" / "net").glob("*"))
    if root != Path("/"):
        return found
    ours = {name for _, name in socket.if_nameindex()}
    return [path for path in found if path.name in ours]


def devices_below(name: str, root: Path = Path("/")) -> tuple[str, ...]:
    """Interfaces with a device that carry what goes over `name`: itself, or those below a bond, a
    bridge or a VLAN."""
    found: dict[str, None] = {}
    waiting, seen = [name], set[str]()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        path = root / "sys" / "class" / "net" / one
        if (path / "device").exists():
            found[one] = None
        else:
            waiting += [below.name.removeprefix("lower_") for below in path.glob("lower_*")]
    return tuple(sorted(found))


def cpu_list(text: str) -> tuple[int, ...]:
    """CPUs of a kernel's list such as `0-3,8`; what is no list has none."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return ()
        found += range(int(first), int(last if dash else first) + 1)
    return tuple(found)


def cpu_text(cpus: Iterable[int]) -> str:
    """CPUs as the kernel lists them: `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _text(path: Path) -> str | None:
    """What is in a file; None where it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _text(path) or ""
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _last(path: Path) -> int:
    found = re.search(r"\d+$", path.name)
    return int(found[0]) if found else 0


def _node(path: Path, online: tuple[int, ...]) -> NumaNode:
    memory = re.search(r"MemTotal:\s+(\d+) kB", _text(path / "meminfo") or "")
    cpus = [cpu for cpu in cpu_list(_text(path / "cpulist") or "") if cpu in online]
    distances = [int(word) for word in (_text(path / "distance") or "").split() if word.isdecimal()]
    return NumaNode(
        _last(path), tuple(cpus), _KIB * int(memory[1]) if memory else None, tuple(distances)
    )


def _siblings(folder: Path, cpus: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    cores: dict[tuple[int, ...], None] = {}
    for cpu in cpus:
        text = _text(folder / f"cpu{cpu}" / "topology" / "thread_siblings_list")
        ours = tuple(one for one in cpu_list(text or str(cpu)) if one in cpus)
        cores[ours or (cpu,)] = None
    return tuple(cores)


def _nic(root: Path, path: Path) -> Nic:
    device = path / "device"
    node, speed = _number(device / "numa_node"), _number(path / "speed")
    driver = None
    with suppress(OSError):
        driver = (device / "driver").readlink().name
    return Nic(
        path.name,
        driver,
        _text(path / "operstate") == "up",
        speed * 1_000_000 if speed is not None and speed > 0 else None,
        node if node is not None and node >= 0 else None,
        len(list((path / "queues").glob("rx-*"))),
        _irq_cpus(root, device),
    )


def _irq_cpus(root: Path, device: Path) -> tuple[int, ...]:
    """CPUs of all interrupts of a device: message-signalled ones, or its one line."""
    found: set[int] = set()
    # A paravirtual device has its interrupts at the function that it is behind.
    for place in (device, device / ".."):
        numbers = [path.name for path in (place / "msi_irqs").glob("[0-9]*")]
        line = _number(place / "irq")
        numbers += [str(line)] if not numbers and line else []
        for number in numbers:
            text = _text(root / "proc" / "irq" / number / "smp_affinity_list")
            found.update(cpu_list(text or ""))
        if found:
            break
    return tuple(sorted(found))
