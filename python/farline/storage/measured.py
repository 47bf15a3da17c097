"""What a measurement came to, from what its processes answered; and the document of a profile."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farline.store.file_systems import KIND, PROFILE_SCHEMA

if TYPE_CHECKING:
    from farline.models.storage_caps import Cap, StorageCaps
    from farline.storage.settings import StorageSetting
    from farline.storage.striping import Striping
    from farline.storage.workers import Answer
    from farline.tools.mounts import Mount

_LATE_S = 0.02
"""Processes that begin later than this after the time they were given are said to be late."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement: all processes together.

    `seconds` are from the first request's begin to the last one's end, a sync at the end included.
    `cached` is the share of what was to be read that was in the page cache when it began,
    `cached_before` the same before it was dropped; None where it was a write, or the kernel does
    not tell. `device` is what block devices gave or took, as a share of the bytes moved.
    """

    setting: StorageSetting
    rate_bps: float
    size_bytes: int
    seconds: float
    sync_s: float
    requests: int
    latency_s: float
    latency_p99_s: float
    latency_max_s: float
    cached: float | None
    cached_before: float | None
    device: float | None
    cpu_s: float
    late_s: float

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **self.setting.document(),
            "rate_bps": round(self.rate_bps),
            "size_bytes": self.size_bytes,
            "seconds": round(self.seconds, 6),
            "sync_s": round(self.sync_s, 6),
            "requests": self.requests,
            "latency_s": self.latency_s,
            "latency_p99_s": self.latency_p99_s,
            "latency_max_s": self.latency_max_s,
            "cached": self.cached,
            "cached_before": self.cached_before,
            "device": self.device,
            "cpu_s": round(self.cpu_s, 6),
            "late_s": round(self.late_s, 6),
        }


def measured_of(setting: StorageSetting, answers: Sequence[Answer], begin_at_ns: int) -> Measured:
    """Adds up what the processes answered."""
    reports = [answer["report"] for answer in answers]
    began, ended = min(r["began_ns"] for r in reports), max(r["ended_ns"] for r in reports)
    moved = sum(r["bytes"] for r in reports)
    seconds = max(ended - began, 1) / 1e9
    counts = [sum(row) for row in zip(*(r["latency_counts"] for r in reports), strict=True)]
    is_read = setting.action == "read"
    late = max(r["began_ns"] for r in reports) - begin_at_ns
    device = [answer["device_bytes"] for answer in answers]
    return Measured(
        setting=setting,
        rate_bps=8 * moved / seconds,
        size_bytes=moved,
        seconds=seconds,
        sync_s=max(r["sync_ns"] for r in reports) / 1e9,
        requests=sum(r["requests"] for r in reports),
        latency_s=quantile_s(counts, 0.5),
        latency_p99_s=quantile_s(counts, 0.99),
        latency_max_s=max(r["latency_max_ns"] for r in reports) / 1e9,
        cached=_share(reports, "cached_bytes") if is_read else None,
        cached_before=_share(reports, "cached_before_bytes") if is_read else None,
        device=sum(device) / moved if moved and None not in device else None,
        cpu_s=sum(answer["cpu_s"] for answer in answers),
        late_s=late / 1e9 if late / 1e9 > _LATE_S else 0.0,
    )


def _share(reports: Sequence[Mapping[str, Any]], name: str) -> float | None:
    found = [report.get(name) for report in reports]
    if any(value is None for value in found):
        return None
    return float(sum(value or 0 for value in found) / sum(r["span_bytes"] for r in reports))


def quantile_s(counts: Sequence[int], share: float) -> float:
    """A quantile of times counted in quarters of a doubling of a microsecond."""
    wanted, seen = share * sum(counts), 0
    for place, count in enumerate(counts):
        seen += count
        if seen and seen >= wanted:
            return float(f"{1e-6 * 2 ** ((place + 0.5) / 4):.3g}")
    return 0.0


def caps_document(caps: StorageCaps | None) -> dict[str, Any] | None:
    """Caps for JSON; None where none could be fitted."""
    if caps is None:
        return None
    return {
        "form": caps.form,
        "process": _cap(caps.process),
        "total": _cap(caps.total),
        "sharpness": caps.sharpness if math.isfinite(caps.sharpness) else None,
        "spread": caps.spread,
        "most_processes": caps.most_processes,
        "best_processes": caps.best_processes,
        "best_bps": round(caps.best_bps),
        "declines_to_bps": caps.declines_to_bps and round(caps.declines_to_bps),
        "measured_s": round(time.time(), 3),
    }


def _cap(cap: Cap | None) -> dict[str, Any] | None:
    if cap is None:
        return None
    high = round(cap.high_bps) if math.isfinite(cap.high_bps) else None
    return {"rate_bps": round(cap.rate_bps), "low_bps": round(cap.low_bps), "high_bps": high}


def profile_document(
    *,
    host: str,
    path: str,
    mount: Mount | None,
    file_bytes: int,
    read_file: str | None,
    layers: Sequence[Striping],
    advice: str | None,
    measured: Sequence[Measured],
    caps: Mapping[str, StorageCaps | None],
    notes: Sequence[str],
) -> dict[str, Any]:
    """The document of a profile: what the store keeps and `--json` prints."""
    return {
        "kind": KIND,
        "schema": PROFILE_SCHEMA,
        "host": host,
        "path": path,
        "mount": mount.point if mount else path,
        "file_system": mount.kind if mount else "unknown",
        "source": mount.source if mount else "",
        "measured_s": round(time.time(), 3),
        "file_bytes": file_bytes,
        "read_file": read_file,
        "striping": [layer.document() for layer in layers],
        "advice": advice,
        "caps": {action: caps_document(found) for action, found in caps.items()},
        "measurements": [one.document() for one in measured],
        "notes": list(notes),
    }
