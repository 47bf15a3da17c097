"""Rules for RBUDP: who lost packets, what left the path idle, what the rate does to others.

The stated rate is a demand, not a discovery: nothing slows down by itself. So a run that falls
short either loses packets (at the receiving host or on the path), or leaves the path idle between
blasts (papers/4, eq. 4), or its sender is late.
"""

from __future__ import annotations

import math
from dataclasses import replace

from farline.explain import cpu_rules
from farline.explain.figures import Figures
from farline.explain.finding import Finding, more_streams, own_cpu, percent
from farline.explain.rbudp_figures import RbudpFigures
from farline.explain.udt_rules import BURST_PACKETS, DROPS_MATTER, SOCKET_GOOD
from farline.profiles.blasts import payload_for
from farline.spec.units import rate_human, size_human, size_text, time_human

LOSS_MATTERS = 0.001
"""Share of packets missing after the first pass below which loss is not the story."""

READER_BUSY = 0.8
"""Share of the time in which a receiver that loses packets runs or waits for a CPU."""

CPU_BUSY = 0.6
"""Share of one CPU from which a thread is named where nothing else stands out."""

CARRIES = 0.95
"""Share of the stated rate from which a path carries it: below, trains come in stretched."""

EFFICIENT = 0.95
"""Share of the rate that payload and blasts under way allow, from which they are no limit."""

EFFICIENCY_WANTED = 0.9
"""Share of the rate for which a payload is proposed, as papers/4 does after eq. 4."""

SLOTS_FULL = 0.9
"""Share of the blasts allowed at once from which, under way on average, they are a limit."""

ALWAYS_ONE = 0.8
"""Blasts under way on average below which there was often none: a sender at work has one."""

PACING_SELDOM = 0.5
"""Share of the time spent waiting for the pacing below which something else holds a sender up."""

PACING_LATE = 0.05
"""The same below which a sender that is busy is behind its pacing."""

EXPLAINS = 0.5
"""Part of what lacks at the stated rate that losses or idle times make up if they are the cause."""

RATE_LOWERED = 0.95
"""Share of the stated rate below which the bound on losses has lowered it."""

PAYLOAD_MAX, IN_FLIGHT_MAX = 8 << 30, 64
"""The most that the spec allows."""

_MIB = 1 << 20


def rbudp_of(figures: Figures) -> RbudpFigures:
    """The figures that only RBUDP has; the rules here are asked for its runs alone."""
    assert figures.rbudp is not None
    return figures.rbudp


def lost_share(figures: Figures) -> float:
    """Share of the packets that were missing after they had been sent once."""
    blasts = rbudp_of(figures).blasts
    return blasts.first_pass_lost_share if blasts and blasts.packets else figures.lost_share


def rate_flag(rate_bps: float) -> str:
    """A rate as `-b` takes it, to three digits and never more than it is."""
    scale, unit = (1e9, "G") if rate_bps >= 1e9 else (1e6, "M")
    value = rate_bps / scale
    digits = 2 if value < 10 else 1 if value < 100 else 0
    # What lacks by the last bits of a float is none that is shown.
    return f"-b {math.floor(value * 10**digits + 1e-6) / 10**digits:g}{unit}"


def _is_lossy(figures: Figures) -> bool:
    return lost_share(figures) >= LOSS_MATTERS


def _lost(figures: Figures) -> str:
    return f"{percent(lost_share(figures))} of the packets were missing after the first pass"


def _explains(figures: Figures, share: float) -> bool:
    """Whether a share of the rate that is lost or left idle is most of what lacks."""
    return share >= EXPLAINS * (1 - figures.throughput_bps / figures.asked_bps)


def _stream_rate_bps(figures: Figures) -> float:
    """Stated rate of one stream; 0 is as fast as the host can."""
    return figures.asked_bps / figures.streams


