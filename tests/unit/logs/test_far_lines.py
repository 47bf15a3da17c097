"""Log lines of another host's farline, among what else comes over ssh's standard error."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.logs import far_lines, stream, words_for_far_end
from farline.logs.far_lines import FarLines
from farline.logs.levels import Levels, parse_levels

LINE = {
    "time": "2026-01-31T12:00:00.000000Z", "level": "debug", "target": "mover",
    "message": "copy begins", "session": "0a", "fields": {"files": 3},
}  # fmt: skip
TEXT = json.dumps(LINE).encode() + b"\n"
NOISE = b'Warning: new key\n{"time": no}\n{"time": "x", "level": "loud"}\n{}\n'


class Written:
    """Takes the place of the extension."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str, dict[str, Any]]] = []

    def write_log(self, level: str, room: str, message: str, fields: str) -> None:
        self.lines.append((level, room, message, json.loads(fields)))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    written = Written()
    monkeypatch.setattr(far_lines, "_native", written)
    return written


def test_log_lines_go_to_the_log_and_all_else_is_left(written: Written) -> None:
    lines = FarLines("dtn")
    assert lines.feed(NOISE + TEXT + b"bye") == NOISE + b"bye"
    ((level, room, message, fields),) = written.lines
    assert (level, room, message) == ("debug", "mover", "copy begins")
    assert fields == {"session": "0a", "host": "dtn", "host_time": LINE["time"], "files": 3}
    assert lines.feed(b"") == b""


def test_a_question_without_an_end_is_there_at_once(written: Written) -> None:
    assert FarLines("dtn").feed(b"password: ") == b"password: "


def test_a_line_that_never_ends_is_no_log_line(written: Written) -> None:
    lines = FarLines("dtn")
    endless = b'{"time":' + b"9" * far_lines.MAX_LINE_BYTES
    assert lines.feed(endless) == endless
    assert lines.feed(b'{"time":') == b"" and lines.feed(b"") == b'{"time":'


@given(st.lists(st.integers(0, len(NOISE + 2 * TEXT)), max_size=6))
def test_it_does_not_matter_where_what_comes_is_cut(cuts: list[int]) -> None:
    whole, written = TEXT + NOISE + TEXT, Written()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(far_lines, "_native", written)
        lines, left = FarLines("dtn"), b""
        ends = [0, *sorted(cuts), len(whole)]
        for start, end in pairwise(ends):
            if start < end:
                left += lines.feed(whole[start:end])
        left += lines.feed(b"")
    assert left == NOISE and len(written.lines) == 2


def test_the_far_end_is_asked_for_the_levels_of_this_one() -> None:
    try:
        stream.start(parse_levels("info,mover=trace", "here"))
        words = words_for_far_end()
        assert words == ("--log-level", "info,mover=trace", "--log-format", "json")
        assert parse_levels(words[1], "there") == Levels("info", {"mover": "trace"})
    finally:
        stream.stop()
    assert words_for_far_end() == ()
