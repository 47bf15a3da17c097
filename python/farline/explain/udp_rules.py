"""Rules for UDP: where datagrams were lost, or why no more were sent."""

from __future__ import annotations

from farline.explain import cpu_rules
from farline.explain.figures import Figures
from farline.explain.finding import Finding, more_streams, percent
from farline.spec.units import rate_human, size_human, size_text

LOSS_MATTERS = 0.001
"""Share of lost datagrams below which loss is not the story."""

READER_BUSY = 0.8
"""Share of a CPU from which a receiver that loses datagrams is itself too slow."""


_BATCH_SHORT = 8
"""Datagrams per call that make a burst short."""


def is_lossy(figures: Figures) -> bool:
    """Whether so many datagrams were lost that the loss is the story."""
    return figures.transport == "udp" and figures.lost_share >= LOSS_MATTERS


def _larger(granted: int | None, good: int) -> str:
    """A buffer that is good for most paths, or twice what there is already."""
    return size_text(good if not granted or granted < good else 2 * granted)


def _lost(figures: Figures) -> str:
    return f"{percent(figures.lost_share)} of {figures.sent_packets} datagrams lost"


def slow_reader(figures: Figures) -> Finding | None:
    """Datagrams are lost and the receiver's thread is busy: it reads too slowly."""
    if not is_lossy(figures) or figures.receiver_cpu < READER_BUSY:
        return None
    busy = percent(figures.receiver_cpu)
    line = f"receiver CPU: {_lost(figures)} while its thread uses {busy} of one CPU"
    wakes = "larger --packet" if figures.gro else "--gro on, larger --packet"
    remedies = ("a lower rate with -b", f"fewer wake-ups: {wakes}", *more_streams(figures))
    return Finding("receiver-cpu", line, remedies=remedies)


def overflowing_buffer(figures: Figures) -> Finding | None:
    """Datagrams are lost where no path can lose them: the receive buffer overflowed."""
    if not is_lossy(figures) or not figures.same_host:
        return None
    granted = figures.receive_buffer_granted
    size = f" of {size_human(granted)}" if granted else ""
    line = f"receive buffer: {_lost(figures)} on one host, so the buffer{size} overflowed"
    wanted = max(4 * (granted or 0), 8 << 20)
    remedies = (
        f"the rate that arrived: -b {figures.throughput_bps / 1e9:.3g}G",
        f"a larger buffer: --receive-buffer {size_text(wanted)}",
        f"allow it: sysctl -w net.core.rmem_max={wanted}",
    )
    return Finding("receive-buffer", line, (f"rmem_max {_rmem_max(figures)}",), remedies)


def _rmem_max(figures: Figures) -> str:
    return figures.receiver_sysctls.get("net.core.rmem_max", "not known")


def lossy_path(figures: Figures) -> Finding | None:
    """Datagrams are lost and the receiver had time: the path dropped them."""
    if not is_lossy(figures):
        return None
    line = f"path: {_lost(figures)} at {rate_human(figures.throughput_bps)} received"
    shorter = figures.batch_packets is None or figures.batch_packets > _BATCH_SHORT
    remedies = (
        f"the rate that arrived: -b {figures.throughput_bps / 1e9:.3g}G",
        *((f"shorter bursts: --batch {_BATCH_SHORT}",) if shorter else ()),
        "a larger receive buffer, to rule the host out: "
        f"--receive-buffer {_larger(figures.receive_buffer_granted, 8 << 20)}",
    )
    return Finding("path", line, remedies=remedies)


def slow_sender(figures: Figures) -> Finding | None:
    """Nothing is lost and the rate asked for is not reached: the sender is behind."""
    if not figures.asked_bps or figures.sender_cpu < READER_BUSY:
        return None
    reached = f"{rate_human(figures.throughput_bps)} of {rate_human(figures.asked_bps)}"
    line = f"sender CPU: {reached} with its thread at {percent(figures.sender_cpu)} of one CPU"
    gso = () if figures.gso else ("fewer calls: --gso on",)
    remedies = ("larger datagrams: --packet", *gso, *more_streams(figures))
    return Finding("sender-cpu", line, remedies=remedies)


def blocked_sender(figures: Figures) -> Finding | None:
    """Without a rate limit and without loss: the socket gave no more room."""
    if figures.asked_bps or figures.lost_packets:
        return None
    line = "send buffer: the sender waited for room in its socket, and nothing was lost"
    larger = f"a larger buffer: --send-buffer {_larger(figures.send_buffer_granted, 4 << 20)}"
    remedies = (larger, *more_streams(figures))
    return Finding("send-buffer", line, remedies=remedies)


RULES = (
    slow_reader,
    overflowing_buffer,
    lossy_path,
    cpu_rules.busy_thread,
    cpu_rules.busy_host,
    slow_sender,
    blocked_sender,
)
"""Rules for UDP, in the order they are asked."""