def rtt_us(figures: Figures) -> float | None:
    """Round-trip time of the run, or what it was before the blasts began."""
    check = rbudp_of(figures).path_check
    known = (figures.mean_rtt_us, check["min_rtt_us"] if check else None, figures.min_rtt_us)
    return next((float(value) for value in known if value), None)


def rate_remedies(figures: Figures) -> tuple[str, ...]:
    """What to do where the stated rate is the limit: more only on a path that is one's own."""
    if rbudp_of(figures).shared:
        return ()
    return (f"a higher rate, if the path is yours alone and has it: {figures.asked_by}",)


def slow_receiver(figures: Figures) -> Finding | None:
    """Packets are lost and the receiver's thread always runs: it takes them in too slowly."""
    used, waited = figures.receiver_cpu, figures.receiver_wait
    if not _is_lossy(figures) or used + waited < READER_BUSY:
        return None
    line = f"receiver CPU: {_lost(figures)} while its thread uses {percent(used)} of one CPU"
    if waited >= cpu_rules.WAIT_MATTERS:
        line += f" and waits {percent(waited)} of the time for one that others have"
    remedies = (_lower_rate(figures), *_cheaper_receiver(figures), *_room_to_receive(figures))
    return Finding("receiver-cpu", line, remedies=remedies)


def _lower_rate(figures: Figures) -> str:
    """What came through of each stream is what the receiver can take."""
    return f"a lower rate: {rate_flag(0.95 * figures.stream_bps)}"


def _cheaper_receiver(figures: Figures) -> tuple[str, ...]:
    rbudp = rbudp_of(figures)
    checked = ("--no-checksum shows how much of it is checking",) if rbudp.checksum else ()
    return (
        *(
            ("no second move of each packet: --receiver gather",)
            if rbudp.receiver == "naive"
            else ()
        ),
        *(("fewer calls: --gro",) if figures.gro is False else ()),
        *checked,
    )


def _room_to_receive(figures: Figures) -> tuple[str, ...]:
    """A larger buffer of the socket and leave for it, then other CPUs."""
    asked, granted = rbudp_of(figures).udp_buffer_asked, figures.receive_buffer_granted
    # Linux grants twice what is asked.
    small = granted is None or granted < 2 * SOCKET_GOOD
    ask = f"a larger buffer of the socket: --udp-receive-buffer {size_text(SOCKET_GOOD)}"
    return (
        *((ask,) if small and (asked is None or asked < SOCKET_GOOD) else ()),
        *((f"allow it: sysctl -w net.core.rmem_max={SOCKET_GOOD}",) if small else ()),
        *own_cpu(figures, "receiver"),
    )


def overflowing_socket(figures: Figures) -> Finding | None:
    """Packets are lost where no path can lose them: the receiving host's socket overflowed."""
    rbudp = rbudp_of(figures)
    dropped = rbudp.drops > 0 or (figures.same_host and not rbudp.emulated)
    if not dropped or not _is_lossy(figures):
        return None
    if rbudp.wire_loss and BURST_PACKETS * rbudp.drops < DROPS_MATTER * figures.lost_packets:
        return None
    where = f"{rbudp.drops} dropped by the hosts" if rbudp.drops else "on one host"
    line = (
        f"receive buffer: {_lost(figures)}, {where}: "
        "the UDP socket overflowed before the receiver's thread ran"
    )
    evidence = (f"rmem_max {figures.receiver_sysctls.get('net.core.rmem_max', 'not known')}",)
    remedies = (*_room_to_receive(figures), _lower_rate(figures))
    return Finding("receive-buffer", line, evidence, remedies)


def carried_bps(figures: Figures) -> float | None:
    """What is known to fit through the path, all streams, where that is less than the rate."""
    rbudp, asked_bps = rbudp_of(figures), figures.asked_bps
    known = [figures.path_payload_bps, figures.link_bps]
    # A path that is not found to be shared let the trains through, whatever times its hosts took.
    if rbudp.shared and rbudp.carried_share is not None:
        known.append(rbudp.carried_share * asked_bps)
    least = min((float(bps) for bps in known if bps), default=None)
    # Without a stated rate whatever is known is less.
    return least if least is not None and (not asked_bps or least < asked_bps) else None


