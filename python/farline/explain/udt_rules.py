"""Rules for UDT: who was idle or dropped packets, then losses, pacing and the path.

What neither the receiver's window nor the send buffer held back was the congestion control's: its
window, or its pacing, whose waits the connection counts too.
"""

from __future__ import annotations

from farline.explain import cpu_rules, udt_window_rules
from farline.explain.figures import Figures
from farline.explain.finding import (
    Finding,
    cheaper_packets,
    larger_block,
    larger_packets,
    more_streams,
    own_cpu,
    percent,
)
from farline.explain.tcp_rules import full_link, starved_sender
from farline.explain.udt_window_rules import udt_of
from farline.spec.units import rate_human, size_text, time_human

CPU_BUSY = 0.6
"""Share of one CPU from which a thread is named where nothing else stands out."""

IDLE_SENDER = 0.7
"""Share of the time with data to send below which the application is the limit."""

LOSS_MATTERS = 1e-5
"""Share of lost packets from which losses hold back a control that takes each for congestion."""

BURST_PACKETS = 44
"""Packets that one dropped datagram of an emulated path may hold: they come joined."""

DROPS_MATTER = 0.5
"""Share of the losses that hosts must have dropped where a link loses packets by order."""

LOSS_MATTERS_TO_MODEL = 0.02
"""The same for a control that works from a model of the path (BBR's own limit)."""

STILL_GROWING = 1.25
"""Growth of the rate over the last third from which it had not settled."""

PACING_MATTERS = 0.5
"""Share of busy time spent waiting for the pacing from which the pacing is the limit."""

RATE_ORDERED = 0.95
"""Share of the ordered rate from which a control paces at that and no longer at its own."""

LINK_FOUND, LINK_USED = 0.9, 0.8
"""Shares of the link's rate that are paced at and that came through, ramp included, from which a
control has found it."""

QUEUE_RATIO, QUEUE_MIN_US = 1.5, 500.0
"""Round-trip time over its smallest value that means a standing queue; below half a millisecond
it is threads that wait to run."""

SOCKET_GOOD = 64 << 20
"""Receive buffer of a UDP socket that rides out a thread without a CPU; the transport's default."""

_MODELS = ("bbr",)
"""Controls that do not take every loss for congestion."""


def idle_sender(figures: Figures) -> Finding | None:
    """The sender often had nothing to send: farline itself, or the CPU it wants, was too slow."""
    if figures.busy_share is None or figures.busy_share >= IDLE_SENDER:
        return None
    idle = percent(1 - figures.busy_share)
    line = f"application: senders had nothing to send {idle} of the time"
    remedies = (*larger_block(figures), *own_cpu(figures, "sender"), *more_streams(figures))
    return Finding("application", line, remedies=remedies)


def dropped_by_host(figures: Figures) -> Finding | None:
    """Packets are lost where no path can lose them: the socket of the receiving host overflowed."""
    udt = udt_of(figures)
    dropped = udt.drops > 0 or (figures.same_host and not udt.emulated)
    if not dropped or figures.lost_share < LOSS_MATTERS:
        return None
    if udt.wire_loss and BURST_PACKETS * udt.drops < DROPS_MATTER * figures.lost_packets:
        return None
    where = f"{udt.drops} dropped by the hosts" if udt.drops else "on one host"
    line = (
        f"receive buffer: {_lost(figures)}, {where}: "
        "the UDP socket overflowed before the receiver's thread ran"
    )
    slower = f"less than arrived: -b {0.9 * figures.stream_bps / 1e9:.3g}G"
    remedies = (*_larger_socket(figures), *own_cpu(figures, "receiver"), slower)
    evidence = (f"rmem_max {figures.receiver_sysctls.get('net.core.rmem_max', 'not known')}",)
    return Finding("receive-buffer", line, evidence, remedies)


def _larger_socket(figures: Figures) -> tuple[str, ...]:
    """A larger buffer of the UDP socket, and leave for it; Linux grants twice what is asked."""
    asked, granted = udt_of(figures).udp_buffer_asked, figures.receive_buffer_granted
    ask = (f"a larger one: --udp-receive-buffer {size_text(SOCKET_GOOD)}",)
    allow = (f"allow it: sysctl -w net.core.rmem_max={SOCKET_GOOD}",)
    return (
        *(ask if asked is not None and asked < SOCKET_GOOD else ()),
        *(allow if granted is None or granted < 2 * SOCKET_GOOD else ()),
    )


