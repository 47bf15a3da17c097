"""Rules for TCP's windows and buffers, by the kernel's own accounts (TCP_INFO)."""

from __future__ import annotations

from farline.findings.figures import Figures
from farline.findings.finding import Finding, counted, larger_block, more_streams, own_cpu, percent
from farline.findings.rules.cpu import cheaper_thread, shared_cpu, thread_use
from farline.findings.rules.limits import limits_of
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


def receive_window(figures: Figures) -> Finding | None:
    """The receiver's window held the senders back."""
    share = figures.receive_window_share
    if share < max(limits_of(figures).window, figures.send_buffer_share):
        return None
    waited = f"senders waited for it {percent(share)} of their busy time"
    if not _buffer_bounds_window(figures):
        return _slow_reader(figures, waited)
    cap, remedies = _receive_cap(figures)
    line = f"receiver window: {waited}; {cap}"
    return Finding("receive-window", line, _window_evidence(figures), remedies)


def send_buffer(figures: Figures) -> Finding | None:
    """The send buffer was full of data in flight."""
    share = figures.send_buffer_share
    if share < limits_of(figures).window:
        return None
    asked = figures.send_buffer_asked
    if asked is None:
        cap, remedies = _autotuned("net.ipv4.tcp_wmem", figures.sender_sysctls, "sender", figures)
    else:
        cap, remedies = _explicit("net.core.wmem_max", asked, "sender", figures)
    line = f"send buffer: it was full {percent(share)} of the busy time; {cap}"
    return Finding("send-buffer", line, _window_evidence(figures)[1:], remedies)


def _buffer_bounds_window(figures: Figures) -> bool:
    """Whether the window is what the receive buffer gives: one requested or grown to its most."""
    granted, window = figures.receive_buffer_granted, figures.window_bytes
    asked, limits = figures.receive_buffer_asked is not None, limits_of(figures)
    if not granted or window is None:
        return asked
    if asked:
        return window >= limits.window_of_requested * granted
    cap = _maximum(figures)
    if not cap:
        return False
    at_most = granted >= limits.buffer_of_maximum * cap
    return window >= limits.window_of_buffer * granted and at_most


def _slow_reader(figures: Figures, waited: str) -> Finding:
    """The window closed because nobody emptied the buffer in time."""
    evidence = (*_window_evidence(figures), *_reader_evidence(figures))
    used, queued, limits = figures.receiver_cpu, figures.receiver_wait, limits_of(figures)
    if used + queued >= limits.reader_busy:
        line = (
            f"receiver CPU: it reads too slowly, so its window closed ({waited}); a receiver "
            f"thread {thread_use(used, queued, limits.thread_wait)}"
        )
        remedies = (*larger_block(figures), *cheaper_thread(figures, "receiver"))
        if queued >= limits.thread_wait:
            remedies = (*shared_cpu(figures, "receiver"), *larger_block(figures))
        return Finding("receiver-cpu", line, evidence, remedies)
    line = f"receiver window: {waited}; {_why_it_closed(figures)}"
    remedies = (*larger_block(figures), *own_cpu(figures, "receiver"))
    return Finding("receive-window", line, evidence, remedies)


def _why_it_closed(figures: Figures) -> str:
    granted, cap = figures.receive_buffer_granted, _maximum(figures)
    autotuned = figures.receive_buffer_asked is None
    if autotuned and cap and granted and granted < limits_of(figures).buffer_of_maximum * cap:
        return (
            "the window closed although the receive buffer can still grow: "
            "the receiving program reads in bursts"
        )
    return "the window closed: the receiving program reads in bursts"


def _reader_evidence(figures: Figures) -> tuple[str, ...]:
    granted, cap = figures.receive_buffer_granted, _maximum(figures)
    if not granted:
        return ()
    grows = figures.receive_buffer_asked is None and cap and cap > granted
    most = f", which can grow to {size_human(cap)}" if grows and cap else ""
    return (f"receive buffer at the end: {size_human(granted)}{most}",)


def _maximum(figures: Figures) -> int | None:
    """The third of the three values of `tcp_rmem`: the most a receive buffer grows to."""
    words = figures.receiver_sysctls.get("net.ipv4.tcp_rmem", "").split()
    return int(words[2]) if len(words) == 3 and words[2].isdigit() else None


def _window_evidence(figures: Figures) -> tuple[str, ...]:
    if figures.window_bytes is None or not figures.mean_rtt_us:
        return ()
    bound_bps = figures.window_bytes * 8e6 / figures.mean_rtt_us
    return (
        f"a window of {size_human(figures.window_bytes)} over a round-trip time of "
        f"{time_human(figures.mean_rtt_us)} allows {rate_human(bound_bps)} per stream",
        f"bandwidth-delay product at the measured rate: {size_human(figures.bdp_bytes or 0.0)}",
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
        *more_streams(figures, "more streams to share the path"),
    )


def _larger_maximum(
    name: str, now: str, current: int, whose: str, figures: Figures
) -> tuple[str, ...]:
    """The maximum that `farline host` names for the same path: of the link over its round trip.

    Where the speed of the link is not known, or the maximum is enough for it already, nobody knows
    for which rate: then it is twice what is there, and which `farline host` to ask is printed.
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
    asking = f"farline host --rate RATE --rtt {rtt} --streams {streams}"
    command = raise_maximum(name, now, twice)
    return (
        f"on the {whose}: {command} (twice the present size; `{asking}` computes the size for a"
        " given rate)",
    )


def _path_bps(figures: Figures) -> float | None:
    """What the path carries, where the interface or the emulation says it."""
    known = [rate for rate in (figures.link_bps, figures.path_payload_bps) if rate]
    return min(known, default=None)


def _window(figures: Figures) -> int | None:
    """What a stream has in flight on the full path."""
    rate_bps, rtt_us = _path_bps(figures), figures.min_rtt_us or figures.mean_rtt_us
    if not rate_bps or not rtt_us:
        return None
    return window_bytes(rate_bps, rtt_us / 1e6, max(1, figures.streams))


def _explicit(name: str, asked: int, whose: str, figures: Figures) -> tuple[str, tuple[str, ...]]:
    """Linux grants twice what was requested, unless the sysctl is lower."""
    receives = whose == "receiver"
    sysctls = figures.receiver_sysctls if receives else figures.sender_sysctls
    granted = figures.receive_buffer_granted if receives else figures.send_buffer_granted
    limit = sysctls.get(name, "")
    if granted is not None and granted < 2 * asked and limit.isdigit():
        granted_text = f"{name} = {size_human(int(limit))} at the {whose}"
        cap = f"{size_human(asked)} was requested, {granted_text} caps it"
        return cap, (f"on the {whose}: {raise_limit(name, asked)}",)
    cap = f"the requested buffer of {size_human(asked)} caps it"
    larger = max(2 * asked, asked_bytes(_window(figures) or 0))
    return cap, (f"a larger buffer: -w {size_text(larger)}", "autotuning: leave out -w")
