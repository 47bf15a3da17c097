"""How large the chunks are after a session that was slow and broke off."""

from __future__ import annotations

from typing import Any

import pytest

from farline.copying.retry import RepeatedSessions, RetryPolicy
from farline.copying.session import Attempt
from farline.copying.slow_lines import with_smaller_chunks
from farline.errors import UnreachableError
from farline.tools import never_stop
from tests.support.copies import progress
from tests.support.steps import finished

CUT = UnreachableError("far.example:5470: connection reset")
MBIT = 1e6


def broken(rate_bps: float | None, streams: int = 2, way: str = "forward") -> Attempt:
    """A session that was cut off."""
    summary = {"forward": None, "reverse": None, way: {"total_bps": rate_bps}}
    record: Any = {"summary": summary, "spec": {"streams": streams}, "run_id": "r", "status": "x"}
    return Attempt(record, CUT)


@pytest.mark.parametrize(
    ("mbit", "streams", "kib"),
    [(1, 2, 64), (0.01, 8, 64), (2, 1, 128), (4, 2, 128), (8, 2, 256)],
)
def test_a_stream_sends_a_chunk_in_about_a_second(mbit: float, streams: int, kib: int) -> None:
    for way in ("forward", "reverse"):
        document = with_smaller_chunks({"copy": {}}, broken(mbit * MBIT, streams, way))
        assert document == {"copy": {"chunk_bytes": kib << 10}}


@pytest.mark.parametrize(
    "attempt", [broken(100 * MBIT), broken(0.0), broken(None), Attempt(None, CUT)]
)
def test_lines_that_are_not_slow_or_not_known_change_nothing(attempt: Attempt) -> None:
    document = {"copy": {"sources": ["a"]}}
    assert with_smaller_chunks(document, attempt) is document


def test_a_size_that_was_asked_for_stays() -> None:
    document = {"copy": {"chunk_bytes": 1 << 20}}
    assert with_smaller_chunks(document, broken(MBIT)) is document


class Slow:
    """Sessions that are cut off, the first two slow ones."""

    adjusting = None
    repeat = False
    is_known = False
    far = None

    def __init__(self) -> None:
        self.chunks: list[int | None] = []

    def attempt(self, document: Any, receipt: Any, should_stop: Any) -> Any:
        """One session."""
        self.chunks.append(document["copy"].get("chunk_bytes"))
        yield progress(settled_files=len(self.chunks), settled_bytes=0, moved_bytes=1 << 20)
        return broken((1, 8, 1000, 1000)[len(self.chunks) - 1] * MBIT)

    def close(self) -> None:
        """Nothing was started."""


def test_each_session_has_chunks_by_the_rate_of_the_one_before() -> None:
    slow = Slow()
    policy = RetryPolicy(60.0, retries=3)
    repeated = RepeatedSessions(slow, policy, never_stop, sleep=lambda _s: None, clock=Clock())
    assert finished(repeated.run({"copy": {}}, None), []).error is CUT
    assert slow.chunks == [None, 64 << 10, 256 << 10, None]


class Clock:
    """A second a look."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += 1.0
        return self._now_s