def overloaded_path(figures: Figures) -> Finding | None:
    """The stated rate is more than the path carries: what is beyond it is lost, and sent again."""
    most = carried_bps(figures)
    if most is None or not _is_lossy(figures):
        return None
    stated = f" of the stated {rate_human(figures.asked_bps)}" if figures.asked_bps else ""
    line = f"path: it carries {rate_human(most)}{stated}, the rest is lost: {_lost(figures)}"
    fitting = f"what the path carries: {rate_flag(CARRIES * most / figures.streams)}"
    return Finding("path", line, remedies=(fitting,))


def busy_end(figures: Figures) -> Finding | None:
    """A thread always runs, or all CPUs of a host do, though little is lost."""
    found = cpu_rules.busy_thread(figures) or cpu_rules.busy_host(figures)
    if found is None:
        return None
    role = "receiver" if found.limit == "receiver-cpu" else "sender"
    return replace(found, remedies=(*_cheaper(figures, role), *more_streams(figures)))


def _cheaper(figures: Figures, role: str) -> tuple[str, ...]:
    if role == "receiver":
        return (*_cheaper_receiver(figures), *own_cpu(figures, role))
    checked = rbudp_of(figures).checksum
    return (
        *(("fewer calls: --gso",) if figures.gso is False else ()),
        *(("--no-checksum shows how much of it is checking",) if checked else ()),
        *own_cpu(figures, role),
    )


def slow_sender(figures: Figures) -> Finding | None:
    """The sender does not keep up with its own pacing: nothing ever waits for it."""
    paced_share, busy = rbudp_of(figures).paced_share, figures.sender_cpu + figures.sender_wait
    late = paced_share is not None and paced_share < PACING_LATE
    if not figures.asked_bps or busy < (CPU_BUSY if late else READER_BUSY):
        return None
    # Short waits are spun, which looks like work.
    if paced_share is not None and paced_share >= PACING_SELDOM:
        return None
    if _explains(figures, lost_share(figures)):
        return None
    reached = f"{rate_human(figures.throughput_bps)} of {rate_human(figures.asked_bps)}"
    line = (
        f"sender CPU: {reached}, and its thread is behind its own pacing "
        f"({percent(figures.sender_cpu)} of one CPU)"
    )
    remedies = (*_cheaper(figures, "sender"), *more_streams(figures))
    return Finding("sender-cpu", line, remedies=remedies)


def blocked_sender(figures: Figures) -> Finding | None:
    """A sender that neither runs nor waits for its pacing waits for room in its socket."""
    paced_share = rbudp_of(figures).paced_share
    if paced_share is None or paced_share >= PACING_LATE:
        return None
    line = (
        "send buffer: the sender waited for room in its socket, not for its pacing: "
        "the interface or its queue took no more"
    )
    larger = f"a larger one: --udp-send-buffer {size_text(SOCKET_GOOD)}"
    granted = figures.send_buffer_granted
    small = granted is None or granted < 2 * SOCKET_GOOD
    fitting = (f"what came through: {rate_flag(figures.stream_bps)}",) if figures.asked_bps else ()
    return Finding("send-buffer", line, remedies=(*((larger,) if small else ()), *fitting))


def lowered_rate(figures: Figures) -> Finding | None:
    """Losses above the bound that was asked for have lowered the rate."""
    bound, paced_bps = rbudp_of(figures).loss_bound, figures.pacing_bps
    stated_bps = _stream_rate_bps(figures)
    if bound is None or paced_bps is None or not stated_bps:
        return None
    if paced_bps >= RATE_LOWERED * stated_bps:
        return None
    line = (
        f"loss bound: more than {percent(bound)} was lost at the stated {rate_human(stated_bps)} "
        f"a stream, so {rate_human(paced_bps)} were sent on average"
    )
    return Finding("cwnd", line, remedies=(f"the rate that it came to: {rate_flag(paced_bps)}",))


