"""Rules for UDT's windows and buffers, by the accounts that the connection itself keeps.

A UDT sender splits its busy time as the kernel does for TCP: held back by the receiver's window,
by a send buffer full of packets under way, or by neither. The receiver's window is the free part of
its buffer, and no more than the flow windows of both ends.
"""

from __future__ import annotations

from farline.explain import cpu_rules
from farline.explain.figures import Figures
from farline.explain.finding import Finding, larger_block, own_cpu, percent
from farline.explain.udt_figures import UdtFigures
from farline.spec.units import rate_human, size_human, size_text, time_human

WINDOW_MATTERS = 0.3
"""Share of busy time from which a window or buffer is the limit."""

READER_BUSY = 0.6
"""Share of the time in which the receiver runs or waits for a CPU, from which it is too slow."""

WINDOW_FULL = 0.85
"""Share of a window that is under way on average from which it is the limit, whatever the accounts
say: a control that works from a model takes what the window lets through for the path's rate, and
paces at that."""

BUFFER_FREE = 0.5
"""Share of the receive buffer that is free where the reader keeps up."""

BUFFER_MAX = 1 << 30
"""The most that farline takes by itself."""


def receive_window(figures: Figures) -> Finding | None:
    """The receiver's window, its buffer or the flow window, held the senders back."""
    share, udt = figures.receive_window_share, udt_of(figures)
    held = share >= max(WINDOW_MATTERS, figures.send_buffer_share)
    if not held and not _is_full(udt, udt.flow_window_packets):
        return None
    waited = f"senders waited for it {percent(share)} of their busy time"
    if not held:
        waited = f"{udt.flight_packets:.0f} of its {udt.flow_window_packets:.0f} packets under way"
    if udt.reader_free_share is not None and udt.reader_free_share < BUFFER_FREE:
        return _slow_reader(figures, waited)
    cap, remedy = _window_cap(figures)
    line = f"receiver window: {waited}; {cap}"
    return Finding("receive-window", line, _window_evidence(figures), (remedy,))


def _is_full(udt: UdtFigures, packets: float | None) -> bool:
    """Whether a window of `packets` is full on average, and smaller than the congestion window."""
    if not packets or udt.flight_packets is None:
        return False
    smaller = udt.cwnd_packets is None or packets < udt.cwnd_packets
    return smaller and udt.flight_packets >= WINDOW_FULL * packets


def _slow_reader(figures: Figures, waited: str) -> Finding:
    """The window closed because nobody emptied the buffer in time."""
    free = percent(udt_of(figures).reader_free_share or 0.0)
    evidence = (*_window_evidence(figures), f"{free} of the receive buffer was free on average")
    used, queued = figures.receiver_cpu, figures.receiver_wait
    if used + queued >= READER_BUSY:
        line = (
            f"receiver CPU: it reads too slowly, its buffer filled up ({waited}); its thread uses "
            f"{percent(used)} of one CPU and waits {percent(queued)} of the time for one"
        )
        remedies = cpu_rules.mend(figures, "receiver")
        if queued >= cpu_rules.WAIT_MATTERS:
            remedies = (*cpu_rules.shared_cpu(figures, "receiver"), *remedies)
        return Finding("receiver-cpu", line, evidence, remedies)
    line = f"receiver window: {waited}; its buffer filled up, the receiving program reads in bursts"
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
            f"a larger one: --flow-window {wanted}",
        )
    return f"the receive buffer of {size_human(size)} caps it", _larger(figures, "receive", size)


def send_buffer(figures: Figures) -> Finding | None:
    """The send buffer was full of packets under way."""
    share, udt = figures.send_buffer_share, udt_of(figures)
    size, payload = udt.send_buffer_bytes, udt.payload_bytes
    held = share >= WINDOW_MATTERS
    if not held and not _is_full(udt, size / payload if payload else None):
        return None
    often = f"{percent(share)} of the busy time" if held else "on average"
    line = (
        f"send buffer: it was full of packets under way {often}; "
        f"the buffer of {size_human(size)} caps it"
    )
    remedies = (_larger(figures, "send", size),)
    return Finding("send-buffer", line, _bound_evidence(figures, size), remedies)


def _larger(figures: Figures, which: str, current: int) -> str:
    if current >= BUFFER_MAX:
        return "more streams share the path: -P 4"
    return f"a larger buffer: --{which}-buffer {size_text(_wanted_bytes(figures, current))}"


def _wanted_bytes(figures: Figures, current: int) -> int:
    """Twice what the link and the round-trip time ask for, or twice what there was."""
    link_bps = figures.path_payload_bps or figures.link_bps
    wanted = 2 * current
    if link_bps and figures.mean_rtt_us:
        wanted = max(wanted, round(2 * link_bps / 8 * figures.mean_rtt_us / 1e6))
    return min(-(-wanted // (1 << 20)) << 20, BUFFER_MAX)


def _window_evidence(figures: Figures) -> tuple[str, ...]:
    """What the receiver's window allows, and what the rate reached needs."""
    udt = udt_of(figures)
    if not udt.flow_window_packets or not udt.payload_bytes:
        return ()
    return _bound_evidence(figures, round(udt.flow_window_packets * udt.payload_bytes))


def _bound_evidence(figures: Figures, window_bytes: int | None) -> tuple[str, ...]:
    """What a window of so many bytes allows over the round-trip time."""
    if not window_bytes or not figures.mean_rtt_us:
        return ()
    bound_bps = window_bytes * 8e6 / figures.mean_rtt_us
    return (
        f"{size_human(window_bytes)} over round-trip time {time_human(figures.mean_rtt_us)} "
        f"allow {rate_human(bound_bps)} per stream",
        f"bandwidth-delay product at the rate reached: {size_human(figures.bdp_bytes or 0.0)}",
    )


def udt_of(figures: Figures) -> UdtFigures:
    """What only UDT has; a rule about UDT is asked of UDT runs alone."""
    if figures.udt is None:
        raise ValueError("a rule about UDT was asked about another transport")
    return figures.udt
