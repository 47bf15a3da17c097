"""Rules for UDT's windows and buffers, by the accounts that the connection itself keeps.

A UDT sender splits its busy time as the kernel does for TCP: held back by the receiver's window,
by a send buffer full of packets in flight, or by neither. The receiver's window is the free part of
its buffer, and no more than the flow windows of both ends.
"""

from __future__ import annotations

from farline.findings.figures import Figures
from farline.findings.finding import Finding, larger_block, own_cpu, percent
from farline.findings.rules.cpu import cheaper_thread, shared_cpu, thread_use
from farline.findings.rules.limits import limits_of
from farline.findings.udt_figures import UdtFigures
from farline.spec.units import rate_human, size_human, size_text, time_human

BUFFER_MAX = 1 << 30
"""The most that farline takes by itself."""


def receive_window(figures: Figures) -> Finding | None:
    """The receiver's window, its buffer or the flow window, held the senders back."""
    share, udt = figures.receive_window_share, udt_of(figures)
    limits = limits_of(figures)
    held = share >= max(limits.window, figures.send_buffer_share)
    if not held and not _is_full(figures, udt.flow_window_packets):
        return None
    waited = f"senders waited for it {percent(share)} of their busy time"
    if not held:
        waited = f"{udt.flight_packets:.0f} of its {udt.flow_window_packets:.0f} packets in flight"
    if udt.reader_free_share is not None and udt.reader_free_share < limits.buffer_free:
        return _slow_reader(figures, waited)
    cap, remedy = _window_cap(figures)
    line = f"receiver window: {waited}; {cap}"
    return Finding("receive-window", line, _window_evidence(figures), (remedy,))


def _is_full(figures: Figures, packets: float | None) -> bool:
    """Whether a window of `packets` is full on average, and smaller than the congestion window."""
    udt = udt_of(figures)
    if not packets or udt.flight_packets is None:
        return False
    smaller = udt.cwnd_packets is None or packets < udt.cwnd_packets
    return smaller and udt.flight_packets >= limits_of(figures).window_in_flight * packets


def _slow_reader(figures: Figures, waited: str) -> Finding:
    """The window closed because nobody emptied the buffer in time."""
    free = percent(udt_of(figures).reader_free_share or 0.0)
    evidence = (*_window_evidence(figures), f"{free} of the receive buffer was free on average")
    used, queued, limits = figures.receiver_cpu, figures.receiver_wait, limits_of(figures)
    if used + queued >= limits.reader_busy:
        line = (
            f"receiver CPU: it reads too slowly, so its buffer filled up ({waited}); its thread "
            f"{thread_use(used, queued, limits.thread_wait)}"
        )
        remedies = cheaper_thread(figures, "receiver")
        if queued >= limits.thread_wait:
            remedies = (*shared_cpu(figures, "receiver"), *remedies)
        return Finding("receiver-cpu", line, evidence, remedies)
    line = f"receiver window: {waited}; its buffer filled up: the receiving program reads in bursts"
    remedies = (*larger_block(figures), *own_cpu(figures, "receiver"))
    return Finding("receive-window", line, evidence, remedies)


def _window_cap(figures: Figures) -> tuple[str, str]:
    """Which of the two caps the window, and what raises it."""
    udt = udt_of(figures)
    asked, payload, size = udt.flow_window_asked, udt.payload_bytes, udt.receive_buffer_bytes
    if asked and payload and asked * payload < size:
        wanted = max(2 * asked, round(_wanted_bytes(figures, asked * payload) / payload))
        return (
            f"the flow window of {asked} packets caps it",
            f"a larger window: --flow-window {wanted}",
        )
    return f"the receive buffer of {size_human(size)} caps it", _larger(figures, "receive", size)


def send_buffer(figures: Figures) -> Finding | None:
    """The send buffer was full of packets in flight."""
    share, udt = figures.send_buffer_share, udt_of(figures)
    size, payload = udt.send_buffer_bytes, udt.payload_bytes
    held = share >= limits_of(figures).window
    if not held and not _is_full(figures, size / payload if payload else None):
        return None
    often = f"{percent(share)} of the busy time" if held else "on average"
    line = (
        f"send buffer: it was full of packets in flight {often}; "
        f"the buffer of {size_human(size)} caps it"
    )
    remedies = (_larger(figures, "send", size),)
    return Finding("send-buffer", line, _bound_evidence(figures, size), remedies)


def _larger(figures: Figures, which: str, current: int) -> str:
    if current >= BUFFER_MAX:
        return "more streams to share the path: -P 4"
    return f"a larger buffer: --{which}-buffer {size_text(_wanted_bytes(figures, current))}"


def _wanted_bytes(figures: Figures, current: int) -> int:
    """Twice what the link and the round-trip time ask for, or twice what there was."""
    link_bps = figures.path_payload_bps or figures.link_bps
    wanted = 2 * current
    if link_bps and figures.mean_rtt_us:
        wanted = max(wanted, round(2 * link_bps / 8 * figures.mean_rtt_us / 1e6))
    return min(-(-wanted // (1 << 20)) << 20, BUFFER_MAX)


def _window_evidence(figures: Figures) -> tuple[str, ...]:
    """What the receiver's window allows, and what the measured rate needs."""
    udt = udt_of(figures)
    if not udt.flow_window_packets or not udt.payload_bytes:
        return ()
    return _bound_evidence(figures, round(udt.flow_window_packets * udt.payload_bytes))


def _bound_evidence(figures: Figures, window_bytes: int | None) -> tuple[str, ...]:
    """What a window of that size allows over the round-trip time."""
    if not window_bytes or not figures.mean_rtt_us:
        return ()
    bound_bps = window_bytes * 8e6 / figures.mean_rtt_us
    return (
        f"a window of {size_human(window_bytes)} over a round-trip time of "
        f"{time_human(figures.mean_rtt_us)} allows {rate_human(bound_bps)} per stream",
        f"bandwidth-delay product at the measured rate: {size_human(figures.bdp_bytes or 0.0)}",
    )


def udt_of(figures: Figures) -> UdtFigures:
    """What only UDT has; a rule about UDT is asked of UDT runs alone."""
    if figures.udt is None:
        raise ValueError("a rule about UDT was asked about another transport")
    return figures.udt
