"""Rules about CPUs: threads and hosts that have no time left, and senders that wait for a CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farline.findings.finding import (
    JUMBO_REMEDY,
    Finding,
    cheaper_packets,
    larger_block,
    more_streams,
    own_cpu,
    percent,
)
from farline.findings.rules.limits import limits_of
from farline.findings.rules.losses import explain_missing_rate, lost_share
from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.findings.figures import Figures
    from farline.spec._types import LimitedBy

LIMIT: dict[str, LimitedBy] = {"sender": "sender-cpu", "receiver": "receiver-cpu"}
"""The word for a limit by the CPU of one end."""

LESS_LOAD = "less other work on that host"

_DISCARD = "no copy on the receiver: --receive-mode discard shows how much of it is copying"
_ZEROCOPY = "no copy on the sender: --send-mode zerocopy or -Z (on a real NIC)"
_NO_CHECKSUM = "--no-checksum shows how much of it is checksums"


def thread_use(used: float, waited: float, least_wait: float) -> str:
    """What a thread does, in words; its wait for a CPU where that is part of the story."""
    use = f"uses {percent(used)} of one CPU"
    if waited < least_wait:
        return use
    return f"{use} and is runnable but waiting for a CPU {percent(waited)} of the time"


def host_line(role: str, share: float, cpus: int, same_host: bool) -> str:
    """A host that has no CPU left, in words."""
    whose = "both ends together use" if same_host else f"the {role} uses"
    return f"{role} CPU: {whose} {percent(share)} of the host's {cpus} CPUs"


def cheaper_thread(figures: Figures, role: str) -> tuple[str, ...]:
    """What makes a thread of `role` cheaper, or spreads its work."""
    if figures.rbudp is not None:
        return (*cheaper_blasts(figures, role), *more_streams(figures))
    streams = more_streams(figures, "more streams on other CPUs")
    tcp, packets = figures.transport == "tcp", cheaper_packets(figures)
    if role == "sender":
        no_copy = (_ZEROCOPY,) if tcp and figures.send_mode == "copy" else ()
        block = larger_block(figures, "fewer calls, with a larger block")
        return (*packets, *block, *streams, *no_copy)
    discard = (_DISCARD,) if tcp and figures.receive_mode == "read" else ()
    jumbo = () if figures.same_host or packets else (JUMBO_REMEDY,)
    return (*packets, *discard, *streams, *jumbo)


def cheaper_blasts(figures: Figures, role: str) -> tuple[str, ...]:
    """What makes each packet of an RBUDP run cheaper for a thread of `role`."""
    offload = figures.gso if role == "sender" else figures.gro
    flag = "--gso" if role == "sender" else "--gro"
    naive = role == "receiver" and figures.rbudp is not None and figures.rbudp.receiver == "naive"
    gather = ("no second copy of each packet: --receiver gather",) if naive else ()
    fewer = (f"fewer calls: {flag}",) if offload is False else ()
    checked = figures.rbudp is not None and figures.rbudp.checksum
    return (*gather, *fewer, *((_NO_CHECKSUM,) if checked else ()), *own_cpu(figures, role))


def shared_cpu(figures: Figures, role: str) -> tuple[str, ...]:
    """What helps against other work on the CPUs."""
    return (LESS_LOAD, *own_cpu(figures, role))


def busy_thread(figures: Figures) -> Finding | None:
    """One thread of a stream always runs or waits to run: the busier end is the limit."""
    shares = {
        "receiver": (figures.receiver_cpu, figures.receiver_wait),
        "sender": (figures.sender_cpu, figures.sender_wait),
    }
    limits = limits_of(figures)
    role, (used, waited) = max(shares.items(), key=lambda item: sum(item[1]))
    if used + waited < limits.thread_full:
        return None
    line = f"{role} CPU: a {role} thread {thread_use(used, waited, limits.thread_wait)}"
    remedies = cheaper_thread(figures, role)
    if waited >= limits.thread_wait:
        remedies = (*shared_cpu(figures, role), *remedies[:1])
    return Finding(LIMIT[role], line, remedies=tuple(dict.fromkeys(remedies)))


def busy_host(figures: Figures) -> Finding | None:
    """All CPUs of a host are in use, though no thread fills one alone."""
    used = {"sender": figures.sender_host_cpu, "receiver": figures.receiver_host_cpu}
    if figures.same_host:
        used = {max(used, key=lambda role: used[role]): sum(used.values())}
    role, share = max(used.items(), key=lambda item: item[1])
    if share < limits_of(figures).host_full:
        return None
    cpus = figures.sender_cpus if role == "sender" else figures.receiver_cpus
    fewer = ("fewer streams than CPUs",) if figures.streams >= cpus else ()
    cheaper = [remedy for remedy in cheaper_thread(figures, role) if "-P " not in remedy]
    line = host_line(role, share, cpus, figures.same_host)
    return Finding(LIMIT[role], line, remedies=(*fewer, *cheaper))


def nearly_busy(figures: Figures) -> Finding | None:
    """Nothing else held it back and a thread has little time left: packets cost what they cost."""
    used = {"sender": figures.sender_cpu, "receiver": figures.receiver_cpu}
    role, share = max(used.items(), key=lambda item: item[1])
    if share < limits_of(figures).thread_busy:
        return None
    line = (
        f"{role} CPU: nothing else held the run back; its thread uses {percent(share)} of one CPU"
    )
    udt = (*cheaper_packets(figures), *larger_block(figures), *own_cpu(figures, role))
    remedies = udt if figures.rbudp is None else cheaper_blasts(figures, role)
    return Finding(LIMIT[role], line, remedies=remedies)


def starved_sender(figures: Figures) -> Finding | None:
    """The sender often had nothing to send, and spent that time waiting for a CPU."""
    limits = limits_of(figures)
    if figures.busy_share is None or figures.busy_share >= limits.sender_has_data:
        return None
    idle = 1 - figures.busy_share
    if figures.sender_wait < limits.sender_starved * idle:
        return None
    line = (
        f"sender CPU: senders had nothing to send {percent(idle)} of the time; a sender thread "
        f"was runnable but waiting for a CPU {percent(figures.sender_wait)} of the time"
    )
    return Finding("sender-cpu", line, remedies=shared_cpu(figures, "sender"))


def slow_sender(figures: Figures) -> Finding | None:
    """The sender does not keep up with its requested rate: nothing holds it back but its thread."""
    limits = limits_of(figures)
    paced_share = figures.rbudp.paced_share if figures.rbudp else None
    late = paced_share is not None and paced_share < limits.pacing_late
    busy = figures.sender_cpu + figures.sender_wait
    if not figures.asked_bps or busy < (limits.thread_busy if late else limits.sender_busy):
        return None
    # Short waits are spun, which looks like work.
    if paced_share is not None and paced_share >= limits.pacing_seldom:
        return None
    if explain_missing_rate(figures, lost_share(figures)):
        return None
    reached = f"{rate_human(figures.throughput_bps)} of {rate_human(figures.asked_bps)}"
    thread = thread_use(figures.sender_cpu, figures.sender_wait, limits.thread_wait)
    line = f"sender CPU: {reached}; its thread {thread}"
    if figures.rbudp is not None:
        line = f"sender CPU: {reached}; its thread falls behind its pacing: it {thread}"
        return Finding("sender-cpu", line, remedies=cheaper_thread(figures, "sender"))
    gso = () if figures.gso else ("fewer calls: --gso on",)
    remedies = ("larger datagrams: --packet", *gso, *more_streams(figures))
    if figures.sender_wait >= limits.thread_wait:
        remedies = (LESS_LOAD, *remedies)
    return Finding("sender-cpu", line, remedies=remedies)


def late_pacing(figures: Figures) -> Finding | None:
    """Paced at the requested rate, which is not reached: the thread runs late."""
    limits, asked_bps = limits_of(figures), figures.asked_bps / figures.streams
    paced_share = figures.udt.paced_share if figures.udt else 0.0
    paces = figures.pacing_bps is not None and figures.pacing_bps >= limits.rate_paced * asked_bps
    if not asked_bps or not paces or paced_share < limits.paced:
        return None
    line = (
        f"sender CPU: {percent(figures.throughput_bps / figures.asked_bps)} of the requested "
        f"{rate_human(figures.asked_bps)} reached, and nothing else held it back: its thread waits "
        f"{percent(figures.sender_wait)} of the time for a CPU and misses its own pacing"
    )
    return Finding("sender-cpu", line, remedies=shared_cpu(figures, "sender"))
