"""What people are told of a job's notices without `--verbose`, and what only with it."""

from __future__ import annotations

import pytest

from farline.cli.event_text import event_text
from farline.tools.events import Notice, NoticeKind


@pytest.mark.parametrize("kind", NoticeKind)
def test_only_what_went_as_usual_is_left_to_verbose(kind: NoticeKind) -> None:
    usual = kind in (NoticeKind.CIPHER, NoticeKind.CHOICE)
    assert event_text(Notice(kind, "x"), verbose=True) == "farline: x"
    assert event_text(Notice(kind, "x"), verbose=False) == (None if usual else "farline: x")
