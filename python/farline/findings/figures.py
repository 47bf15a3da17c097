"""The figures a verdict rests on, gathered from a record and its samples for one direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from farline.findings.path_payload import path_payload_bps
from farline.findings.rbudp_figures import RbudpFigures, rbudp_figures_of
from farline.findings.udt_figures import UdtFigures, udt_figures_of
from farline.profiles.series import (
    RECEIVER,
    SENDER,
    Columns,
    known,
    mean,
    plain,
    progress,
    rows_of,
)
from farline.spec._types import EndReport, RunRecord, StreamRecord

_BLOCK_BYTES = {
    "tcp": 128 << 10,
    "udp": 64 << 10,
    "udt": 128 << 10,
    "rbudp": 128 << 10,
    "quic": 128 << 10,
    "null": 128 << 10,
}
"""Block of each transport when none is asked for, as `block_bytes` documents it."""

_RATE_NOTES = ("rate limited", "rate_bps")
"""How a server begins what it says of a lower rate: today, and in older records."""

_INTERVALS = 3
"""Parts a run is cut into to see whether the congestion window still grows."""


@dataclass(frozen=True)
class Figures:
    """One direction of one run in numbers; `None` is "not known".

    Shares are fractions: of the streams' time for `busy_share`, of their busy
    time for the three `…_share` after it, of one CPU for the busiest thread
    (`…_wait` is the time in which it could have run but had no CPU), of all CPUs
    of the host for `…_host_cpu`.
    """

    transport: str
    direction: str
    status: str
    error: str
    same_host: bool
    streams: int
    """As requested; the record may have fewer."""
    duration_s: float | None
    omit_s: float | None
    block_bytes: int
    send_mode: str
    receive_mode: str
    throughput_bps: float
    asked_bps: float
    asked_by: str
    moved_s: float
    """Seconds in which data moved."""
    rate_note: str
    """Why the rate asked for is lower than what the caller wrote: the server's word, or empty."""
    busy_share: float | None
    receive_window_share: float
    send_buffer_share: float
    cwnd_share: float
    sender_cpu: float
    receiver_cpu: float
    sender_wait: float
    receiver_wait: float
    sender_host_cpu: float
    receiver_host_cpu: float
    sender_cpus: int
    receiver_cpus: int
    steal_share: float
    mean_rtt_us: float | None
    min_rtt_us: int | None
    cwnd_bytes: float | None
    cwnd_growth: float | None
    window_bytes: float | None
    pacing_bps: float | None
    retransmits: int
    segments: int
    sent_packets: int
    lost_packets: int
    congestion_control: str
    allowed_congestion_controls: tuple[str, ...]
    sender_pinned: bool
    receiver_pinned: bool
    gso: bool | None
    gro: bool | None
    batch_packets: int | None
    fastest_stream_bps: float
    """Rate of the stream that was fastest, over its own time."""
    slowest_stream_bps: float
    """The same of the slowest; 0 where a stream moved nothing."""
    largest_stream_share: float | None
    """Bytes of the stream that carried most, of those of all; None if the record lacks a stream."""
    settled_bps: float | None
    """Rate at the receiver after the first third of the run."""
    late_retransmit_share: float | None
    """Segments sent again after the first third of the run, of the segments sent then."""
    link_bps: int | None
    path_payload_bps: float | None
    zerocopy_copied_bytes: int
    zerocopy_true_bytes: int
    receive_buffer_asked: int | None
    receive_buffer_granted: int | None
    send_buffer_asked: int | None
    send_buffer_granted: int | None
    receiver_sysctls: dict[str, str]
    sender_sysctls: dict[str, str]
    builds: tuple[str, ...]
    udt: UdtFigures | None
    rbudp: RbudpFigures | None

    @property
    def bdp_bytes(self) -> float | None:
        """Bytes in flight at the rate reached: throughput times round-trip time."""
        rtt_us = self.mean_rtt_us
        return None if rtt_us is None else self.throughput_bps / 8 * rtt_us / 1e6

    @property
    def stream_bps(self) -> float:
        """Throughput of one stream, as if all were alike."""
        return self.throughput_bps / self.streams

    @property
    def spare_streams(self) -> int:
        """Streams for which the smaller end has CPUs; both ends of one host share them."""
        known = [cpus for cpus in (self.sender_cpus, self.receiver_cpus) if cpus]
        return min(known, default=0) // (2 if self.same_host else 1)

    @property
    def retransmit_share(self) -> float:
        """Segments sent again, of all segments."""
        return self.retransmits / self.segments if self.segments else 0.0

    @property
    def lost_share(self) -> float:
        """Datagrams that never came (UDT, RBUDP: not at first), of all that were sent."""
        return self.lost_packets / self.sent_packets if self.sent_packets else 0.0