def growing_rate(figures: Figures) -> Finding | None:
    """The run ended before the rate had settled."""
    growth = udt_of(figures).rate_growth
    if growth is None or growth < STILL_GROWING or _losses_matter(figures):
        return None
    line = (
        f"congestion control: the rate of {_control(figures)} still grew by {percent(growth - 1)} "
        "in the last third"
    )
    longer_s = max(30.0, 2 * (figures.duration_s or 0.0))
    ramp = () if figures.omit_s else ("leave the ramp out: -O 5",)
    return Finding("cwnd", line, remedies=(f"a longer run: -t {longer_s:g}", *ramp))


def standing_queue(figures: Figures) -> Finding | None:
    """Packets wait in a queue: the path delivers what it can."""
    waiting_us = _queue_us(figures)
    if waiting_us is None:
        return None
    losses = f"; {_lost(figures)}, since the queue overflows" if figures.lost_packets else ""
    line = f"path: it is full, packets wait {time_human(waiting_us)} in queues{losses}"
    remedies = ("a faster path, or less load on it", *larger_packets(figures))
    return Finding("path", line, _capacity_evidence(figures), remedies)


def _queue_us(figures: Figures) -> float | None:
    """What the mean round-trip time has over the smallest, where that is a queue of the path."""
    mean_us, min_us = figures.mean_rtt_us, figures.min_rtt_us
    if figures.same_host or not mean_us or not min_us:
        return None
    if mean_us < QUEUE_RATIO * min_us or mean_us - min_us < QUEUE_MIN_US:
        return None
    return mean_us - min_us


def losses(figures: Figures) -> Finding | None:
    """Losses hold the congestion control down though no queue stands: chance, or a short queue."""
    if not _losses_matter(figures):
        return None
    name = _control(figures)
    chance = {
        True: "the path loses packets by itself, with no queue standing",
        False: "no link loses packets by itself, so a queue overflows now and then",
        None: "no queue stands on average: chance, or a short queue",
    }[udt_of(figures).wire_loss]
    line = f"congestion control: losses hold {name} down ({_lost(figures)}); {chance}"
    other = () if name in _MODELS else ("a control that chance does not slow down: -C bbr",)
    return Finding("cwnd", line, remedies=(*other, *more_streams(figures)))


def _losses_matter(figures: Figures) -> bool:
    limit = LOSS_MATTERS_TO_MODEL if _control(figures) in _MODELS else LOSS_MATTERS
    return _control(figures) != "fixed" and figures.lost_share >= limit


def fixed_rate(figures: Figures) -> Finding | None:
    """A stated rate that the path does not take: what is sent beyond it is lost."""
    if _control(figures) != "fixed" or figures.lost_share < LOSS_MATTERS:
        return None
    line = (
        f"path: {rate_human(figures.throughput_bps)} of the {rate_human(figures.asked_bps)} "
        f"that were ordered came through ({_lost(figures)})"
    )
    reached = f"the rate that arrived: -b {figures.stream_bps / 1e9:.3g}G"
    return Finding("path", line, remedies=(reached, "a control that finds the rate: -C bbr"))


def late_pacing(figures: Figures) -> Finding | None:
    """Paced at the rate that was ordered, which is not reached: the thread comes late to it."""
    udt, asked_bps = udt_of(figures), figures.asked_bps / figures.streams
    at_rate = figures.pacing_bps is not None and figures.pacing_bps >= RATE_ORDERED * asked_bps
    if not asked_bps or not at_rate or udt.paced_share < PACING_MATTERS:
        return None
    reached = figures.throughput_bps / figures.asked_bps
    line = (
        f"sender CPU: {percent(reached)} of {rate_human(figures.asked_bps)} reached, held back by "
        f"nothing else; its thread waits {percent(figures.sender_wait)} of the time for a CPU "
        "and comes late to its own pacing"
    )
    return Finding("sender-cpu", line, remedies=cpu_rules.shared_cpu(figures, "sender"))


