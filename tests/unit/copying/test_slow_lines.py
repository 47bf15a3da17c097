"""How large the chunks are after a session that was slow and broke off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from farline.copying.adjusting import Adjusting
from farline.copying.retry import RepeatedSessions, RetryPolicy
from farline.copying.session import Attempt
from farline.copying.slow_lines import SlowLine
from farline.errors import UnreachableError
from farline.tools import never_stop
from tests.support.copies import progress
from tests.support.steps import finished

CUT = UnreachableError("far.example:5470: connection reset")
MBIT = 125_000
DOCUMENT: Mapping[str, Any] = {"copy": {"sources": ["a"]}}


def told(line: SlowLine, moved: Sequence[tuple[float, float]]) -> None:
    """A session that had moved so many bytes at these times."""
    for now_s, count in moved:
        line.note(progress(moved_bytes=int(count)).report, now_s)


def chunk(document: Mapping[str, Any]) -> int | None:
    """The chunk that it asks for."""
    found: int | None = document["copy"].get("chunk_bytes")
    return found


@pytest.mark.parametrize(
    ("mbit", "streams", "kib"),
    [(1, 2, 64), (0.01, 8, 64), (2, 1, 128), (4.2, 2, 256), (8.5, 2, 512)],
)
def test_a_stream_sends_a_chunk_in_about_a_second(mbit: float, streams: int, kib: int) -> None:
    line = SlowLine()
    told(line, [(10.0, 0), (15.0, 5 * mbit * MBIT), (20.0, 10 * mbit * MBIT)])
    found = chunk(line.next_document(DOCUMENT, streams))
    assert found == (None if kib == 512 else kib << 10)


def test_a_line_that_was_fast_before_it_was_cut_is_fast() -> None:
    line = SlowLine()
    told(line, [(0.0, 0), (2.0, 200 * MBIT), (10.0, 200 * MBIT), (32.0, 200 * MBIT)])
    assert line.next_document(DOCUMENT, 4) is DOCUMENT


def test_what_was_there_before_is_not_of_this_session() -> None:
    line = SlowLine()
    told(line, [(0.0, 1000 * MBIT), (4.0, 1002 * MBIT)])
    assert chunk(line.next_document(DOCUMENT, 1)) == 64 << 10


def test_sessions_that_come_to_nothing_or_end_at_once_change_nothing() -> None:
    line = SlowLine()
    assert line.next_document(DOCUMENT, 1) is DOCUMENT
    told(line, [(0.0, 0), (0.5, 10)])
    assert line.next_document(DOCUMENT, 1) is DOCUMENT
    told(line, [(1.0, 0), (11.0, 10 * MBIT)])
    assert chunk(line.next_document(DOCUMENT, 1)) == 64 << 10
    # The line is still down, then comes back without a byte.
    assert chunk(line.next_document(DOCUMENT, 1)) == 64 << 10
    told(line, [(20.0, 0), (50.0, 0)])
    assert chunk(line.next_document(DOCUMENT, 1)) == 64 << 10
    # And is fast at last.
    told(line, [(60.0, 0), (70.0, 1000 * MBIT)])
    assert line.next_document(DOCUMENT, 1) is DOCUMENT


def test_a_size_that_was_asked_for_stays() -> None:
    line = SlowLine()
    told(line, [(0.0, 0), (10.0, 10 * MBIT)])
    document = {"copy": {"chunk_bytes": 1 << 20}}
    assert line.next_document(document, 2) is document


class Slow:
    """Sessions that are cut off after ten seconds each, the second before it began."""

    adjusting: Adjusting | None = None
    repeat = False
    is_known = False
    far: str | None = None

    def __init__(self) -> None:
        self.chunks: list[int | None] = []
        self.now_s = 0.0

    def attempt(self, document: Any, receipt: Any, should_stop: Any) -> Any:
        """One session."""
        self.chunks.append(document["copy"].get("chunk_bytes"))
        mbit = (1, None, 5, 1000, 1000)[len(self.chunks) - 1]
        if mbit is None:
            return Attempt(None, CUT)
        for second in range(11):
            yield progress(moved_bytes=second * mbit * MBIT)
            self.now_s += 1.0
        record: Any = {"run_id": "r", "status": "failed", "spec": {"streams": 2}}
        return Attempt(record, CUT)

    def close(self) -> None:
        """Nothing was started."""


def test_each_session_has_chunks_by_the_rate_of_the_one_before() -> None:
    slow = Slow()

    def sleep(seconds: float) -> None:
        slow.now_s += seconds

    repeated = RepeatedSessions(
        slow, RetryPolicy(600.0, retries=4), never_stop, clock=lambda: slow.now_s, sleep=sleep
    )
    assert finished(repeated.run(DOCUMENT, None), []).error is CUT
    assert slow.chunks == [None, 64 << 10, 64 << 10, 256 << 10, None]