def idle_path(figures: Figures) -> Finding | None:
    """The path stands idle between passes, more than losses cost: a payload is too small."""
    rate_bps, rtt = _stream_rate_bps(figures), rtt_us(figures)
    if not rate_bps or rtt is None:
        return None
    rbudp = rbudp_of(figures)
    total = rbudp.total_efficiency(rate_bps, rtt)
    window = rbudp.window_efficiency(rate_bps, rtt)
    idle = 1 - min(total, window)
    if idle <= 1 - EFFICIENT or idle < lost_share(figures) or not _explains(figures, idle):
        return None
    return _short_payload(figures, rtt) if total <= window else _few_blasts(figures, rtt)


def _short_payload(figures: Figures, rtt: float) -> Finding:
    """All there was to send is little beside what the path holds."""
    rbudp, rate_bps = rbudp_of(figures), _stream_rate_bps(figures)
    allowed = percent(rbudp.total_efficiency(rate_bps, rtt))
    line = (
        f"payload: {size_human(rbudp.sent_bytes)} a stream at {rate_human(rate_bps)} over "
        f"{time_human(rtt)} let {allowed} of the rate through (papers/4, eq. 4)"
    )
    wanted = payload_for(rate_bps, rtt / 1e6, EFFICIENCY_WANTED)
    more = (
        f"{percent(EFFICIENCY_WANTED)} of the rate: {size_human(wanted)} a stream, "
        f"-n {_whole_mib(wanted * figures.streams)}"
    )
    return Finding("application", line, remedies=(more,))


def _few_blasts(figures: Figures, rtt: float) -> Finding:
    """The blasts under way hold less than the path does: the sender waits for reports."""
    rbudp, rate_bps = rbudp_of(figures), _stream_rate_bps(figures)
    allowed = percent(rbudp.window_efficiency(rate_bps, rtt))
    size = size_human(rbudp.payload_bytes)
    blasts = f"{rbudp.in_flight} blasts of {size}" if rbudp.in_flight > 1 else f"a blast of {size}"
    passes = f" and {rbudp.passes:.2g} passes each" if rbudp.passes > 1.05 else ""
    line = (
        f"payload: {blasts} under way at {rate_human(rate_bps)} over {time_human(rtt)}{passes} "
        f"let {allowed} of the rate through (papers/4, eq. 4)"
    )
    remedies = (*_larger_blasts(figures, rtt), *_early(rbudp))
    return Finding("receive-window", line, remedies=remedies)


def _larger_blasts(figures: Figures, rtt: float) -> tuple[str, ...]:
    """A payload that gives nine tenths of the rate by itself, or enough blasts at once for all."""
    rbudp, rate_bps = rbudp_of(figures), _stream_rate_bps(figures)
    share = EFFICIENCY_WANTED / rbudp.in_flight
    payload = payload_for(rate_bps, rtt / 1e6, share) * rbudp.passes
    larger = f"{percent(EFFICIENCY_WANTED)} of the rate: --payload {_whole_mib(payload)}"
    blasts = math.ceil(rbudp.in_flight / rbudp.window_efficiency(rate_bps, rtt))
    more = f"all of it, with more blasts at once: --in-flight {blasts}"
    return (
        *((larger,) if rbudp.payload_bytes < payload <= PAYLOAD_MAX else ()),
        *((more,) if rbudp.in_flight < blasts <= IN_FLIGHT_MAX else ()),
    )


def _whole_mib(size_bytes: float) -> str:
    return size_text(max(1, math.ceil(size_bytes / _MIB)) * _MIB)


def _early(rbudp: RbudpFigures) -> tuple[str, ...]:
    waits = not rbudp.early and rbudp.passes > 1
    return ("fill gaps while a blast goes on: --early",) if waits else ()


