"""Rules for TCP: windows and buffers by the kernel's own accounts, then the path."""

from __future__ import annotations

from farline.explain import cpu_rules
from farline.explain.figures import Figures
from farline.explain.finding import (
    Finding,
    counted,
    larger_block,
    more_streams,
    other_congestion_control,
    own_cpu,
    percent,
)
from farline.models.buffer_need import (
    MAX_BUFFER_BYTES,
    asked_bytes,
    buffer_bytes,
    is_beyond_kernel,
    raise_limit,
    raise_maximum,
    window_bytes,
)
from farline.spec.units import rate_human, size_human, size_text, time_human

WINDOW_MATTERS = 0.3
"""Share of busy time from which a window or buffer is the limit."""

WINDOW_OF_BUFFER, BUFFER_OF_CAP = 0.4, 0.8
"""A window this large a share of its buffer, and a buffer this large a share of what the
kernel lets it grow to, mean that the kernel's cap holds the window down: half a buffer and
more is bookkeeping (tcp_adv_win_scale)."""

WINDOW_OF_ASKED = 0.2
"""The same for a buffer that was asked for: it cannot grow, so less speaks for it already."""

READER_BUSY = 0.6
"""Share of the time in which the receiver runs or waits for a CPU, from which it is too slow."""

IDLE_SENDER = 0.7
"""Share of the time with data to send below which the application is the limit."""

STARVED = 0.5
"""Share of its idle time that a sender waits for a CPU, from which that wait is the reason."""

LINK_FULL = 0.9
"""Share of the interface's speed from which the link is full."""

STILL_GROWING = 1.25
"""Growth of the congestion window over the last third from which it had not settled."""

LOSS_MATTERS = 1e-5
"""Share of segments sent again from which losses hold the congestion window down."""

QUEUE_RATIO, QUEUE_MIN_US = 1.5, 500.0
"""Round-trip time over its smallest value that means a standing queue."""

PACED_LEAST, PACED_MOST = 0.8, 1.3
"""Pacing rate over a stream's throughput between which the pacing can be what limits it."""

WINDOW_SPARE = 2.0
"""What a congestion window allows over what was reached, from which it was not the limit."""

_PACED = ("bbr",)
"""Congestion controls that choose a pacing rate, not only a window."""


def receive_window(figures: Figures) -> Finding | None:
    """The receiver's window held the senders back."""
    share = figures.receive_window_share
    if share < max(WINDOW_MATTERS, figures.send_buffer_share):
        return None
    waited = f"senders waited for it {percent(share)} of their busy time"
    if not _buffer_bounds_window(figures):
        return _slow_reader(figures, waited)
    cap, remedies = _receive_cap(figures)
    line = f"receiver window: {waited}; {cap}"
    return Finding("receive-window", line, _window_evidence(figures), remedies)


def _buffer_bounds_window(figures: Figures) -> bool:
    """Whether the window is what the receive buffer, one asked for or grown to its most, gives."""
    granted, window = figures.receive_buffer_granted, figures.window_bytes
    asked = figures.receive_buffer_asked is not None
    if not granted or window is None:
        return asked
    if asked:
        return window >= WINDOW_OF_ASKED * granted
    cap = _most(figures.receiver_sysctls, "net.ipv4.tcp_rmem")
    if not cap:
        return False
    return window >= WINDOW_OF_BUFFER * granted and granted >= BUFFER_OF_CAP * cap


def _slow_reader(figures: Figures, waited: str) -> Finding:
    """The window closed because nobody emptied the buffer in time."""
    evidence = (*_window_evidence(figures), *_reader_evidence(figures))
    used, queued = figures.receiver_cpu, figures.receiver_wait
    if used + queued >= READER_BUSY:
        line = (
            f"receiver CPU: it reads too slowly, its window closed ({waited}); a receiver thread "
            f"uses {percent(used)} of one CPU and waits {percent(queued)} of the time for one"
        )
        return Finding("receiver-cpu", line, evidence, _reader_remedies(figures))
    line = f"receiver window: {waited}; {_why_it_closed(figures)}"
    remedies = (*larger_block(figures), *own_cpu(figures, "receiver"))
    return Finding("receive-window", line, evidence, remedies)


