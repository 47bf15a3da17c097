"""Rules about datagrams that hosts lose or do not take: slow receivers, full sockets."""

from __future__ import annotations

from farline.findings.figures import Figures
from farline.findings.finding import Finding, more_streams, own_cpu, rate_flag
from farline.findings.rules.cpu import cheaper_blasts, thread_use
from farline.findings.rules.limits import limits_of
from farline.findings.rules.losses import dropped_by_hosts, is_lossy, is_lost_by_host, lost
from farline.spec.units import size_human, size_text

SOCKET_GOOD = 64 << 20
"""Receive buffer of a UDP socket that rides out a thread without a CPU; the transports' default."""

_UDP_BUFFER_GOOD = 8 << 20
"""Receive buffer of a plain UDP run that most paths need."""

_UDP_SEND_BUFFER_GOOD = 4 << 20


def slow_receiver(figures: Figures) -> Finding | None:
    """Datagrams are lost and the receiver's thread is busy: it reads too slowly."""
    used, waited, limits = figures.receiver_cpu, figures.receiver_wait, limits_of(figures)
    if not is_lossy(figures) or used + waited < limits.reader_busy:
        return None
    use = thread_use(used, waited, limits.thread_wait)
    line = f"receiver CPU: {lost(figures)} while its thread {use}"
    if figures.rbudp is not None:
        cheaper = cheaper_blasts(figures, "receiver")
        own = [remedy for remedy in cheaper if remedy not in own_cpu(figures, "receiver")]
        remedies = (lower_rate(figures), *own, *room_to_receive(figures))
        return Finding("receiver-cpu", line, remedies=remedies)
    wakes = "larger --packet" if figures.gro else "--gro on, larger --packet"
    remedies = ("a lower rate with -b", f"fewer wake-ups: {wakes}", *more_streams(figures))
    return Finding("receiver-cpu", line, remedies=remedies)


def lower_rate(figures: Figures) -> str:
    """What arrived of each stream is what the receiver can take."""
    return f"a lower rate: {rate_flag(0.95 * figures.stream_bps)}"


def overflowing_socket(figures: Figures) -> Finding | None:
    """Datagrams are lost where no path can lose them: the receiving host's socket overflowed."""
    if not is_lossy(figures) or not is_lost_by_host(figures):
        return None
    drops, granted = dropped_by_hosts(figures), figures.receive_buffer_granted
    where = f"{drops} dropped by the hosts" if drops else "on one host"
    size = f" of {size_human(granted)}" if granted else ""
    line = (
        f"receive buffer: {lost(figures)}, {where}: "
        f"the UDP socket's buffer{size} overflowed before the receiver's thread ran"
    )
    known = figures.receiver_sysctls.get("net.core.rmem_max", "not known")
    evidence = (f"net.core.rmem_max at the receiver: {known}",)
    return Finding("receive-buffer", line, evidence, _against_overflow(figures))


def _against_overflow(figures: Figures) -> tuple[str, ...]:
    if figures.transport == "udp":
        wanted = max(4 * (figures.receive_buffer_granted or 0), _UDP_BUFFER_GOOD)
        return (
            f"the rate that arrived: -b {figures.throughput_bps / 1e9:.3g}G",
            f"a larger buffer: --receive-buffer {size_text(wanted)}",
            f"allow it: sysctl -w net.core.rmem_max={wanted}",
        )
    if figures.rbudp is not None:
        return (*room_to_receive(figures), lower_rate(figures))
    slower = f"less than arrived: -b {0.9 * figures.stream_bps / 1e9:.3g}G"
    return (*room_to_receive(figures), slower)


def room_to_receive(figures: Figures) -> tuple[str, ...]:
    """A larger buffer of the UDP socket and leave for it, then other CPUs."""
    own, granted = figures.udt or figures.rbudp, figures.receive_buffer_granted
    asked = own.udp_buffer_asked if own else None
    # Linux grants twice what is requested.
    small = granted is None or granted < 2 * SOCKET_GOOD
    # RBUDP asks for its default by itself, and may have been granted less.
    ask = asked is not None and asked < SOCKET_GOOD
    if figures.rbudp is not None:
        ask = small and (asked is None or ask)
    larger = f"a larger buffer of the socket: --udp-receive-buffer {size_text(SOCKET_GOOD)}"
    allow = f"allow it: sysctl -w net.core.rmem_max={SOCKET_GOOD}"
    return (
        *((larger,) if ask else ()),
        *((allow,) if small else ()),
        *own_cpu(figures, "receiver"),
    )


def blocked_sender(figures: Figures) -> Finding | None:
    """A sender that neither runs nor paces waits for room in its socket."""
    if not _waits_for_socket(figures):
        return None
    granted = figures.send_buffer_granted
    if figures.rbudp is None:
        line = "send buffer: the sender waited for room in its socket, and nothing was lost"
        size = _larger(granted, _UDP_SEND_BUFFER_GOOD)
        remedies = (f"a larger buffer: --send-buffer {size}", *more_streams(figures))
        return Finding("send-buffer", line, remedies=remedies)
    line = (
        "send buffer: the sender waited for room in its socket, not for its pacing: "
        "the interface or its queue took no more"
    )
    larger = f"a larger buffer: --udp-send-buffer {size_text(SOCKET_GOOD)}"
    small = granted is None or granted < 2 * SOCKET_GOOD
    fits = (f"the rate that arrived: {rate_flag(figures.stream_bps)}",) if figures.asked_bps else ()
    return Finding("send-buffer", line, remedies=(*((larger,) if small else ()), *fits))


def _waits_for_socket(figures: Figures) -> bool:
    if figures.rbudp is None:
        return not figures.asked_bps and not figures.lost_packets
    paced_share = figures.rbudp.paced_share
    return paced_share is not None and paced_share < limits_of(figures).pacing_late


def _larger(granted: int | None, good: int) -> str:
    """A buffer that is good for most paths, or twice what there is already."""
    return size_text(good if not granted or granted < good else 2 * granted)


def larger_udp_buffer(figures: Figures) -> str:
    """A receive buffer for a plain UDP run, as `--receive-buffer` takes it."""
    return _larger(figures.receive_buffer_granted, _UDP_BUFFER_GOOD)
