"""Chunks for lines that are slow and break: what is proved is kept, and a chunk is proved whole.

The first session of a copy does not know how slow its line is. Where it was cut off, the next one
has chunks that a stream sends in about a second, so that it loses no more than these if it is cut
off too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farline.spec._types import CopyProgress

LONGEST_CHUNK_S = 1.0
LEAST_S = 1.0
"""A session that sent for a shorter time says little of its line."""
LEAST_CHUNK_BYTES = 1 << 16
USUAL_CHUNK_BYTES = 1 << 19
"""Chosen by the engine, at least: where a stream sends as much in time, nothing is changed."""


@dataclass
class SlowLine:
    """Watches what a session moves, and says how large the chunks of the next should be.

    Times are seconds of one steady clock. What nobody sent is not counted: a line that was fast
    and stood still before it was found to be cut is fast.
    """

    _first: tuple[float, int] | None = None
    """When the session told of itself first, and the bytes that it had moved."""
    _last: tuple[float, int] = (0.0, 0)
    """The same when it had last moved something."""
    _chunk_bytes: int | None = None

    def note(self, report: CopyProgress, now_s: float) -> None:
        """How far a session is."""
        now = (now_s, report["moved_bytes"])
        if self._first is None:
            self._first = self._last = now
        elif now[1] > self._last[1]:
            self._last = now

    def next_document(self, document: Mapping[str, Any], streams: int) -> Mapping[str, Any]:
        """The spec document for the next session, after one with so many streams.

        A size that was asked for stays. A session that moved nothing changes nothing.
        """
        (begun_s, before), (until_s, moved) = self._first or self._last, self._last
        if until_s - begun_s >= LEAST_S:
            self._chunk_bytes = _chunk_for((moved - before) / (until_s - begun_s) / max(1, streams))
        self._first, self._last = None, (0.0, 0)
        copy = document.get("copy") or {}
        if self._chunk_bytes is None or copy.get("chunk_bytes") is not None:
            return document
        return {**document, "copy": {**copy, "chunk_bytes": self._chunk_bytes}}


def _chunk_for(bytes_per_s: float) -> int | None:
    """Chunk for a stream of this rate, a power of two; None where it is not slow."""
    in_time = int(bytes_per_s * LONGEST_CHUNK_S)
    if in_time >= USUAL_CHUNK_BYTES:
        return None
    return max(LEAST_CHUNK_BYTES, 1 << max(0, in_time.bit_length() - 1))
