"""A run in the shape of iperf3's JSON, for panels and exporters that read that.

As in iperf3, intervals are the client's own view; at the end both ends count,
from the end of what was omitted on.
`sender` says whether the client sent. Figures that the kernel did not give are
left out of an interval and 0 at the end. `socket` is the number of the stream
plus one, not a file descriptor. UDT and RBUDP, which iperf3 does not know, have
the shape of TCP.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import accumulate
from typing import Any

from farline.profiles.intervals import Interval, StreamInterval, intervals_of
from farline.profiles.series import (
    CLIENT,
    RECEIVER,
    SENDER,
    SERVER,
    Columns,
    between,
    plain,
)
from farline.spec._types import EndReport, RunRecord, RunSpec, StreamRecord

Document = dict[str, Any]
_TCP_GAUGES = (
    ("snd_cwnd", "cwnd_bytes"),
    ("snd_wnd", "window_bytes"),
    ("rtt", "rtt_us"),
    ("rttvar", "rttvar_us"),
    ("pmtu", "path_mtu_bytes"),
)


def iperf3_document(record: RunRecord, samples: Columns, width_s: float) -> Document:
    """The whole document; of a failed run, with `error` as a string."""
    shown = intervals_of(samples, width_s)
    document: Document = {
        "start": start_document(record["spec"], record["server_address"], record),
        "intervals": [interval_document(interval, record["spec"]) for interval in shown],
        "end": end_document(record, shown, samples),
    }
    if title := record["spec"].get("title"):
        document["title"] = title
    if extra := record["spec"].get("extra_data"):
        document["extra_data"] = extra
    if error := record.get("error"):
        document["error"] = error_text(error["message"])
    return document


def error_text(message: str) -> str:
    """A failure as iperf3 words it: one string."""
    return f"error - {message}"


# Start


def start_document(spec: RunSpec, address: str, record: RunRecord | None = None) -> Document:
    """The `start` object; connections and hosts are there once the record is."""
    host, _, port = address.rpartition(":")
    started = datetime.fromisoformat(record["started_at"]) if record else datetime.now(UTC)
    document: Document = {
        "connected": _connected(record) if record else [],
        "version": f"farline {_version(record)} (iperf3 shape)",
        "system_info": _system_info(record["client"]) if record else "",
        "timestamp": {
            "time": format_datetime(started.astimezone(UTC), usegmt=True),
            "timesecs": int(started.timestamp()),
            "timemillisecs": int(started.timestamp() * 1000),
        },
        "connecting_to": {"host": host.strip("[]"), "port": int(port or 0)},
        "cookie": record["run_id"].lower() if record else "",
        "target_bitrate": spec.get("rate_bps") or 0,
        "fq_rate": (spec.get("tcp") or {}).get("pacing_rate_bps") or 0,
        "test_start": _test_start(spec),
    }
    return document | (_buffers(record) if record else {})


def _version(record: RunRecord | None) -> str:
    if record is not None and record["client"] is not None:
        return record["client"]["version"]["farline"]
    from importlib.metadata import version

    return version("farline")


def _system_info(client: EndReport | None) -> str:
    if client is None:
        return ""
    host = client["host"]
    return f"Linux {host['hostname']} {host['kernel']} {host['architecture']}"


def _connected(record: RunRecord) -> list[Document]:
    return [_connection(stream) for stream in record["streams"] if stream["end"] == CLIENT]


def _connection(stream: StreamRecord) -> Document:
    local_host, _, local_port = stream["granted"]["local"].rpartition(":")
    remote_host, _, remote_port = stream["granted"]["remote"].rpartition(":")
    return {
        "socket": stream["stream"] + 1,
        "local_host": local_host.strip("[]"),
        "local_port": int(local_port or 0),
        "remote_host": remote_host.strip("[]"),
        "remote_port": int(remote_port or 0),
    }


def _buffers(record: RunRecord) -> Document:
    spec: dict[str, Any] = dict(record["spec"])
    transport = spec.get("transport", "tcp")
    # RBUDP and QUIC have no buffer but that of their sockets.
    name = "udp_send_buffer_bytes" if transport in ("rbudp", "quic") else "send_buffer_bytes"
    asked = (spec.get(transport) or {}).get(name) or 0
    near = next((s["granted"] for s in record["streams"] if s["end"] == CLIENT), None)
    if near is None:
        return {}
    document = {
        "sock_bufsize": asked,
        "sndbuf_actual": near["send_buffer_bytes"] or 0,
        "rcvbuf_actual": near["receive_buffer_bytes"] or 0,
    }
    if near["mss_bytes"]:
        document["tcp_mss_default"] = near["mss_bytes"]
    return document


def _test_start(spec: RunSpec) -> Document:
    direction = spec.get("direction", "forward")
    udp_packet = (spec.get("udp") or {}).get("packet_bytes")
    return {
        "protocol": spec.get("transport", "tcp").upper(),
        "num_streams": spec.get("streams", 1),
        "blksize": udp_packet or spec.get("block_bytes") or 0,
        "omit": spec.get("omit_s") or 0,
        "duration": spec.get("duration_s") or 0,
        "bytes": spec.get("total_bytes") or 0,
        "blocks": 0,
        "reverse": int(direction == "reverse"),
        "tos": spec.get("tos") or 0,
        "target_bitrate": spec.get("rate_bps") or 0,
        "bidir": int(direction == "bidirectional"),
        "fqrate": (spec.get("tcp") or {}).get("pacing_rate_bps") or 0,
        "interval": spec.get("interval_s", 1.0),
    }


# Intervals


def interval_document(interval: Interval, spec: RunSpec) -> Document:
    """One entry of `intervals`: every stream, and their sum (of each direction when both run)."""
    transport, omitted = spec.get("transport", "tcp"), _is_omitted(interval, spec)
    document: Document = {
        "streams": [_stream_entry(stream, transport, omitted) for stream in interval.streams]
    }
    sides = [side for side in (True, False) if interval.side(side)]
    for name, sends in zip(("sum", "sum_bidir_reverse"), sides, strict=False):
        document[name] = _sum_entry(interval, sends, transport, omitted)
    return document


def _is_omitted(interval: Interval, spec: RunSpec) -> bool:
    """Whether its middle lies in what is omitted: its end comes some milliseconds early or late."""
    return (interval.start_s + interval.end_s) / 2 < (spec.get("omit_s") or 0.0)


def _span(start_s: float, end_s: float, moved_bytes: int) -> Document:
    seconds = end_s - start_s
    return {
        "start": start_s,
        "end": end_s,
        "seconds": seconds,
        "bytes": moved_bytes,
        "bits_per_second": moved_bytes * 8 / seconds if seconds > 0 else 0.0,
    }


def _stream_entry(stream: StreamInterval, transport: str, omitted: bool) -> Document:
    entry = {
        "socket": stream.stream + 1,
        **_span(stream.start_us / 1e6, stream.end_us / 1e6, max(0, stream.bytes)),
    }
    if transport == "udp":
        entry |= _udp_counts([stream], stream.sends)
    elif stream.sends and stream.retransmits != -1:
        entry["retransmits"] = stream.retransmits
        entry |= {name: max(0, getattr(stream, field)) for name, field in _TCP_GAUGES}
    return entry | {"omitted": omitted, "sender": stream.sends}


def _sum_entry(interval: Interval, sends: bool, transport: str, omitted: bool) -> Document:
    streams = interval.side(sends)
    moved = sum(max(0, stream.bytes) for stream in streams)
    entry = _span(interval.start_s, interval.end_s, moved)
    if transport == "udp":
        entry |= _udp_counts(streams, sends)
    elif sends and (retransmits := interval.total("retransmits")) is not None:
        entry["retransmits"] = retransmits
    return entry | {"omitted": omitted, "sender": sends}


def _udp_counts(streams: list[StreamInterval], sends: bool) -> Document:
    packets = sum(max(0, stream.packets) for stream in streams)
    if sends:
        return {"packets": packets}
    lost = sum(stream.lost_packets for stream in streams if stream.lost_packets != -1)
    jitter_ns = sum(max(0, stream.jitter_ns) for stream in streams) / max(1, len(streams))
    return _loss(jitter_ns, lost, packets + lost)


def _loss(jitter_ns: float, lost: int, packets: int) -> Document:
    return {
        "jitter_ms": jitter_ns / 1e6,
        "lost_packets": lost,
        "packets": packets,
        "lost_percent": 100 * lost / packets if packets else 0,
    }


# End


_OMITTED_COUNTS = ("bytes", "packets", "lost_packets", "retransmits")


def end_document(
    record: RunRecord, shown: list[Interval], samples: Columns | None = None
) -> Document:
    """The `end` object, without what was omitted; empty when no stream came about.

    Without `samples` of both ends, what the client saw of a stream while it was
    omitted is taken off at both.
    """
    if not record["streams"]:
        return {}
    known = _columns_of(shown) if samples is None else samples
    record = _measured_part(record, known)
    shown = [interval for interval in shown if not _is_omitted(interval, record["spec"])]
    udp = record["spec"].get("transport") == "udp"
    document: Document = {"streams": [_end_stream(record, n, shown, udp) for n in _numbers(record)]}
    ways = [end for end in (CLIENT, SERVER) if _side(record, SENDER, end)]
    for suffix, end in zip(("", "_bidir_reverse"), ways, strict=False):
        sent, received = _side(record, SENDER, end), _side(record, RECEIVER, 1 - end)
        if udp:
            document[f"sum{suffix}"] = _udp_sum(sent or received, received, end == CLIENT)
        document[f"sum_sent{suffix}"] = _sum(sent, [], end == CLIENT, udp)
        document[f"sum_received{suffix}"] = _sum(received, sent, end == CLIENT, udp)
    document["cpu_utilization_percent"] = _cpu(record)
    return document | _congestion(record)


def _measured_part(record: RunRecord, samples: Columns) -> RunRecord:
    """The record as if its streams had begun when `omit_s` was over."""
    omit_us = round((record["spec"].get("omit_s") or 0.0) * 1e6)
    if not omit_us:
        return record
    streams = [_after(stream, samples, omit_us) for stream in record["streams"]]
    return {**record, "streams": streams}


def _after(stream: StreamRecord, samples: Columns, omit_us: int) -> StreamRecord:
    """One end of a stream from `omit_us` on; counts are evenly spread within each row.

    Without a row nothing is known of what was omitted, and the whole stays.
    """
    samples = plain(samples)
    ends = samples.get("end", [stream["end"]] * len(samples["stream"]))
    whose = (stream["stream"], stream["end"])
    rows = [
        row for row, its in enumerate(zip(samples["stream"], ends, strict=True)) if its == whose
    ]
    if not rows:
        return stream
    rows.sort(key=samples["end_us"].__getitem__)
    times_us = [0, *(samples["end_us"][row] for row in rows)]
    left: dict[str, Any] = {"elapsed_us": max(0, stream["elapsed_us"] - omit_us)}
    for name in _OMITTED_COUNTS:
        counts = [0 if samples[name][row] == -1 else samples[name][row] for row in rows]
        before = round(between(omit_us, times_us, list(accumulate(counts, initial=0))))
        left[name] = max(0, int(dict(stream)[name]) - before)  # type: ignore[call-overload]
    return {**stream, **left}  # type: ignore[typeddict-item]


def _columns_of(shown: list[Interval]) -> Columns:
    streams = [stream for interval in shown for stream in interval.streams]
    names = ("stream", "end_us", *_OMITTED_COUNTS)
    return {name: [getattr(stream, name) for stream in streams] for name in names}


def _numbers(record: RunRecord) -> list[int]:
    return sorted({stream["stream"] for stream in record["streams"]})


def _side(record: RunRecord, role: int, end: int) -> list[StreamRecord]:
    return [s for s in record["streams"] if s["role"] == role and s["end"] == end]


def _end_stream(record: RunRecord, number: int, shown: list[Interval], udp: bool) -> Document:
    ends = [s for s in record["streams"] if s["stream"] == number]
    sender = next((s for s in ends if s["role"] == SENDER), None)
    receiver = next((s for s in ends if s["role"] == RECEIVER), None)
    from_client = sender["end"] == CLIENT if sender else ends[0]["end"] == SERVER
    if udp:
        sent = [s for s in (sender or receiver,) if s]
        received = [receiver] if receiver else []
        entry = _udp_sum(sent, received, from_client) | {"socket": number + 1}
        return {"udp": entry | {"out_of_order": receiver["reordered_packets"] if receiver else 0}}
    return {
        "sender": _end_entry(sender, number, from_client) | _sender_extremes(sender, number, shown),
        "receiver": _end_entry(receiver, number, from_client),
    }


def _end_entry(stream: StreamRecord | None, number: int, from_client: bool) -> Document:
    seconds = stream["elapsed_us"] / 1e6 if stream else 0.0
    moved = stream["bytes"] if stream else 0
    return {"socket": number + 1, **_span(0, seconds, moved), "sender": from_client}


def _sender_extremes(sender: StreamRecord | None, number: int, shown: list[Interval]) -> Document:
    mine = [s for interval in shown for s in interval.streams if s.stream == number and s.sends]
    rtts = [stream.rtt_us for stream in mine if stream.rtt_us >= 0]
    return {
        "retransmits": sender["retransmits"] if sender else 0,
        "max_snd_cwnd": max((stream.cwnd_bytes for stream in mine), default=0),
        "max_snd_wnd": max((stream.window_bytes for stream in mine), default=0),
        "max_rtt": max(rtts, default=0),
        "min_rtt": min(rtts, default=0),
        "mean_rtt": sum(rtts) // len(rtts) if rtts else 0,
    }


def _sum(
    streams: list[StreamRecord], senders: list[StreamRecord], from_client: bool, udp: bool
) -> Document:
    """Sum over one end; `senders` are given for the receiving end only."""
    seconds = max((s["elapsed_us"] for s in streams), default=0) / 1e6
    entry = _span(0, seconds, sum(s["bytes"] for s in streams))
    receiving = bool(senders)
    if udp:
        entry |= _udp_totals(senders or streams, streams if receiving else [])
    elif not receiving:
        entry["retransmits"] = sum(s["retransmits"] for s in streams)
    return entry | {"sender": from_client and not (udp and receiving)}


def _udp_sum(sent: list[StreamRecord], received: list[StreamRecord], from_client: bool) -> Document:
    seconds = max((s["elapsed_us"] for s in sent), default=0) / 1e6
    entry = _span(0, seconds, sum(s["bytes"] for s in sent))
    return entry | _udp_totals(sent, received) | {"sender": from_client}


def _udp_totals(sent: list[StreamRecord], received: list[StreamRecord]) -> Document:
    jitter_ns = sum(s["jitter_ns"] for s in received) / max(1, len(received))
    lost = sum(s["lost_packets"] for s in received)
    return _loss(jitter_ns, lost, sum(s["packets"] for s in sent))


def _cpu(record: RunRecord) -> Document:
    document: Document = {}
    for name, report in (("host", record["client"]), ("remote", record["server"])):
        wall_s = report["cpu"]["wall_s"] if report else 0.0
        user = 100 * report["cpu"]["user_s"] / wall_s if report and wall_s else 0.0
        system = 100 * report["cpu"]["system_s"] / wall_s if report and wall_s else 0.0
        document |= {
            f"{name}_total": user + system,
            f"{name}_user": user,
            f"{name}_system": system,
        }
    return document


def _congestion(record: RunRecord) -> Document:
    document = {}
    for name, role in (("sender", SENDER), ("receiver", RECEIVER)):
        used = next((s["granted"] for s in record["streams"] if s["role"] == role), None)
        if used and used["congestion_control"]:
            document[f"{name}_tcp_congestion"] = used["congestion_control"]
    return document
