"""The streams of a copy that carry files: the two that carry messages count for nothing.

A copy over N streams has two more, number N (the catalogue) and N + 1 (the feedback). Their bytes
are names and answers; what is summed up and judged is the N streams of data, and those that came
while it ran, which have the numbers behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from farline.profiles.series import Columns
    from farline.spec._types import RunRecord, StreamRecord


_RECEIVER = 1


def data_streams(record: Mapping[str, Any]) -> list[StreamRecord]:
    """The streams of a record that carry payload: of a run that is no copy, all."""
    streams: list[StreamRecord] = record["streams"]
    if not is_copy(record):
        return streams
    first = _count(record)
    messages = (first, first + 1)
    return [stream for stream in streams if stream["stream"] not in messages]


def is_copy(record: Mapping[str, Any]) -> bool:
    """Whether the run was to move files."""
    return bool(record["spec"].get("copy"))


def data_only(record: RunRecord, samples: Columns) -> tuple[RunRecord, Columns]:
    """Record and samples without what the streams of messages did; any other run as it is."""
    if not is_copy(record):
        return record, samples
    kept = cast("RunRecord", {**record, "streams": data_streams(record)})
    if "stream" not in samples:
        return kept, samples
    first = _count(record)
    rows = [row for row, its in enumerate(samples["stream"]) if its not in (first, first + 1)]
    return kept, {name: [column[row] for row in rows] for name, column in samples.items()}


def payload_bytes(record: Mapping[str, Any]) -> int:
    """Payload that a copy moved: what its receiving streams saw, else what was sent."""
    streams = data_streams(record)
    receivers = [stream for stream in streams if stream["role"] == _RECEIVER]
    return sum(stream["bytes"] for stream in receivers or streams)


def elapsed_us(record: Mapping[str, Any], streams: list[Any]) -> int:
    """Microseconds that streams took; of a copy those of the run, over which its rate is told."""
    own_us = max((stream["elapsed_us"] for stream in streams), default=0)
    run_us = round(1e6 * float(record.get("run_s") or 0.0)) if is_copy(record) else 0
    return max(own_us, run_us)


def payload_rate_bps(record: Mapping[str, Any]) -> float:
    """The one rate of a copy, in bits per second: payload moved over the time it ran."""
    took_us = elapsed_us(record, data_streams(record))
    return payload_bytes(record) * 8e6 / took_us if took_us else 0.0


def _count(record: Mapping[str, Any]) -> int:
    return max(1, int(record["spec"].get("streams") or 1))