def directions_of(record: RunRecord) -> list[int]:
    """The ends that send: 0 for client to server, 1 for server to client."""
    direction = record["spec"].get("direction", "forward")
    return {"forward": [0], "reverse": [1]}.get(direction, [0, 1])


def figures_of(record: RunRecord, samples: Columns, sender_end: int) -> Figures:
    """The figures of the direction in which `sender_end` sends."""
    samples = plain(samples)
    senders = _streams(record, SENDER, sender_end)
    receivers = _streams(record, RECEIVER, 1 - sender_end)
    ends = (record["client"], record["server"])
    near, far = ends[sender_end], ends[1 - sender_end]
    spec: dict[str, Any] = dict(record["spec"])
    return Figures(
        **_outcome(record, spec, sender_end),
        **_asked(spec),
        **_rates(spec, senders, receivers),
        **_limited_shares(samples, sender_end),
        **_cpu(senders, receivers, near, far),
        **_gauges(samples, sender_end, senders),
        **_losses(senders, receivers),
        **_granted(spec, senders, receivers),
        receiver_sysctls=far["host"]["sysctls"] if far else {},
        sender_sysctls=near["host"]["sysctls"] if near else {},
        allowed_congestion_controls=_allowed_congestion_controls(near),
        link_bps=_link_bps(senders, near),
        rate_note=next(
            (note for note in record["server_notes"] if note.startswith(_RATE_NOTES)), ""
        ),
        settled_bps=_settled_bps(samples, 1 - sender_end),
        late_retransmit_share=_late_retransmit_share(samples, sender_end, senders),
        path_payload_bps=path_payload_bps(record, senders),
        builds=tuple(end["version"]["profile"] for end in ends if end),
        udt=udt_figures_of(record, samples, senders, receivers, sender_end),
        rbudp=rbudp_figures_of(record, samples, senders, receivers, sender_end),
    )


def _streams(record: RunRecord, role: int, end: int) -> list[StreamRecord]:
    return [s for s in record["streams"] if s["role"] == role and s["end"] == end]


def _outcome(record: RunRecord, spec: dict[str, Any], sender_end: int) -> dict[str, Any]:
    client, server = record["client"], record["server"]
    hosts = [(end["host"]["hostname"], end["host"]["kernel"]) for end in (client, server) if end]
    error = record.get("error")
    return {
        "transport": spec.get("transport", "tcp"),
        "direction": ("forward", "reverse")[sender_end],
        "status": record["status"],
        "error": error["message"] if error else "",
        "same_host": len(hosts) == 2 and hosts[0] == hosts[1] and _is_local(record),
    }


def _asked(spec: dict[str, Any]) -> dict[str, Any]:
    """What the spec says, with the engine's own choice where it says nothing."""
    transport = spec.get("transport", "tcp")
    section = spec.get(transport) or {}
    return {
        "streams": max(1, int(spec.get("streams") or 1)),
        "duration_s": spec.get("duration_s"),
        "omit_s": spec.get("omit_s"),
        "block_bytes": int(spec.get("block_bytes") or _BLOCK_BYTES[transport]),
        "send_mode": section.get("send_mode", "copy"),
        "receive_mode": section.get("receive_mode", "read"),
    }


def _allowed_congestion_controls(near: EndReport | None) -> tuple[str, ...]:
    return tuple(near["host"]["allowed_congestion_controls"]) if near else ()


def _is_local(record: RunRecord) -> bool:
    """Whether both addresses of a stream are the same host's: equal, or both loopback."""
    for stream in record["streams"]:
        local, remote = (stream["granted"][side].rpartition(":")[0] for side in ("local", "remote"))
        if local and (local == remote or local.startswith("127.")):
            return True
    return False


