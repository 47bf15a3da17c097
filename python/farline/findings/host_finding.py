"""What host rules are given and what they give: a view of one host, findings about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from farline.models.buffer_need import round_up as round_up
from farline.models.buffer_need import window_bytes
from farline.spec._types import HostFacts, InterfaceFacts

Severity = Literal["ok", "warn", "bad"]
"""`bad` keeps the stated path from being filled; `warn` may, or spoils measurements."""

SEVERITIES: tuple[Severity, ...] = ("bad", "warn", "ok")
"""Worst first."""


@dataclass(frozen=True)
class StatedPath:
    """The path one has in mind: rate in bits per second, round-trip time, streams that share it."""

    rate_bps: int
    rtt_s: float
    streams: int = 1
    loss: float | None = None
    """Share of packets lost, where it is known."""

    @property
    def bdp_bytes(self) -> int:
        """Bandwidth-delay product: what is on its way when the path is full."""
        return window_bytes(self.rate_bps, self.rtt_s)

    @property
    def stream_bdp_bytes(self) -> int:
        """Share of one stream in the bandwidth-delay product."""
        return window_bytes(self.rate_bps, self.rtt_s, self.streams)


@dataclass(frozen=True)
class HostFinding:
    """One thing about a host: what it is, why it matters for the path, what mends it."""

    severity: Severity
    subject: str
    what: str
    why: str = ""
    command: str = ""


@dataclass(frozen=True)
class HostView:
    """A host's facts together with the path they are judged against."""

    facts: HostFacts
    path: StatedPath
    interfaces: tuple[InterfaceFacts, ...]
    memory_copy_bps: float | None = None
    loadable_modules: frozenset[str] | None = None
    """Kernel modules among those asked about that modprobe can load; None where nobody asked."""

    def number(self, name: str) -> int | None:
        """A kernel parameter that is one whole number; None if the kernel has none of that name."""
        return _whole(self.facts["sysctls"].get(name, ""))

    def triple(self, name: str) -> tuple[int, int, int] | None:
        """A kernel parameter of three whole numbers, such as `net.ipv4.tcp_rmem`."""
        numbers = [_whole(word) for word in self.facts["sysctls"].get(name, "").split()]
        known = [number for number in numbers if number is not None]
        return (known[0], known[1], known[2]) if len(numbers) == len(known) == 3 else None


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
