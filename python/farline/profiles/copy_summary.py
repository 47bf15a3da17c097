"""The summary of a copy that was over at once, made without numpy.

Below a second there are too few samples for a warm-up to be found, so nothing is lost: this is what
`summary.summarise` says too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from farline.profiles.copy_streams import data_streams, elapsed_us
from farline.profiles.run_totals import RECEIVER, SENDER, stream_figures, streams_of, total

if TYPE_CHECKING:
    from farline.spec._types import RunRecord, Summary, Throughput

_CLIENT, _SERVER = 0, 1


def light_summary(record: RunRecord, samples: Mapping[str, Iterable[int]]) -> Summary:
    """The summary of a run of so few samples that no warm-up can be told.

    `samples` are columns of 64-bit integers of any kind that can be gone through, -1 for unknown.
    """
    record = cast("RunRecord", {**record, "streams": data_streams(record)})
    summary: dict[str, Any] = {
        "forward": _throughput(record, _SERVER),
        "reverse": _throughput(record, _CLIENT),
        **stream_figures(record),
        "mean_rtt_us": _mean_rtt_us(record, samples),
    }
    return cast("Summary", summary)


def _throughput(record: RunRecord, end: int) -> Throughput | None:
    streams = streams_of(record, RECEIVER, end)
    if not streams:
        return None
    took_us = elapsed_us(record, streams)
    moved = total(streams, "bytes")
    return {
        "total_bps": moved * 8e6 / took_us if took_us else 0.0,
        "steady_bps": None,
        "omitted_s": 0.0,
        "warmup_rule": "none",
        "bytes": moved,
        "elapsed_s": took_us / 1e6,
    }


def _mean_rtt_us(record: RunRecord, samples: Mapping[str, Iterable[int]]) -> float | None:
    count = max(1, int(record["spec"].get("streams") or 1)) if record["spec"].get("copy") else None
    columns = [samples.get(name, ()) for name in ("role", "stream", "rtt_us")]
    known = [
        rtt_us
        for role, stream, rtt_us in zip(*columns, strict=True)
        if role == SENDER and rtt_us >= 0 and (count is None or stream < count)
    ]
    return sum(known) / len(known) if known else None