def _rates(
    spec: dict[str, Any], senders: list[StreamRecord], receivers: list[StreamRecord]
) -> dict[str, Any]:
    elapsed_us = max((s["elapsed_us"] for s in receivers or senders), default=0)
    moved = sum(s["bytes"] for s in receivers or senders)
    streams = int(spec.get("streams") or 1)
    rates = {
        "-b": int(spec.get("rate_bps") or 0),
        "--fq-rate": int((spec.get("tcp") or {}).get("pacing_rate_bps") or 0),
    }
    flag, rate = min(
        ((flag, rate) for flag, rate in rates.items() if rate), key=lambda p: p[1], default=("", 0)
    )
    return {
        "throughput_bps": moved * 8e6 / elapsed_us if elapsed_us else 0.0,
        "asked_bps": float(rate * streams),
        "asked_by": flag,
        "moved_s": elapsed_us / 1e6,
        **_stream_rates(receivers or senders),
        "largest_stream_share": _largest_share(receivers or senders, streams),
    }


def _stream_rates(streams: list[StreamRecord]) -> dict[str, float]:
    rates = [s["bytes"] * 8e6 / s["elapsed_us"] if s["elapsed_us"] else 0.0 for s in streams]
    return {
        "fastest_stream_bps": max(rates, default=0.0),
        "slowest_stream_bps": min(rates, default=0.0),
    }


def _largest_share(records: list[StreamRecord], streams: int) -> float | None:
    moved = [record["bytes"] for record in records]
    if len(moved) != streams or not any(moved):
        return None
    return max(moved) / sum(moved)


def _limited_shares(samples: Columns, end: int) -> dict[str, Any]:
    rows = rows_of(samples, SENDER, end)
    if not known(samples, "busy_us", rows):
        return {
            "busy_share": None,
            "receive_window_share": 0.0,
            "send_buffer_share": 0.0,
            "cwnd_share": 0.0,
        }
    span_us = sum(samples["end_us"][row] - samples["start_us"][row] for row in rows)
    busy_us = sum(known(samples, "busy_us", rows))

    def share(name: str) -> float:
        return sum(known(samples, name, rows)) / busy_us if busy_us else 0.0

    return {
        "busy_share": busy_us / span_us if span_us else None,
        "receive_window_share": share("receive_window_limited_us"),
        "send_buffer_share": share("send_buffer_limited_us"),
        "cwnd_share": share("cwnd_limited_us"),
    }


def _thread_shares(streams: Sequence[StreamRecord]) -> tuple[float, float]:
    """CPU and wait for one of the thread that had the most of both together."""
    shares = []
    for stream in streams:
        cpu_us, wait_us = stream["thread_cpu_us"], stream.get("thread_wait_us", 0)
        # A thread also runs before its first byte and after its last: of a run of a few bytes more.
        span_us = max(stream["elapsed_us"], cpu_us + wait_us)
        if span_us > 0:
            shares.append((cpu_us / span_us, wait_us / span_us))
    return max(shares, key=sum, default=(0.0, 0.0))


def _settled_bps(samples: Columns, end: int) -> float | None:
    """What arrived in the last two thirds of the run, over their time."""
    rows = rows_of(samples, RECEIVER, end)
    if not rows:
        return None
    last_us = max(samples["end_us"][row] for row in rows)
    late = [row for row in rows if samples["start_us"][row] >= last_us / 3]
    if not late:
        return None
    span_us = last_us - min(samples["start_us"][row] for row in late)
    return sum(samples["bytes"][row] for row in late) * 8e6 / span_us if span_us > 0 else None


def _late_retransmit_share(samples: Columns, end: int, senders: list[StreamRecord]) -> float | None:
    """Of the last two thirds of the run; None where no interval tells of segments sent again."""
    rows = rows_of(samples, SENDER, end)
    moved = sum(samples["bytes"][row] for row in rows)
    if not known(samples, "retransmits", rows) or moved <= 0:
        return None
    last_us = max(samples["end_us"][row] for row in rows)
    late = [row for row in rows if samples["start_us"][row] >= last_us / 3]
    sent = _segments(senders) * sum(samples["bytes"][row] for row in late) / moved
    return sum(known(samples, "retransmits", late)) / sent if sent > 0 else None


def _host_share(end: EndReport | None) -> float:
    if end is None or end["cpu"]["wall_s"] <= 0:
        return 0.0
    online = max(1, end["host"]["cpu"]["online"])
    return (end["cpu"]["user_s"] + end["cpu"]["system_s"]) / end["cpu"]["wall_s"] / online


def _steal(end: EndReport | None) -> float:
    if end is None or end["cpu"]["wall_s"] <= 0:
        return 0.0
    return end["cpu"]["steal_s"] / end["cpu"]["wall_s"] / max(1, end["host"]["cpu"]["online"])


