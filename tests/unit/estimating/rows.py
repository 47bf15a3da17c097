"""Rows of a path's history, made by hand."""

from __future__ import annotations

from typing import Any

from farline.store.paths import PastTransfer, PathEnds

ENDS = PathEnds.between("near", "far")
NOW_S = 1_800_000_000.0
GB = 10**9


def row(age_s: float, rate_bps: float, total_bytes: int = 10 * GB, **more: Any) -> PastTransfer:
    """A copy from near to far that ended `age_s` before `NOW_S`."""
    duration_s = 8 * total_bytes / rate_bps
    ended_s = NOW_S - age_s
    known: dict[str, Any] = {
        "kind": "copy", "tool": "farline", "source": f"run-{age_s}",
        "started_s": ended_s - duration_s, "ended_s": ended_s, "duration_s": duration_s,
        "from_host": "near", "to_host": "far", "path": "near > far", "rate_bps": rate_bps,
        "bytes": total_bytes, "files": 100, "streams": 4, "rtt_ms": 40.0,
        "capacity_bps": 1e10, "window_bytes": 1 << 25, "from_kernel": "6.1.0-9-amd64",
        "to_kernel": "6.1.0-9-amd64",
    }  # fmt: skip
    return PastTransfer(**{**known, **more})


def history(count: int, rate_bps: float = 2e9, **more: Any) -> list[PastTransfer]:
    """Copies an hour apart, the newest an hour ago; they swing by a tenth."""
    return [
        row(3600.0 * (count - at), rate_bps * (1.1 if at % 2 else 0.9), **more)
        for at in range(count)
    ]
