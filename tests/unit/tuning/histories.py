"""Histories and truths for the tests of this room, by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from farline.store.paths import PastTransfer, PathEnds
from farline.tuning.belief import Group
from farline.tuning.search import BeliefSearch, BracketSearch, Sample
from farline.tuning.situation import Situation

NOW_S = 1_790_000_000.0
ENDS = PathEnds.between("near", "far")
WAN = Situation(
    ends=ENDS, modality="E", file_bytes=1e9, files=100, concurrency=4, pipelining=16384,
    rtt_ms=40.0, capacity_bps=1e10, nic_bps=10**10, window_bytes=32 << 20,
    here_kernel="6.1.0", there_kernel="6.1.0", now_s=NOW_S,
)  # fmt: skip
"""A long path, files of 1 GB. Its windows fill it."""

RISING = (300, 560, 900, 1200, 1350, 1500)
FLAT = (900, 1000, 1050, 1040, 1000, 950)
"""Mbit/s at 1, 2, 4, 8, 16 and 32 streams."""


def group(logs: Mapping[int, Sequence[float]], weight: float = 1.0) -> Group:
    """A group from ln Mbit/s by streams."""
    counts, sums = np.zeros(6), np.zeros(6)
    for streams, values in logs.items():
        at = int(math.log2(streams))
        counts[at], sums[at] = len(values), sum(values)
    return Group(counts, sums, weight)


def whole(logs: Sequence[float], weight: float) -> Group:
    """A group with one transfer at every count."""
    return group({2**at: [value] for at, value in enumerate(logs)}, weight)


KIND = whole([6.0, 6.5, 6.9, 7.2, 7.3, 7.1], 1.0)
NEAR = group({8: [7.0, 7.2], 16: [7.5]}, 0.5)
PATH = whole([5.5, 5.9, 6.3, 6.6, 6.9, 7.1], 0.8)
FAR = whole([6.0, 6.1, 6.2, 6.25, 6.2, 6.1], 0.6)


def driven(search: BeliefSearch | BracketSearch, truth: Sequence[float]) -> list[int]:
    """Streams that a search samples on a path without noise."""
    counts = []
    while (setting := search.next()) is not None:
        counts.append(setting.streams)
        rate_bps = 1e6 * truth[int(math.log2(setting.streams))]
        search.learn(Sample(setting, rate_bps, 3.0, round(rate_bps * 3 / 8)))
    return counts


def row(streams: int, mbps: float, **more: Any) -> PastTransfer:
    """A copy of 100 files of 1 GB from `near` to `far`, an hour ago."""
    known: dict[str, Any] = {
        "kind": "copy", "tool": "farline", "source": f"run-{streams}-{mbps:g}",
        "started_s": NOW_S - 3700, "ended_s": NOW_S - 3600, "duration_s": 100.0,
        "from_host": "near", "to_host": "far", "from_names": ("near",), "to_names": ("far",),
        "path": "near > far", "rate_bps": mbps * 1e6, "bytes": 100 * 10**9, "files": 100,
        "streams": streams, "parallelism": streams, "concurrency": 4, "pipelining": 16384,
        "rtt_ms": 40.0, "capacity_bps": 1e10, "nic_bps": 10**10, "window_bytes": 32 << 20,
        "transport": "tcp", "from_kernel": "6.1.0", "to_kernel": "6.1.0",
    }  # fmt: skip
    return PastTransfer(**(known | more))


def sweep(truth: Sequence[float], **more: Any) -> list[PastTransfer]:
    """A transfer at every count."""
    return [row(2**at, mbps, **more) for at, mbps in enumerate(truth)]