def _reader_remedies(figures: Figures) -> tuple[str, ...]:
    if figures.receiver_wait < cpu_rules.WAIT_MATTERS:
        return (*larger_block(figures), *cpu_rules.mend(figures, "receiver"))
    return (*cpu_rules.shared_cpu(figures, "receiver"), *larger_block(figures))


def _why_it_closed(figures: Figures) -> str:
    granted = figures.receive_buffer_granted
    cap = _most(figures.receiver_sysctls, "net.ipv4.tcp_rmem")
    grows = figures.receive_buffer_asked is None
    if grows and cap and granted and granted < BUFFER_OF_CAP * cap:
        return (
            "the receiver's window closed though its buffer may still grow: "
            "the receiving program reads in bursts"
        )
    return "the receiver's window closed: the receiving program reads in bursts"


def _reader_evidence(figures: Figures) -> tuple[str, ...]:
    granted = figures.receive_buffer_granted
    if not granted:
        return ()
    cap = _most(figures.receiver_sysctls, "net.ipv4.tcp_rmem")
    grows = figures.receive_buffer_asked is None and cap and cap > granted
    most = f", which may grow to {size_human(cap)}" if grows and cap else ""
    return (f"receive buffer at the end {size_human(granted)}{most}",)


def _most(sysctls: dict[str, str], name: str) -> int | None:
    """The third of a sysctl's three values: the most a buffer grows to."""
    words = sysctls.get(name, "").split()
    return int(words[2]) if len(words) == 3 and words[2].isdigit() else None


def _window_evidence(figures: Figures) -> tuple[str, ...]:
    if figures.window_bytes is None or not figures.mean_rtt_us:
        return ()
    bound_bps = figures.window_bytes * 8e6 / figures.mean_rtt_us
    bdp = figures.bdp_bytes or 0.0
    return (
        f"window {size_human(figures.window_bytes)} over round-trip time "
        f"{time_human(figures.mean_rtt_us)} allows {rate_human(bound_bps)} per stream",
        f"bandwidth-delay product at the rate reached: {size_human(bdp)}",
    )


def _receive_cap(figures: Figures) -> tuple[str, tuple[str, ...]]:
    """What caps the window, and the commands that raise it."""
    asked = figures.receive_buffer_asked
    if asked is None:
        return _autotuned("net.ipv4.tcp_rmem", figures.receiver_sysctls, "receiver", figures)
    return _explicit("net.core.rmem_max", asked, "receiver", figures)


def _autotuned(
    name: str, sysctls: dict[str, str], whose: str, figures: Figures
) -> tuple[str, tuple[str, ...]]:
    words = sysctls.get(name, "").split()
    if len(words) != 3 or not words[2].isdigit():
        return f"{name} at the {whose} caps it", (
            f"raise the third value of {name} at the {whose}",
        )
    cap = f"{name}[2] = {size_human(int(words[2]))} at the {whose} caps it"
    return cap, (
        *_larger_maximum(name, sysctls[name], int(words[2]), whose, figures),
        *more_streams(figures, "more streams share the path"),
    )


def _larger_maximum(
    name: str, now: str, current: int, whose: str, figures: Figures
) -> tuple[str, ...]:
    """The maximum that `farline host` names for the same path: of the link over its round trip.

    Where the speed of the link is not known, or it holds the path already, nobody knows for which
    rate: then it is twice what is there, and what to ask `farline host` is said.
    """
    rtt_us = figures.min_rtt_us or figures.mean_rtt_us or 1.0
    rate_bps, streams, window = _path_bps(figures), max(1, figures.streams), _window(figures)
    rtt = f"{rtt_us / 1e3:.3g}ms"
    if rate_bps and window:
        if is_beyond_kernel(window):
            return ()
        if buffer_bytes(window) > current:
            command = raise_maximum(name, now, buffer_bytes(window))
            path = f"{rate_human(rate_bps)} over {time_human(rtt_us)}"
            return (f"on the {whose}: {command} (for {path}, {counted(streams, 'stream')})",)
    twice = min(2 * current, MAX_BUFFER_BYTES)
    asking = f"farline host --rate RATE --rtt {rtt} -P {streams}"
    command = raise_maximum(name, now, twice)
    return (f"on the {whose}: {command} (twice as much; `{asking}` says it for a stated rate)",)


def _path_bps(figures: Figures) -> float | None:
    """What the path carries, where the interface or the emulation says it."""
    known = [rate for rate in (figures.link_bps, figures.path_payload_bps) if rate]
    return min(known, default=None)