def _cpu(
    senders: list[StreamRecord],
    receivers: list[StreamRecord],
    near: EndReport | None,
    far: EndReport | None,
) -> dict[str, Any]:
    sender_cpu, sender_wait = _thread_shares(senders)
    receiver_cpu, receiver_wait = _thread_shares(receivers)
    return {
        "sender_cpu": sender_cpu,
        "receiver_cpu": receiver_cpu,
        "sender_wait": sender_wait,
        "receiver_wait": receiver_wait,
        "sender_host_cpu": _host_share(near),
        "receiver_host_cpu": _host_share(far),
        "sender_cpus": near["host"]["cpu"]["online"] if near else 0,
        "receiver_cpus": far["host"]["cpu"]["online"] if far else 0,
        "steal_share": max(_steal(near), _steal(far)),
    }


def _gauges(samples: Columns, end: int, senders: list[StreamRecord]) -> dict[str, Any]:
    rows = rows_of(samples, SENDER, end)

    def average(name: str) -> float | None:
        return mean(known(samples, name, rows))

    return {
        "mean_rtt_us": average("rtt_us"),
        "min_rtt_us": min((s["min_rtt_us"] for s in senders if s["min_rtt_us"] > 0), default=None),
        "cwnd_bytes": average("cwnd_bytes"),
        "cwnd_growth": _cwnd_growth(samples, end),
        "window_bytes": average("receive_window_bytes"),
        "pacing_bps": average("pacing_rate_bps"),
    }


def _cwnd_growth(samples: Columns, end: int) -> float | None:
    """Mean window in the last third of the run over that in the middle third."""
    rows = rows_of(samples, SENDER, end)
    part_us = max(progress(samples, SENDER, end).end_us / _INTERVALS, 1.0)

    def average(index: int) -> float | None:
        mine = [
            row for row in rows
            if min(int(samples["end_us"][row] / part_us), _INTERVALS - 1) == index
        ]  # fmt: skip
        return mean(known(samples, "cwnd_bytes", mine))

    middle, last = average(1), average(2)
    return last / middle if middle and last is not None else None


def _segments(senders: list[StreamRecord]) -> int:
    return sum(s["bytes"] // (s["granted"]["mss_bytes"] or 1460) for s in senders)


def _losses(senders: list[StreamRecord], receivers: list[StreamRecord]) -> dict[str, Any]:
    return {
        "retransmits": sum(s["retransmits"] for s in senders),
        "segments": _segments(senders),
        "sent_packets": sum(s["packets"] for s in senders),
        "lost_packets": sum(s["lost_packets"] for s in receivers),
        "zerocopy_copied_bytes": sum(s["zerocopy_copied_bytes"] for s in senders),
        "zerocopy_true_bytes": sum(s["zerocopy_true_bytes"] for s in senders),
    }


def _granted(
    spec: dict[str, Any], senders: list[StreamRecord], receivers: list[StreamRecord]
) -> dict[str, Any]:
    section = spec.get(spec.get("transport", "tcp")) or {}
    near = senders[0]["granted"] if senders else None
    far = receivers[0]["granted"] if receivers else None
    return {
        "congestion_control": (near["congestion_control"] if near else None) or "",
        "receive_buffer_asked": section.get("receive_buffer_bytes"),
        "receive_buffer_granted": far["receive_buffer_bytes"] if far else None,
        "send_buffer_asked": section.get("send_buffer_bytes"),
        "send_buffer_granted": near["send_buffer_bytes"] if near else None,
        "sender_pinned": _all_pinned(senders),
        "receiver_pinned": _all_pinned(receivers),
        "gso": near["gso"] if near else None,
        "gro": far["gro"] if far else None,
        "batch_packets": near["batch_packets"] if near else None,
    }


def _all_pinned(streams: list[StreamRecord]) -> bool:
    return bool(streams) and all(s["granted"]["cpu"] is not None for s in streams)


def _link_bps(senders: list[StreamRecord], near: EndReport | None) -> int | None:
    """Speed of the interface that holds the senders' address, if its driver knows it."""
    addresses = {s["granted"]["local"].rpartition(":")[0].strip("[]") for s in senders}
    for interface in near["host"]["interfaces"] if near else []:
        bare = {address.partition("/")[0] for address in interface["addresses"]}
        if addresses & bare and interface["speed_bps"]:
            return interface["speed_bps"]
    return None
