"""What a run comes to: one `Summary` from its record and its samples.

Throughput is what the receivers saw. Total counts the whole run, ramp
included; steady leaves the warm-up out, by the time the caller stated or else
by MSER-5. Retransmits and round-trip times come from the senders, losses from
the receivers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from farline.profiles.series import (
    CLIENT,
    RECEIVER,
    SENDER,
    SERVER,
    Columns,
    Progress,
    progress,
    rates_bps,
    rows_of,
)
from farline.profiles.warmup import mser5
from farline.spec._types import EndReport, RunRecord, StreamRecord, Summary, Throughput


def summarise(record: RunRecord, samples: Columns) -> Summary:
    """The summary of a run; figures that neither end knows are `None`."""
    senders = [stream for stream in record["streams"] if stream["role"] == SENDER]
    receivers = [stream for stream in record["streams"] if stream["role"] == RECEIVER]
    transport = record["spec"].get("transport", "tcp")
    resends = transport in ("tcp", "udt", "rbudp")
    datagrams = transport in ("udp", "udt", "rbudp")
    return {
        "forward": _throughput(record, samples, SERVER),
        "reverse": _throughput(record, samples, CLIENT),
        "retransmits": _total(senders, "retransmits") if resends and senders else None,
        "sent_packets": _total(senders, "packets") if datagrams and senders else None,
        "lost_packets": _total(receivers, "lost_packets") if datagrams and receivers else None,
        "jitter_ns": _mean_jitter_ns(receivers) if transport == "udp" else None,
        "mean_rtt_us": _mean_rtt_us(samples),
        "min_rtt_us": min((s["min_rtt_us"] for s in senders if s["min_rtt_us"] > 0), default=None),
        "cpu_s_per_gb": _cpu_s_per_gb(record, receivers),
        "client_cpu": _cpu_share(record["client"]),
        "server_cpu": _cpu_share(record["server"]),
    }


def _total(streams: Iterable[StreamRecord], name: str) -> int:
    return sum(int(dict(stream)[name]) for stream in streams)  # type: ignore[call-overload]


def _mean_jitter_ns(receivers: list[StreamRecord]) -> int | None:
    jitters = [stream["jitter_ns"] for stream in receivers if stream["packets"] > 0]
    return round(sum(jitters) / len(jitters)) if jitters else None


def _mean_rtt_us(samples: Columns) -> float | None:
    rows = rows_of(samples, SENDER)
    known = samples["rtt_us"][rows] if rows.any() else np.zeros(0)
    known = known[known >= 0]
    return float(known.mean()) if len(known) else None


def _cpu_s(end: EndReport | None) -> float:
    return end["cpu"]["user_s"] + end["cpu"]["system_s"] if end else 0.0


def _cpu_share(end: EndReport | None) -> float:
    return _cpu_s(end) / end["cpu"]["wall_s"] if end and end["cpu"]["wall_s"] > 0 else 0.0


def _cpu_s_per_gb(record: RunRecord, receivers: list[StreamRecord]) -> float | None:
    received = _total(receivers, "bytes")
    if not (received and record["client"] and record["server"]):
        return None
    return (_cpu_s(record["client"]) + _cpu_s(record["server"])) / (received / 1e9)


def _throughput(record: RunRecord, samples: Columns, end: int) -> Throughput | None:
    """Throughput towards `end`; `None` if no stream goes there or its receiver did not report."""
    streams = [s for s in record["streams"] if s["role"] == RECEIVER and s["end"] == end]
    if not streams:
        return None
    elapsed_us = max(stream["elapsed_us"] for stream in streams)
    total_bytes = _total(streams, "bytes")
    moved = progress(samples, RECEIVER, end)
    omitted_us, rule = _warmup(record, moved, elapsed_us)
    return {
        "total_bps": total_bytes * 8e6 / elapsed_us if elapsed_us else 0.0,
        "steady_bps": None if rule == "none" else _steady_bps(moved, omitted_us, elapsed_us),
        "omitted_s": omitted_us / 1e6,
        "warmup_rule": rule,
        "bytes": total_bytes,
        "elapsed_s": elapsed_us / 1e6,
    }


def _warmup(record: RunRecord, moved: Progress, elapsed_us: int) -> tuple[int, str]:
    """Microseconds left out, and the rule that says so."""
    stated_s = record["spec"].get("omit_s")
    if stated_s is not None:
        return round(stated_s * 1e6), "stated"
    width_us = round(record["spec"].get("interval_s", 1.0) * 1e6)
    rates = rates_bps(moved, width_us, min(elapsed_us, moved.end_us))
    cut = mser5(rates.tolist())
    return (0, "none") if cut is None else (cut * width_us, "mser-5")


def _steady_bps(moved: Progress, omitted_us: int, elapsed_us: int) -> float | None:
    """Rate after the warm-up; `None` if the samples do not reach beyond it."""
    until_us = min(elapsed_us, moved.end_us)
    if until_us <= omitted_us:
        return None
    before, after = moved.at([omitted_us, until_us])
    return float(after - before) * 8e6 / (until_us - omitted_us)
