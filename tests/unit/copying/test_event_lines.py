"""Events on their way from one host to another."""

from __future__ import annotations

import json

import pytest

from farline.copying.event_lines import event_of, line_of
from farline.errors import BusyError
from farline.tools.events import (
    Event,
    FileSettled,
    Notice,
    NoticeKind,
    RetryScheduled,
    ServerKey,
    Stage,
    Stopping,
)
from tests.support.copies import progress

LINE = {"path": "d/a", "kind": "file", "status": "copied", "bytes": 3}


@pytest.mark.parametrize(
    "event",
    [
        progress(moved_bytes=5),
        FileSettled(LINE),  # type: ignore[arg-type]
        Stage("HANDSHAKE"),
        ServerKey("sha256-x"),
        *(Notice(kind, "a line") for kind in NoticeKind),
    ],
    ids=repr,
)
def test_an_event_comes_back_as_it_was(event: Event) -> None:
    line = line_of(event)
    assert line is not None
    name, data = json.loads(json.dumps(line))
    back = event_of(name, data)
    assert back == event and type(back) is type(event)


def test_an_error_that_is_not_the_last_word_says_when_it_goes_on() -> None:
    line = line_of(RetryScheduled(BusyError("full", retry_after_s=7.0), 8.0))
    assert line is not None
    back = event_of(*line)
    assert isinstance(back, RetryScheduled)
    assert (back.wait_s, back.error.retry_after_s) == (8.0, 7.0)
    assert isinstance(back.error, BusyError)
    assert event_of("error", {"kind": "busy", "message": "full"}) is None


@pytest.mark.parametrize(
    ("kind", "about"),
    [
        ("cipher", NoticeKind.CIPHER),
        ("detail", NoticeKind.CHOICE),
        ("notice", NoticeKind.OTHER),
        ("what comes later", NoticeKind.OTHER),
    ],
)
def test_notices_of_other_versions_have_a_kind(kind: str, about: NoticeKind) -> None:
    assert event_of("notice", {"kind": kind, "text": "x"}) == Notice(about, "x")
    later = {"kind": kind, "about": "what comes later", "text": "x"}
    assert event_of("notice", later) == Notice(about, "x")


def test_what_concerns_this_host_alone_is_not_told() -> None:
    assert line_of(Stopping()) is None
    assert event_of("start", {"schema": 1}) is None
