"""The thresholds of the verdict rules: one table, with what differs between transports.

A rule asks for `limits_of(figures)` and states no number of its own. What a threshold means, and in
which unit, is said once, beside its usual value in `Limits`; `LIMITS` holds what a transport, or a
copy, has otherwise, with the reason. Shares are fractions of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol


@dataclass(frozen=True)
class Limits:
    """Thresholds of one transport, or of copies."""

    # The run as a whole.
    rate_reached: float = 0.95
    """Share of the requested rate from which the rate itself is the limit."""
    short_s: float = 0.05
    """Seconds of data below which shares of time and of CPUs mean nothing."""
    path_full: float = 0.97
    """Share of an emulated link's payload rate from which the link is the limit."""
    path_nearly_full: float = 0.85
    """The same for a run that includes its start-up, if the link was full from then on."""

    # CPUs.
    thread_full: float = 0.9
    """Share of one CPU, running or waiting to run, from which a stream's thread is the limit."""
    thread_wait: float = 0.1
    """Share of the time spent waiting for a CPU from which other work on the host matters."""
    thread_busy: float = 0.6
    """Share of one CPU from which a thread is named where nothing else stands out."""
    host_full: float = 0.9
    """Share of all CPUs from which a host is the limit."""
    reader_busy: float = 0.6
    """Share of the time that a receiving thread runs or waits to run, from which it is too slow."""
    sender_busy: float = 0.8
    """The same for a sender that falls behind a requested rate."""

    # Senders that are idle.
    sender_has_data: float = 0.7
    """Share of the time with data to send below which the application is the limit."""
    sender_starved: float = 0.5
    """Share of its idle time that a sender waits for a CPU, from which that wait is the reason."""

    # Windows and buffers.
    window: float = 0.3
    """Share of busy time from which a receiver window or send buffer is the limit."""
    window_of_buffer: float = 0.4
    """A window this large a share of its buffer, whose size is at `buffer_of_maximum`, is held down
    by the kernel's maximum: half a buffer and more is bookkeeping (tcp_adv_win_scale)."""
    window_of_requested: float = 0.2
    """The same for a requested buffer: it cannot grow, so less is proof enough."""
    buffer_of_maximum: float = 0.8
    """Share of the kernel's maximum from which a buffer has grown to it."""
    window_in_flight: float = 0.85
    """Share of a UDT window that is in flight on average from which it is the limit, whatever the
    accounts say: a control that works from a model takes what the window lets through for the
    path's rate, and paces at that."""
    buffer_free: float = 0.5
    """Share of a UDT receive buffer that is free where the reader keeps up."""

    # The path.
    link_full: float = 0.9
    """Share of a link's speed from which the link is full."""
    link_used: float = 0.8
    """The same with the start-up included, where the control paces at the link's rate."""
    queue_ratio: float = 1.5
    """Mean round-trip time over the smallest one that means a standing queue,"""
    queue_us: float = 500.0
    """if it is this much larger; less than that is threads that wait to run."""
    queue_on_one_host: bool = True
    """Whether a run within one host may have a standing queue."""

    # Congestion control and losses.
    streams_unequal: float = 5.0
    """Rate of the fastest stream over that of the slowest from which a verdict tells both,"""
    streams_compared: int = 4
    """if there are this many: two or three differ by chance."""
    stream_share: float = 0.5
    """Share of the bytes above which a verdict names that one stream carried it, of as many,"""
    stream_share_s: float = 3.0
    """if data moved for this many seconds: before, a stream may only have grown sooner."""
    growth: float = 1.25
    """Growth of the window or rate over the last third from which it had not settled."""
    loss: float = 1e-5
    """Share of packets lost from which losses matter."""
    loss_to_model: float = 1e-5
    """The same for a control that works from a model of the path, such as BBR."""
    drops: float = 0.5
    """Share of the losses that hosts must have dropped where a link drops packets on purpose."""
    burst_packets: int = 44
    """Packets that one dropped datagram of an emulated path may hold: they come joined."""
    cwnd: float = 0.5
    """Share of busy time from which the congestion window is the limit."""
    cwnd_spare: float = 2.0
    """What a congestion window allows over what was reached, from which it was not the limit."""
    cwnd_in_flight: float = 0.5
    """Share of a congestion window, counted in packets, that is in flight where it is full."""
    paced: float = 0.5
    """Share of busy time spent waiting for the pacing from which the pacing is the limit."""
    pacing_least: float = 0.8
    """Pacing rate over a stream's throughput from which,"""
    pacing_most: float = 1.3
    """and up to which, the pacing can be what limits the stream."""
    rate_paced: float = 0.95
    """Share of the requested rate from which a control paces at that and not at its own rate."""

    # RBUDP: blasts at a stated rate.
    carried: float = 0.95
    """Share of the stated rate from which a path carries it: below, trains come in stretched."""
    efficient: float = 0.95
    """Share of the rate that payload and blasts in flight allow, from which they are no limit."""
    efficiency_wanted: float = 0.9
    """Share of the rate for which a payload is proposed, as He et al. 2002 do after eq. 4."""
    slots_full: float = 0.9
    """Share of the blasts allowed at once from which, in flight on average, they are a limit."""
    blast_in_flight: float = 0.8
    """Blasts in flight on average below which there was often none: a sender at work has one."""
    pacing_seldom: float = 0.5
    """Share of the time waiting for the pacing below which something else holds a sender back."""
    pacing_late: float = 0.05
    """The same below which a sender that is busy is behind its pacing."""
    explains: float = 0.5
    """Part of the missing rate that losses or idle times make up if they are the cause."""
    rate_lowered: float = 0.95
    """Share of the stated rate below which the bound on losses has lowered it."""

    # Copies.
    names_of_work: float = 0.5
    """Share of an end's time at files that goes to names where names are the limit,"""
    names_of_threads: float = 0.3
    """and share of what its threads had."""
    disk_of_threads: float = 0.4
    """Share of the threads' time waiting for a disk from which the disk is the limit."""
    sync_of_run: float = 0.5
    """Share of the run spent flushing data to the device from which that is the limit."""
    stage: float = 0.2
    """Share of the threads' time from which hashing or encryption is worth a remedy,"""
    stage_named: float = 0.01
    """and from which it is named in the verdict."""


LIMITS = MappingProxyType(
    {
        "null": Limits(),
        "tcp": Limits(),
        # A datagram that is lost stays lost: a few per thousand are no limit.
        "udp": Limits(loss=0.001, reader_busy=0.8),
        # UDT's round-trip times include its threads; BBR tolerates 2 % of losses.
        "udt": Limits(queue_on_one_host=False, loss_to_model=0.02),
        # As UDT's, QUIC's round-trip times include its threads.
        "quic": Limits(queue_on_one_host=False),
        # The rate is stated, so a path is full without a start-up, and losses are expected.
        "rbudp": Limits(loss=0.001, reader_busy=0.8, path_full=0.95, path_nearly_full=1.0),
        # Start and end of a copy take their time: they are a larger part of it.
        "copy": Limits(rate_reached=0.9, short_s=0.5),
    }
)
"""Thresholds by transport; `copy` for the rules that judge a copy by its report."""


class OfTransport(Protocol):
    """Anything that knows its transport."""

    @property
    def transport(self) -> str:
        """Name of the transport."""


def limits_of(figures: OfTransport) -> Limits:
    """The thresholds that hold for a run."""
    return LIMITS[figures.transport]
