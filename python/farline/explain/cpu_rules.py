"""Rules about CPUs, the same for every transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farline.explain.finding import (
    JUMBO_REMEDY,
    Finding,
    cheaper_packets,
    larger_block,
    more_streams,
    own_cpu,
    percent,
)

if TYPE_CHECKING:
    from farline.explain.figures import Figures
    from farline.spec._types import LimitedBy

THREAD_FULL = 0.9
"""Share of one CPU from which a stream's thread is the limit."""

WAIT_MATTERS = 0.1
"""Share of the time without a CPU from which other work on the host is part of the story."""

HOST_FULL = 0.9
"""Share of all CPUs from which a host is the limit."""

LIMIT: dict[str, LimitedBy] = {"sender": "sender-cpu", "receiver": "receiver-cpu"}
"""The word for a limit by the CPU of one end."""

_DISCARD = "no copy on the receiver: --receive-mode discard shows how much of it is copying"
_ZEROCOPY = "no copy on the sender: --send-mode zerocopy or -Z (on a real NIC)"


def mend(figures: Figures, role: str) -> tuple[str, ...]:
    """What makes a thread of `role` cheaper, or spreads its work."""
    streams = more_streams(figures, "more streams on other CPUs")
    tcp, packets = figures.transport == "tcp", cheaper_packets(figures)
    if role == "sender":
        no_copy = (_ZEROCOPY,) if tcp and figures.send_mode == "copy" else ()
        block = larger_block(figures, "fewer calls, with a larger block")
        return (*packets, *block, *streams, *no_copy)
    discard = (_DISCARD,) if tcp and figures.receive_mode == "read" else ()
    jumbo = () if figures.same_host or packets else (JUMBO_REMEDY,)
    return (*packets, *discard, *streams, *jumbo)


def shared_cpu(figures: Figures, role: str) -> tuple[str, ...]:
    """What helps against other work on the CPUs."""
    return ("less other work on that host", *own_cpu(figures, role))


def busy_thread(figures: Figures) -> Finding | None:
    """One thread of a stream always runs or waits to run: the busier end is the limit."""
    shares = {
        "receiver": (figures.receiver_cpu, figures.receiver_wait),
        "sender": (figures.sender_cpu, figures.sender_wait),
    }
    role, (used, waited) = max(shares.items(), key=lambda item: sum(item[1]))
    if used + waited < THREAD_FULL:
        return None
    line = f"{role} CPU: a {role} thread uses {percent(used)} of one CPU"
    if waited < WAIT_MATTERS:
        return Finding(LIMIT[role], line, remedies=mend(figures, role))
    line += f" and waits {percent(waited)} of the time for one that others have"
    remedies = (*shared_cpu(figures, role), *mend(figures, role)[:1])
    return Finding(LIMIT[role], line, remedies=remedies)


def busy_host(figures: Figures) -> Finding | None:
    """All CPUs of a host are in use, though no thread fills one alone."""
    used = {"sender": figures.sender_host_cpu, "receiver": figures.receiver_host_cpu}
    if figures.same_host:
        used = _both_ends_on_one_host(used)
    role, share = max(used.items(), key=lambda item: item[1])
    if share < HOST_FULL:
        return None
    cpus = figures.sender_cpus if role == "sender" else figures.receiver_cpus
    whose = "both ends together use" if figures.same_host else f"the {role} uses"
    line = f"{role} CPU: {whose} {percent(share)} of the host's {cpus} CPUs"
    fewer = ("fewer streams than CPUs",) if figures.streams >= cpus else ()
    cheaper = [remedy for remedy in mend(figures, role) if "-P " not in remedy]
    return Finding(LIMIT[role], line, remedies=(*fewer, *cheaper))


def _both_ends_on_one_host(used: dict[str, float]) -> dict[str, float]:
    busier = max(used, key=lambda role: used[role])
    return {busier: sum(used.values())}