def waiting_blasts(figures: Figures) -> Finding | None:
    """As many blasts as are allowed were always under way, and the pacing held little up."""
    rbudp = rbudp_of(figures)
    paced_share, under_way = rbudp.paced_share, rbudp.under_way
    if under_way is None or paced_share is None or paced_share >= PACING_SELDOM:
        return None
    if under_way < SLOTS_FULL * rbudp.in_flight:
        return None
    line = (
        f"receive window: {under_way:.2g} of {rbudp.in_flight} blasts were under way on average, "
        "so new data waited until one was whole"
    )
    if _is_lossy(figures):
        line += f"; {_lost(figures)}"
    more = min(IN_FLIGHT_MAX, 2 * rbudp.in_flight)
    blasts = (f"more blasts at once: --in-flight {more}",) if more > rbudp.in_flight else ()
    return Finding("receive-window", line, remedies=(*blasts, *_early(rbudp)))


def idle_between(figures: Figures) -> Finding | None:
    """For much of the time no blast was under way at all, though the rate was not reached."""
    rbudp, paced_share = rbudp_of(figures), rbudp_of(figures).paced_share
    if figures.status != "complete" or rbudp.under_way is None or paced_share is None:
        return None
    if rbudp.under_way >= ALWAYS_ONE or paced_share >= PACING_SELDOM:
        return None
    line = (
        f"application: no blast was under way {percent(1 - rbudp.under_way)} of the time; the "
        "sender waited for a report of the last one, or had nothing to send"
    )
    more = ("the next blast before the last is whole: --in-flight 2",)
    return Finding("application", line, remedies=more if rbudp.in_flight == 1 else ())


def full_path(figures: Figures) -> Finding | None:
    """Nearly all that an emulated link carries came through."""
    most = figures.path_payload_bps
    if not most or figures.throughput_bps < CARRIES * most:
        return None
    share = percent(figures.throughput_bps / most)
    line = f"path: {share} of what the emulated link carries of payload"
    return Finding("path", line, remedies=("a faster link: --link-rate, or --rate of the testbed",))


def lossy_path(figures: Figures) -> Finding | None:
    """Packets are lost though the receiver had time and nothing says that the rate is too much."""
    if not _is_lossy(figures):
        return None
    rbudp = rbudp_of(figures)
    line = f"path: {_lost(figures)} though the receiver had time; {_whose_loss(rbudp)}"
    look = rbudp.path_check is None and rbudp.shared_path == "allow"
    remedies = (
        *_early(rbudp),
        *(("see what the path carries: --shared-path warn",) if look else ()),
        f"a lower rate, to see whether fewer are lost: {rate_flag(0.9 * figures.stream_bps)}",
    )
    return Finding("path", line, remedies=remedies)


def _whose_loss(rbudp: RbudpFigures) -> str:
    if rbudp.wire_loss:
        return "a link loses packets by itself, at any rate"
    if rbudp.carried_share is not None and not rbudp.shared:
        return "the path carried the stated rate before the blast, so they are lost by chance"
    return "by chance, or the rate is more than the path has"


def nearly_busy(figures: Figures) -> Finding | None:
    """Nothing else held it back and a thread has little time left: packets cost what they cost."""
    used = {"sender": figures.sender_cpu, "receiver": figures.receiver_cpu}
    role, share = max(used.items(), key=lambda item: item[1])
    if share < CPU_BUSY:
        return None
    line = (
        f"{role} CPU: nothing else held the run back; its thread uses {percent(share)} of one CPU"
    )
    return Finding(cpu_rules.LIMIT[role], line, remedies=_cheaper(figures, role))


RULES = (
    slow_receiver,
    overflowing_socket,
    overloaded_path,
    full_path,
    busy_end,
    lowered_rate,
    idle_path,
    slow_sender,
    waiting_blasts,
    idle_between,
    lossy_path,
    blocked_sender,
    nearly_busy,
)
"""Rules for RBUDP, in the order they are asked."""
