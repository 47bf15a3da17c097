"""One finding: a limit, a line for people, figures and remedies.

A remedy must be something the run did not do and the hosts allow: the functions
here give it as a tuple, which is empty when there is nothing to propose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from farline.spec.units import size_text

if TYPE_CHECKING:
    from farline.findings.figures import Figures
    from farline.spec._types import LimitedBy

_BLOCK_GOOD, _BLOCK_MAX = 1 << 20, 1 << 30
"""A block that makes calls cheap, and the largest the spec allows."""

_STREAMS_GOOD, STREAMS_MAX = 4, 256
"""Streams that show whether more help, and the most the spec allows."""


JUMBO_MTU_BYTES = 9000
_PING_HEADERS_BYTES = 28
"""Of IPv4 and ICMP, which `ping -s` does not count."""

CHECK_MTU = f"ping -M do -s {JUMBO_MTU_BYTES - _PING_HEADERS_BYTES} HOST, tracepath HOST"
"""How to see that a path takes jumbo frames; a hop that drops them silently is seen too."""

JUMBO_REMEDY = (
    f"larger packets: an MTU of {JUMBO_MTU_BYTES} on the whole path; a hop that does not support"
    f" it may drop them silently (an MTU black hole), so check first: {CHECK_MTU}"
)


@dataclass(frozen=True)
class Finding:
    """What a rule found. `limit` is one of the words of `Verdict.limit`."""

    limit: LimitedBy
    line: str
    evidence: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


def percent(share: float) -> str:
    """A share for people: whole percent, small ones with a digit more."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 9.95 or value == 0 else f"{value:.2g} %"


def counted(count: int, one: str) -> str:
    """`1 path`, `2 paths`."""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def rate_flag(rate_bps: float) -> str:
    """A rate as `-b` takes it, to three digits and never more than it is."""
    scale, unit = (1e9, "G") if rate_bps >= 1e9 else (1e6, "M")
    value = rate_bps / scale
    digits = 2 if value < 10 else 1 if value < 100 else 0
    # What is missing by the last bits of a float is none that is shown.
    return f"-b {math.floor(value * 10**digits + 1e-6) / 10**digits:g}{unit}"


def more_streams(figures: Figures, why: str = "more streams") -> tuple[str, ...]:
    """Four streams, or twice as many as there are, as far as there are CPUs for them."""
    wanted = max(_STREAMS_GOOD, 2 * figures.streams)
    if figures.sender_cpus or figures.receiver_cpus:
        wanted = min(wanted, figures.spare_streams)
    wanted = min(wanted, STREAMS_MAX)
    return (f"{why}: -P {wanted}",) if wanted > figures.streams else ()


def larger_block(figures: Figures, why: str = "a larger block") -> tuple[str, ...]:
    """A block of 1 MiB, or twice the block if it is that large already."""
    block = figures.block_bytes
    if block < _BLOCK_GOOD:
        return (f"{why}: -l 1M",)
    wanted = min(2 * block, _BLOCK_MAX)
    return (f"{why}: -l {size_text(wanted)}",) if wanted > block else ()


def larger_packets(figures: Figures) -> tuple[str, ...]:
    """Packets as large as the MTU of both ends takes, where a UDT run had smaller ones."""
    if figures.udt is None or figures.udt.packet_bytes_most is None:
        return ()
    return (f"larger packets, as the MTU allows: --packet {figures.udt.packet_bytes_most}",)


def cheaper_packets(figures: Figures) -> tuple[str, ...]:
    """What makes each packet of a UDT run cheaper for the CPUs."""
    off = figures.udt.offloads_off if figures.udt else ()
    return (*larger_packets(figures), *(f"fewer calls: {flag}" for flag in off))


class SendersControl(Protocol):
    """What is known of the congestion control at the sender, of a run or a copy."""

    @property
    def congestion_control(self) -> str:
        """The one in use."""

    @property
    def allowed_congestion_controls(self) -> tuple[str, ...]:
        """Those that every user may choose."""


def other_congestion_control(figures: SendersControl, name: str) -> tuple[str, ...]:
    """Another congestion control, if the sender's host lets every user choose it."""
    if name == figures.congestion_control or name not in figures.allowed_congestion_controls:
        return ()
    return (f"another congestion control: -C {name}",)


def own_cpu(figures: Figures, role: str) -> tuple[str, ...]:
    """A CPU for each stream, where streams are not bound to one and there are enough."""
    pinned = figures.sender_pinned if role == "sender" else figures.receiver_pinned
    known = figures.sender_cpus or figures.receiver_cpus
    if pinned or (known and figures.streams > figures.spare_streams):
        return ()
    return ("a CPU for each stream: --client-cpus, --server-cpus",)