def _window(figures: Figures) -> int | None:
    """What a stream has under way on the full path."""
    rate_bps, rtt_us = _path_bps(figures), figures.min_rtt_us or figures.mean_rtt_us
    if not rate_bps or not rtt_us:
        return None
    return window_bytes(rate_bps, rtt_us / 1e6, max(1, figures.streams))


def _explicit(name: str, asked: int, whose: str, figures: Figures) -> tuple[str, tuple[str, ...]]:
    """Linux grants twice what was asked for, unless the sysctl is lower."""
    receives = whose == "receiver"
    sysctls = figures.receiver_sysctls if receives else figures.sender_sysctls
    granted = figures.receive_buffer_granted if receives else figures.send_buffer_granted
    limit = sysctls.get(name, "")
    if granted is not None and granted < 2 * asked and limit.isdigit():
        granted_text = f"{name} = {size_human(int(limit))} at the {whose}"
        cap = f"{size_human(asked)} were asked for, {granted_text} caps it"
        return cap, (f"on the {whose}: {raise_limit(name, asked)}",)
    cap = f"the buffer asked for, {size_human(asked)}, caps it"
    larger = max(2 * asked, asked_bytes(_window(figures) or 0))
    return cap, (f"a larger one: -w {size_text(larger)}", "autotuning: leave -w out")


def send_buffer(figures: Figures) -> Finding | None:
    """The send buffer was full of data in flight."""
    share = figures.send_buffer_share
    if share < WINDOW_MATTERS:
        return None
    asked = figures.send_buffer_asked
    if asked is None:
        cap, remedies = _autotuned("net.ipv4.tcp_wmem", figures.sender_sysctls, "sender", figures)
    else:
        cap, remedies = _explicit("net.core.wmem_max", asked, "sender", figures)
    line = f"send buffer: it was full {percent(share)} of the busy time; {cap}"
    return Finding("send-buffer", line, _window_evidence(figures)[1:], remedies)


def starved_sender(figures: Figures) -> Finding | None:
    """The sender often had nothing queued, and spent that time waiting for a CPU."""
    if figures.busy_share is None or figures.busy_share >= IDLE_SENDER:
        return None
    idle = 1 - figures.busy_share
    if figures.sender_wait < STARVED * idle:
        return None
    line = (
        f"sender CPU: senders had nothing queued {percent(idle)} of the time; a sender thread "
        f"waited {percent(figures.sender_wait)} of the time for a CPU that others had"
    )
    return Finding("sender-cpu", line, remedies=cpu_rules.shared_cpu(figures, "sender"))


def idle_sender(figures: Figures) -> Finding | None:
    """The sender often had nothing queued: farline itself, or the CPU it wants, was too slow."""
    if figures.busy_share is None or figures.busy_share >= IDLE_SENDER:
        return None
    line = (
        f"application: senders had nothing queued {percent(1 - figures.busy_share)} of the time"
        f"{_held_back(figures)}"
    )
    evidence = (
        f"the busiest sender thread used {percent(figures.sender_cpu)} of a CPU "
        f"and waited {percent(figures.sender_wait)} of the time for one",
    )
    remedies = (*larger_block(figures), *own_cpu(figures, "sender"), *more_streams(figures))
    return Finding("application", line, evidence, remedies)


def _held_back(figures: Figures) -> str:
    """What held idle senders back in the time in which they had something to send."""
    shares = {
        "the receiver's window": figures.receive_window_share,
        "the send buffer": figures.send_buffer_share,
        "the congestion window": figures.cwnd_share,
    }
    name, share = max(shares.items(), key=lambda item: item[1])
    if share < WINDOW_MATTERS:
        return ", and the network did not hold them back"
    return f"; in the rest {name} held them back {percent(share)}"


def full_link(figures: Figures) -> Finding | None:
    """The interface carries what it can."""
    if not figures.link_bps or figures.throughput_bps < LINK_FULL * figures.link_bps:
        return None
    share = figures.throughput_bps / figures.link_bps
    line = f"path: {percent(share)} of the interface's {rate_human(figures.link_bps)} are payload"
    return Finding("path", line, remedies=("larger packets leave more to payload: an MTU of 9000",))


