"""Run records made by hand: what a run of farline comes to, without a run."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np

SAMPLE_COLUMNS = (
    "end", "stream", "role", "start_us", "end_us", "bytes", "packets", "lost_packets",
    "reordered_packets", "duplicate_packets", "jitter_ns", "retransmits", "rtt_us", "rttvar_us",
    "cwnd_bytes", "receive_window_bytes", "pacing_rate_bps", "delivery_rate_bps", "busy_us",
    "receive_window_limited_us", "send_buffer_limited_us", "cwnd_limited_us", "path_mtu_bytes",
    "thread_cpu_us", "process_cpu_us", "zerocopy_copied_bytes", "paced_wait_us",
)  # fmt: skip

_START = datetime.datetime(2026, 11, 21, 20, 0, tzinfo=datetime.UTC)
_TCP = {"no_delay": False, "send_mode": "copy", "receive_mode": "read", "mptcp": False}


def make_spec(**overrides: Any) -> dict[str, Any]:
    """A resolved spec of one short TCP run."""
    spec: dict[str, Any] = {
        "schema": 1, "transport": "tcp", "direction": "forward", "streams": 1,
        "block_bytes": 131_072, "duration_s": 1.0, "interval_s": 0.1, "rate_bps": 0,
        "ip_version": "any", "connect_timeout_ms": 10_000, "seed": 0,
    }  # fmt: skip
    spec.update(overrides)
    if spec["transport"] == "tcp":
        spec["tcp"] = {**_TCP, **(spec.get("tcp") or {})}
    return spec


def make_record(
    number: int,
    spec: Mapping[str, Any] | None = None,
    *,
    bps: float = 1e9,
    status: str = "complete",
    error: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The record of run `number`: names and start times sort by it."""
    spec = dict(spec or make_spec())
    seconds = float(spec.get("duration_s") or 1.0)
    started = _START + datetime.timedelta(seconds=number)
    record: dict[str, Any] = {
        "schema": 1,
        "run_id": f"01JD{number:022d}",
        "status": status,
        "started_at": started.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "session_s": seconds + 0.01,
        "run_s": seconds if status != "failed" else 0.0,
        "server_address": "192.0.2.7:5470",
        "spec": spec,
        "server_notes": [],
        "client": make_end("alpha"),
        "server": make_end("beta"),
        "streams": [],
    }
    if error:
        record["error"] = dict(error)
    if status != "failed":
        record["summary"] = make_summary(bps, seconds)
        record["verdict"] = {
            "limit": "sender-cpu", "line": "the sender's CPU",
            "evidence": ["sender thread used 0.99 of a CPU"], "remedies": [],
        }  # fmt: skip
    return record


def make_summary(bps: float, seconds: float) -> dict[str, Any]:
    """A forward run at `bps` with every figure a TCP run has."""
    forward = {
        "total_bps": bps, "steady_bps": bps * 1.02, "omitted_s": 0.1, "warmup_rule": "mser-5",
        "bytes": int(bps * seconds / 8), "elapsed_s": seconds,
    }  # fmt: skip
    return {
        "forward": forward, "reverse": None, "retransmits": 3, "sent_packets": None,
        "lost_packets": None, "jitter_ns": None, "mean_rtt_us": 120.5, "min_rtt_us": 80,
        "cpu_s_per_gb": 0.25, "client_cpu": 0.9, "server_cpu": 0.8,
    }  # fmt: skip


def make_end(hostname: str) -> dict[str, Any]:
    """What one end says: host facts, versions, CPU."""
    return {
        "host": {
            "hostname": hostname, "kernel": "6.18.0", "operating_system": "Debian GNU/Linux 12",
            "architecture": "x86_64",
            "cpu": {"model": "model", "online": 2, "governor": None, "numa_nodes": 1,
                    "virtualised": True},
            "memory_bytes": 8 << 30,
            "sysctls": {"net.core.rmem_max": "4194304"},
            "congestion_controls": ["reno", "cubic"],
            "allowed_congestion_controls": ["reno"],
            "interfaces": [], "clock_source": "tsc",
        },
        "version": {"farline": "0.1.0", "commit": "", "profile": "release", "protocol": 1},
        "cpu": {"user_s": 0.1, "system_s": 0.8, "wall_s": 1.0, "steal_s": 0.0},
    }  # fmt: skip


def make_samples(rows: int = 10) -> dict[str, np.ndarray[Any, Any]]:
    """Sample columns of one stream seen from both ends; what a TCP stream has not is -1."""
    columns = {name: np.full(2 * rows, -1, dtype=np.int64) for name in SAMPLE_COLUMNS}
    steps = np.tile(np.arange(rows, dtype=np.int64), 2)
    ends = np.repeat(np.array([0, 1], dtype=np.int64), rows)
    columns.update(
        end=ends, role=ends.copy(), stream=np.zeros(2 * rows, dtype=np.int64),
        start_us=steps * 100_000, end_us=(steps + 1) * 100_000,
        bytes=np.full(2 * rows, 12_500_000, dtype=np.int64),
        rtt_us=np.where(ends == 0, 120 + steps, -1), retransmits=np.where(ends == 0, 0, -1),
    )  # fmt: skip
    return columns
