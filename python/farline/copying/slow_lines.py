"""Chunks for lines that are slow and break: what is proved is kept, and a chunk is proved whole.

The first session of a copy does not know how slow its line is. Where it was cut off, the next one
has chunks that a stream sends in about a second, so that it loses no more than these if it is cut
off too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farline.copying.session import Attempt

LONGEST_CHUNK_S = 1.0
LEAST_CHUNK_BYTES = 1 << 16
USUAL_CHUNK_BYTES = 1 << 19
"""Chosen by the engine, at least: where a stream sends as much in time, nothing is changed."""


def with_smaller_chunks(document: Mapping[str, Any], attempt: Attempt) -> Mapping[str, Any]:
    """The spec document for what comes after `attempt`; the same unless that was slow.

    A size that was asked for stays.
    """
    copy = document.get("copy") or {}
    if copy.get("chunk_bytes") is not None or attempt.record is None:
        return document
    in_time = _stream_bps(attempt.record) / 8 * LONGEST_CHUNK_S
    if not 0 < in_time < USUAL_CHUNK_BYTES:
        return document
    chunk_bytes = max(LEAST_CHUNK_BYTES, 1 << (int(in_time).bit_length() - 1))
    return {**document, "copy": {**copy, "chunk_bytes": chunk_bytes}}


def _stream_bps(record: Mapping[str, Any]) -> float:
    """Rate of one stream, bit/s; 0 where nothing moved."""
    summary = record.get("summary") or {}
    rates = [(summary.get(way) or {}).get("total_bps") or 0.0 for way in ("forward", "reverse")]
    return float(max(rates)) / max(1, record["spec"].get("streams") or 1)