def growing_window(figures: Figures) -> Finding | None:
    """The run ended before the congestion window had settled."""
    growth = figures.cwnd_growth
    if growth is None or growth < STILL_GROWING or figures.retransmit_share >= LOSS_MATTERS:
        return None
    line = f"congestion window: it still grew by {percent(growth - 1)} in the last third, no losses"
    longer_s = max(30.0, 2 * (figures.duration_s or 0.0))
    ramp = () if figures.omit_s else ("leave the ramp out: -O 5",)
    return Finding("cwnd", line, remedies=(f"a longer run: -t {longer_s:g}", *ramp))


def standing_queue(figures: Figures) -> Finding | None:
    """Packets wait in a queue: the path delivers what it can."""
    mean_us, min_us = figures.mean_rtt_us, figures.min_rtt_us
    if not mean_us or not min_us:
        return None
    if mean_us < QUEUE_RATIO * min_us or mean_us - min_us < QUEUE_MIN_US:
        return None
    line = (
        f"path: it is full, packets wait {time_human(mean_us - min_us)} in queues "
        f"on top of {time_human(min_us)}"
    )
    return Finding(
        "path", line, (_retransmit_line(figures),), ("a faster path, or less load on it",)
    )


def losses(figures: Figures) -> Finding | None:
    """Losses hold the congestion window down."""
    if figures.retransmit_share < LOSS_MATTERS or _lost_at_start(figures):
        return None
    name = figures.congestion_control or "congestion control"
    line = f"congestion window: losses hold it down ({_retransmit_line(figures)}, {name})"
    pace = "a lower --fq-rate" if figures.asked_by == "--fq-rate" else "--fq-rate"
    remedies = (
        *more_streams(figures),
        *other_congestion_control(figures, "bbr"),
        f"pace below the loss: {pace}",
    )
    return Finding("cwnd", line, _cwnd_evidence(figures), remedies)


def _lost_at_start(figures: Figures) -> bool:
    """Whether a control that does not slow down for single losses had them in its start-up only."""
    late = figures.late_retransmit_share
    return figures.congestion_control in _PACED and late is not None and late < LOSS_MATTERS


def _retransmit_line(figures: Figures) -> str:
    return f"{figures.retransmits} segments sent again, {percent(figures.retransmit_share)}"


def _cwnd_evidence(figures: Figures) -> tuple[str, ...]:
    if figures.cwnd_bytes is None:
        return ()
    return (f"congestion window {size_human(figures.cwnd_bytes)} on average",)


def paced(figures: Figures) -> Finding | None:
    """The congestion control paces at what it believes the path can carry."""
    if figures.congestion_control not in _PACED or not figures.pacing_bps:
        return None
    reached = figures.stream_bps
    if not PACED_LEAST * reached <= figures.pacing_bps <= PACED_MOST * reached:
        return None
    line = (
        f"congestion control: {figures.congestion_control} paces each stream at "
        f"{rate_human(figures.pacing_bps)} on average, without losses"
    )
    if figures.retransmits and _lost_at_start(figures):
        line += f" after its start-up ({_retransmit_line(figures)}, nearly all at the start)"
    remedies = (*more_streams(figures), *other_congestion_control(figures, "cubic"))
    return Finding("cwnd", line, _cwnd_evidence(figures), remedies)


def steady_window(figures: Figures) -> Finding | None:
    """The congestion window was the limit though nothing was lost."""
    if figures.cwnd_share < 0.5 or _window_to_spare(figures):
        return None
    line = (
        f"congestion window: senders waited for it {percent(figures.cwnd_share)} of their busy time"
    )
    remedies = (*more_streams(figures), "a longer run")
    return Finding("cwnd", line, _cwnd_evidence(figures), remedies)


def _window_to_spare(figures: Figures) -> bool:
    """Whether the window allowed far more than was reached: the kernel's account counts as its
    time all that is not the receiver's window or the send buffer."""
    if figures.cwnd_bytes is None or not figures.mean_rtt_us:
        return False
    allowed_bps = figures.cwnd_bytes * 8e6 / figures.mean_rtt_us
    return allowed_bps > WINDOW_SPARE * figures.stream_bps


RULES = (
    cpu_rules.busy_thread,
    cpu_rules.busy_host,
    receive_window,
    send_buffer,
    starved_sender,
    idle_sender,
    full_link,
    growing_window,
    standing_queue,
    losses,
    paced,
    steady_window,
)
"""Rules for TCP, in the order they are asked."""
