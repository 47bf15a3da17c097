"""Runs made by hand, row by row, for rules that look at single figures."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from farline.spec._types import SAMPLE_COLUMNS, EndReport, RunRecord, StreamRecord

Columns = dict[str, npt.NDArray[np.int64]]
CLIENT, SERVER = 0, 1
SENDER, RECEIVER = 0, 1

SYSCTLS = {
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    "net.core.rmem_max": "212992",
    "net.core.wmem_max": "212992",
}


def columns(rows: Iterable[dict[str, int]]) -> Columns:
    """Sample columns from rows; what is left out is unknown, but stream, end and role are 0."""
    made = list(rows)
    known = {"end", "stream", "role"}
    return {
        name: np.array([row.get(name, 0 if name in known else -1) for row in made], dtype=np.int64)
        for name in SAMPLE_COLUMNS
    }


def int_columns(samples: Mapping[str, npt.NDArray[np.int64]]) -> dict[str, array[int]]:
    """The same columns as events have them."""
    return {name: array("q", values.tobytes()) for name, values in samples.items()}


def steady_rows(
    rates_bps: Iterable[float], *, width_us: int = 100_000, end: int, role: int, **more: int
) -> list[dict[str, int]]:
    """One row per rate, each `width_us` long."""
    return [
        {
            "end": end,
            "role": role,
            "start_us": index * width_us,
            "end_us": (index + 1) * width_us,
            "bytes": round(rate * width_us / 8e6),
            **more,
        }
        for index, rate in enumerate(rates_bps)
    ]


def stream(end: int, role: int, number: int = 0, **more: Any) -> StreamRecord:
    """One end of one stream: 10 s, 1 GB, nothing lost."""
    granted: dict[str, Any] = {
        "local": f"10.0.0.{1 + end}:5001",
        "remote": f"10.0.0.{2 - end}:5002",
        "congestion_control": "cubic",
        "mss_bytes": 1448,
        "send_buffer_bytes": 87_040,
        "receive_buffer_bytes": 131_072,
        "mptcp": False,
        "packet_bytes": None,
        "batch_packets": None,
        "gso": None,
        "gro": None,
        "cpu": None,
        "notes": [],
    }
    record: dict[str, Any] = {
        "stream": number,
        "end": end,
        "role": role,
        "bytes": 1_000_000_000,
        "elapsed_us": 10_000_000,
        "blocks": 7630,
        **dict.fromkeys(
            (
                "packets",
                "lost_packets",
                "reordered_packets",
                "duplicate_packets",
                "jitter_ns",
                "retransmits",
                "zerocopy_copied_bytes",
                "zerocopy_true_bytes",
                "min_rtt_us",
            ),
            0,
        ),
        "thread_cpu_us": 1_000_000,
        "thread_wait_us": 0,
        **{name: value for name, value in more.items() if name not in granted},
    }
    record["granted"] = granted | {name: more[name] for name in more if name in granted}
    return cast(StreamRecord, record)


def report(hostname: str = "near", user_s: float = 1.0, **cpu: Any) -> EndReport:
    """One end of a run on a host of four CPUs."""
    facts: dict[str, Any] = {
        "hostname": hostname,
        "kernel": "6.1.0",
        "operating_system": "Debian 12",
        "architecture": "x86_64",
        "cpu": {
            "model": "any",
            "online": 4,
            "governor": None,
            "numa_nodes": 1,
            "virtualised": False,
        },
        "memory_bytes": 8 << 30,
        "sysctls": dict(SYSCTLS),
        "congestion_controls": ["cubic"],
        "allowed_congestion_controls": ["cubic"],
        "interfaces": [],
        "clock_source": "tsc",
    }
    use = {"user_s": user_s, "system_s": 1.0, "wall_s": 10.0, "steal_s": 0.0, **cpu}
    version = {"farline": "0.1.0", "commit": "", "profile": "release", "protocol": 1}
    return cast(EndReport, {"host": facts, "version": version, "cpu": use})


def run_record(*streams: StreamRecord, **more: Any) -> RunRecord:
    """A complete forward TCP run with the given streams."""
    spec = {"schema": 1, "transport": "tcp", "direction": "forward", "streams": 1}
    record = {
        "schema": 1,
        "run_id": "01JD0000000000000000000000",
        "status": "complete",
        "started_at": "2026-11-21T20:00:00.000000Z",
        "session_s": 10.5,
        "run_s": 10.0,
        "server_address": "far.example:5470",
        "spec": spec | {"interval_s": 0.1, "duration_s": 10.0} | more.pop("spec", {}),
        "server_notes": [],
        "client": report("near"),
        "server": report("far"),
        "streams": list(streams) or [stream(CLIENT, SENDER), stream(SERVER, RECEIVER)],
        **more,
    }
    return cast(RunRecord, record)
