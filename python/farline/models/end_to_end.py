"""Throughput of many nodes as one: streams, stripes and nodes, and which capacity holds it back.

Yildirim and Kosar 2011 see a transfer between clusters as a flow through nodes with capacities of
their interfaces, processors and disks, and through a network that n streams in all share. For `s`
stripes on each of `N` nodes a side, `n` streams a stripe:

    T(n, s, N) = min{ Σ sources min(NIC, CPU, process · s), disk(s N), Th(n s N), Σ destinations … }

A setting is written as there: `4stm-1str-1n-1str-1n` is 4 streams a stripe, 1 stripe on each of
1 source node, 1 stripe on each of 1 destination node.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from farline.errors import SpecError

if TYPE_CHECKING:
    from farline.models.stream_curves import StreamCurve

_LABEL = re.compile(
    r"(?P<n>[1-9]\d{0,3})stm-(?P<s>[1-9]\d{0,3})str-(?P<N>[1-9]\d{0,3})n"
    r"-(?P<t>[1-9]\d{0,3})str-(?P<M>[1-9]\d{0,3})n",
    re.ASCII,
)

MOST_OF_EACH = 9999


@dataclass(frozen=True, order=True, slots=True)
class NodeSetting:
    """How many nodes a side, stripes a node, streams a stripe. Compares by what it takes, in order.

    Raises:
        SpecError: for a count that is not from 1 to 9999.
    """

    nodes: int
    stripes: int
    streams: int

    def __post_init__(self) -> None:
        """Checks the counts."""
        for name in ("nodes", "stripes", "streams"):
            if not 1 <= getattr(self, name) <= MOST_OF_EACH:
                raise SpecError(
                    f"{name}: {getattr(self, name)} is out of range; allowed: 1 to {MOST_OF_EACH}"
                )

    @property
    def label(self) -> str:
        """As Yildirim and Kosar 2011 write it; both sides are alike."""
        side = f"{self.stripes}str-{self.nodes}n"
        return f"{self.streams}stm-{side}-{side}"

    @classmethod
    def of_label(cls, text: str) -> Self:
        """The setting that a label stands for.

        Raises:
            SpecError: for another text, or sides that differ.
        """
        found = _LABEL.fullmatch(text)
        if found is None:
            raise SpecError(f"{text!r} is not a setting of nodes; write it as 4stm-1str-2n-1str-2n")
        if found["s"] != found["t"] or found["N"] != found["M"]:
            raise SpecError(f"{text!r}: both sides must have as many stripes and nodes")
        return cls(int(found["N"]), int(found["s"]), int(found["n"]))

    @property
    def all_streams(self) -> int:
        """Streams that share the network."""
        return self.nodes * self.stripes * self.streams


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """What one node can carry; what is not known does not bind. Any unit of rate, the same for all.

    Raises:
        SpecError: for a capacity that is not positive.
    """

    nic: float = math.inf
    cpu: float = math.inf
    process: float = math.inf
    """Of one stripe: a process with a thread for network and disk."""

    def __post_init__(self) -> None:
        """Checks the capacities."""
        for name in ("nic", "cpu", "process"):
            value = getattr(self, name)
            # Not by `quantities`: copies over nodes need this, and the core has no numpy.
            if not value > 0:
                raise SpecError(f"{name}: {value:g} is out of range; allowed: more than 0")

    def of(self, stripes: int) -> tuple[float, str]:
        """Throughput of so many stripes on it, and what binds: `nic`, `cpu` or `process`."""
        return min((self.nic, "nic"), (self.cpu, "cpu"), (stripes * self.process, "process"))


def no_disk(_stripes: int) -> float:
    """Where data stays in memory."""
    return math.inf


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """Both clusters and the network between them."""

    network: StreamCurve
    source: NodeCapacity = NodeCapacity()
    destination: NodeCapacity = NodeCapacity()
    source_disk: Callable[[int], float] = no_disk
    """Throughput of a shared file system to so many stripes in all."""
    destination_disk: Callable[[int], float] = no_disk

    def rate(self, setting: NodeSetting) -> float:
        """Throughput of a setting."""
        return self.bound(setting)[0]

    def bound(self, setting: NodeSetting) -> tuple[float, str]:
        """Throughput, and what binds: `nic`, `cpu`, `process`, `disk` or `network`.

        Of several that bind alike, the first in this order of names on the source's side.
        """
        parts = [(float(self.network.rate(setting.all_streams)), "network")]
        for node, disk in (
            (self.source, self.source_disk),
            (self.destination, self.destination_disk),
        ):
            rate, name = node.of(setting.stripes)
            parts.append((setting.nodes * rate, name))
            parts.append((disk(setting.nodes * setting.stripes), "disk"))
        return min(parts, key=lambda part: part[0])
