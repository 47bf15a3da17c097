"""What a run comes to by its record alone: totals of streams and CPU times, without numpy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from farline.profiles.driven import driven_figures, is_driven

if TYPE_CHECKING:
    from farline.spec._types import EndReport, RunRecord, StreamRecord

SENDER, RECEIVER = 0, 1


def streams_of(record: Mapping[str, Any], role: int, end: int | None = None) -> list[StreamRecord]:
    """The streams' ends of a role, at one end of the run or at both."""
    found: list[StreamRecord] = [s for s in record["streams"] if s["role"] == role]
    return found if end is None else [stream for stream in found if stream["end"] == end]


def total(streams: Iterable[StreamRecord], name: str) -> int:
    """The sum of a count over streams."""
    return sum(int(dict(stream)[name]) for stream in streams)  # type: ignore[call-overload]


def stream_figures(record: RunRecord) -> dict[str, Any]:
    """The fields of a `Summary` that only need the record; what neither end knows is None."""
    if is_driven(record):
        return {
            **driven_figures(record),
            "client_cpu": _cpu_share(record["client"]),
            "server_cpu": _cpu_share(record["server"]),
        }
    senders, receivers = (streams_of(record, role) for role in (SENDER, RECEIVER))
    transport = record["spec"].get("transport", "tcp")
    resends = transport in ("tcp", "udt", "rbudp", "quic")
    datagrams = transport in ("udp", "udt", "rbudp")
    return {
        "retransmits": total(senders, "retransmits") if resends and senders else None,
        "sent_packets": total(senders, "packets") if datagrams and senders else None,
        "lost_packets": total(receivers, "lost_packets") if datagrams and receivers else None,
        "jitter_ns": _mean_jitter_ns(receivers) if transport == "udp" else None,
        "min_rtt_us": min((s["min_rtt_us"] for s in senders if s["min_rtt_us"] > 0), default=None),
        "cpu_s_per_gb": _cpu_s_per_gb(record, receivers),
        "client_cpu": _cpu_share(record["client"]),
        "server_cpu": _cpu_share(record["server"]),
    }


def _mean_jitter_ns(receivers: list[StreamRecord]) -> int | None:
    jitters = [stream["jitter_ns"] for stream in receivers if stream["packets"] > 0]
    return round(sum(jitters) / len(jitters)) if jitters else None


def _cpu_s(end: EndReport | None) -> float:
    return end["cpu"]["user_s"] + end["cpu"]["system_s"] if end else 0.0


def _cpu_share(end: EndReport | None) -> float | None:
    return _cpu_s(end) / end["cpu"]["wall_s"] if end and end["cpu"]["wall_s"] > 0 else None


def _cpu_s_per_gb(record: RunRecord, receivers: list[StreamRecord]) -> float | None:
    received = total(receivers, "bytes")
    if not (received and record["client"] and record["server"]):
        return None
    return (_cpu_s(record["client"]) + _cpu_s(record["server"])) / (received / 1e9)
