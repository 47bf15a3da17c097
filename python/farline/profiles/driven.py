"""What a run of a driven tool comes to: what it says and what was found, nothing worked out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_driven(record: Mapping[str, Any]) -> bool:
    """Whether another tool than farline's own engine did the run."""
    return record.get("driven") is not None


def driven_throughput(record: Mapping[str, Any], way: str) -> dict[str, Any] | None:
    """`Throughput` of `forward` or `reverse`; None where nothing is known of it.

    No tool says what came when to the receiver, so there is no steady part.
    """
    flow = record["driven"].get(way)
    if flow is None:
        return None
    elapsed_s = flow["elapsed_s"]
    return {
        "total_bps": flow["bytes"] * 8 / elapsed_s if elapsed_s > 0 else 0.0,
        "steady_bps": None,
        "omitted_s": 0.0,
        "warmup_rule": "none",
        "bytes": flow["bytes"],
        "elapsed_s": elapsed_s,
    }


def driven_figures(record: Mapping[str, Any]) -> dict[str, Any]:
    """The rest of a `Summary`, as far as the tool says it."""
    driven = record["driven"]
    names = ("retransmits", "sent_packets", "lost_packets", "jitter_ns")
    figures = {name: driven.get(name) for name in (*names, "min_rtt_us", "mean_rtt_us")}
    return {**figures, "cpu_s_per_gb": _cpu_s_per_gb(record)}


def _cpu_s_per_gb(record: Mapping[str, Any]) -> float | None:
    flows = [record["driven"].get(way) for way in ("forward", "reverse")]
    moved = sum(flow["bytes"] for flow in flows if flow is not None)
    ends = [record.get("client"), record.get("server")]
    if not moved or None in ends:
        return None
    used_s = sum(end["cpu"]["user_s"] + end["cpu"]["system_s"] for end in ends if end)
    return float(used_s / (moved / 1e9))