def found_link(figures: Figures) -> Finding | None:
    """Nearly all that the link carries came through, or a model paces at the link's rate."""
    most = figures.path_payload_bps or figures.link_bps
    if not most or figures.throughput_bps < LINK_USED * most:
        return None
    pacing_bps = (figures.pacing_bps or 0.0) * figures.streams
    paced = _control(figures) in _MODELS and pacing_bps >= LINK_FOUND * most
    if not paced and figures.throughput_bps < LINK_FOUND * most:
        return None
    share = percent(figures.throughput_bps / most)
    line = f"path: {share} of what the link carries, the start included"
    if paced:
        line += f"; {_control(figures)} has found its rate and paces at {rate_human(pacing_bps)}"
    elif figures.lost_packets:
        line += f"; {_lost(figures)}"
    ramp = () if figures.omit_s else ("leave the ramp out: -O 5",)
    return Finding("path", line, remedies=(*ramp, "a faster link", *larger_packets(figures)))


def paced(figures: Figures) -> Finding | None:
    """The congestion control paces at what it believes the path can carry."""
    udt = udt_of(figures)
    if udt.paced_share < PACING_MATTERS:
        return None
    at = f" at {rate_human(figures.pacing_bps)} a stream" if figures.pacing_bps else ""
    line = (
        f"congestion control: {_control(figures)} paces{at}; senders waited for it "
        f"{percent(udt.paced_share)} of their busy time"
    )
    others = [f"-C {name}" for name in ("bbr", "native") if name != _control(figures)]
    remedies = (*more_streams(figures), f"another control: {others[0]}")
    return Finding("cwnd", line, _capacity_evidence(figures), remedies)


def steady_window(figures: Figures) -> Finding | None:
    """The congestion window was the limit though little was lost."""
    share = figures.cwnd_share - udt_of(figures).paced_share
    if share < PACING_MATTERS or not _window_full(figures):
        return None
    line = f"congestion window: senders waited for it {percent(share)} of their busy time"
    remedies = (*more_streams(figures), "a longer run")
    return Finding("cwnd", line, remedies=remedies)


def _window_full(figures: Figures) -> bool:
    """Whether what was under way came near what the congestion window allows."""
    udt = udt_of(figures)
    return not udt.cwnd_packets or (udt.flight_packets or 0.0) >= 0.5 * udt.cwnd_packets


def nearly_busy(figures: Figures) -> Finding | None:
    """Nothing else held it back and a thread has little time left: packets cost what they cost."""
    used = {"sender": figures.sender_cpu, "receiver": figures.receiver_cpu}
    role, share = max(used.items(), key=lambda item: item[1])
    if share < CPU_BUSY:
        return None
    line = (
        f"{role} CPU: nothing else held the run back; its thread uses {percent(share)} of one CPU"
    )
    remedies = (*cheaper_packets(figures), *larger_block(figures), *own_cpu(figures, role))
    return Finding(cpu_rules.LIMIT[role], line, remedies=remedies)


def evidence(figures: Figures) -> list[str]:
    """What every verdict about a UDT run rests on besides the common figures."""
    if figures.udt is None:
        return []
    lines = [
        f"{figures.sent_packets} packets sent, {figures.retransmits} of them again; "
        f"{_lost(figures)}; control {_control(figures)}"
    ]
    udt = figures.udt
    if udt.flight_packets is not None:
        windows = [
            f"{value:.0f} {what}"
            for what, value in (
                ("the congestion window", udt.cwnd_packets),
                ("the flow window", udt.flow_window_packets),
            )
            if value is not None
        ]
        allowed = f"; allowed were {', '.join(windows)}" if windows else ""
        lines.append(f"{udt.flight_packets:.0f} packets under way on average{allowed}")
    if udt.packet_bytes_most:
        lines.append(
            f"packets of {udt.packet_bytes} B, where both ends' MTU takes {udt.packet_bytes_most} B"
        )
    return lines


def _control(figures: Figures) -> str:
    return figures.congestion_control or "congestion control"


def _lost(figures: Figures) -> str:
    share = percent(figures.lost_share)
    return f"{figures.lost_packets} of {figures.sent_packets} packets lost, {share}"


def _capacity_evidence(figures: Figures) -> tuple[str, ...]:
    capacity_bps = udt_of(figures).link_capacity_bps
    if not capacity_bps:
        return ()
    return (f"capacity of the path by packet pairs: {rate_human(capacity_bps)}",)


RULES = (
    cpu_rules.busy_thread,
    cpu_rules.busy_host,
    udt_window_rules.receive_window,
    udt_window_rules.send_buffer,
    starved_sender,
    idle_sender,
    dropped_by_host,
    full_link,
    fixed_rate,
    growing_rate,
    standing_queue,
    found_link,
    losses,
    late_pacing,
    paced,
    steady_window,
    nearly_busy,
)
"""Rules for UDT, in the order they are asked."""
