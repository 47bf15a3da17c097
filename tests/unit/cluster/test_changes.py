"""What a user can rely on when a copy over several nodes is changed while it runs."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from farline.cluster.changes import ANSWER_S, Changes
from farline.copying.adjusting import request_of
from farline.copying.order import read_change

DOCUMENT: dict[str, Any] = {"streams": 2, "copy": {"total_rate_bps": 800, "cipher": "none"}}


def changes(now: list[float] | None = None) -> Changes:
    """Of a copy by two pairs, both at work."""
    clock = now or [0.0]
    made = Changes("RUN", DOCUMENT, 2, lambda: clock[0])
    for lane in (0, 1):
        spec = made.begun(lane, f"pair {lane}", DOCUMENT)
        assert spec == {"streams": 2, "copy": {"total_rate_bps": 400, "cipher": "none"}}
    return made


def answer(knob: str, before: int, after: int, refused: str | None = None) -> Any:
    """What a session says of a change."""
    told = {"at_us": 1, "knob": knob, "before": before, "after": after}
    return told if refused is None else {**told, "refused": refused}


def test_every_pair_is_told_once_and_the_change_is_in_force_when_all_have_it() -> None:
    made = changes()
    made.adjust(request_of(streams=6, rate_bps=200))
    for lane in (0, 1):
        assert made.to_send(lane) == {"streams": 6, "total_rate_bps": 100}
        assert made.to_send(lane) is None
    for lane in (0, 1):
        made.note(lane, answer("streams", 2, 6))
    (streams,) = made.told()
    assert (streams["knob"], streams["before"], streams["after"]) == ("streams", 2, 6)
    made.note(0, answer("total-rate", 400, 100))
    assert made.told() == []
    made.note(1, answer("total-rate", 400, 100))
    (rate,) = made.told()
    assert (rate["before"], rate["after"]) == (800, 200)
    assert made.all_told == [streams, rate]


def test_a_part_that_begins_later_begins_with_the_change() -> None:
    made = changes()
    made.adjust(request_of(streams=6, concurrency=3, rate_bps=0))
    made.ended(0)
    spec = made.begun(0, "pair 0", DOCUMENT)
    assert spec == {"streams": 6, "copy": {"cipher": "none", "concurrency": 3}}
    assert made.to_send(0) is None
    assert made.to_send(1) == {"streams": 6, "concurrency": 3, "total_rate_bps": 0}
    # A part that ends before it has changed is no refusal: the next one begins with it.
    made.note(1, answer("streams", 2, 6, "the copy is ending"))
    made.ended(1)
    told = made.told()
    assert [one["knob"] for one in told] == ["streams", "concurrency", "total-rate"]
    assert not any("refused" in one for one in told)
    assert made.begun(1, "pair 1", DOCUMENT)["streams"] == 6


def test_a_pair_that_refuses_is_named_and_goes_on_as_before() -> None:
    made = changes()
    made.adjust(request_of(streams=9))
    made.note(0, answer("streams", 2, 9))
    made.note(1, answer("streams", 2, 9, "the server allows up to 4"))
    (told,) = made.told()
    assert told["refused"] == ("pair 1: the server allows up to 4; the other pairs have changed")
    made.ended(1)
    assert made.begun(1, "pair 1", DOCUMENT)["streams"] == 2
    assert made.to_send(1) is None
    made.ended(0)
    assert made.begun(0, "pair 0", DOCUMENT)["streams"] == 9
    # The next wish for it is tried there again.
    made.adjust(request_of(streams=3))
    assert made.to_send(1) == {"streams": 3}


def test_what_all_refuse_changes_nothing_that_begins_later() -> None:
    made = changes()
    made.adjust(request_of(streams=9))
    for lane in (0, 1):
        made.note(lane, answer("streams", 2, 9, "no"))
    (told,) = made.told()
    assert told["refused"] == "pair 0: no; pair 1: no"
    made.ended(0)
    assert made.begun(0, "pair 0", DOCUMENT)["streams"] == 2


def test_a_pair_that_says_nothing_is_named_after_a_while() -> None:
    now = [0.0]
    made = changes(now)
    made.adjust(request_of(streams=9))
    made.note(0, answer("streams", 2, 9))
    assert made.told() == []
    now[0] = ANSWER_S + 1
    (told,) = made.told()
    assert told["refused"].startswith("pair 1: no answer within 10 s")  # type: ignore[union-attr]


def test_a_rate_is_shared_out_anew_when_pairs_come_or_go() -> None:
    made = changes()
    made.carriers(1)
    assert made.to_send(0) == {"total_rate_bps": 800}
    made.carriers(4)
    assert made.to_send(0) == {"total_rate_bps": 200}
    assert made.told() == [], "nobody has asked for that"


def test_a_change_while_no_part_is_under_way_is_in_force_at_once() -> None:
    made = Changes("RUN", {"copy": {}}, 2)
    made.adjust(request_of(streams=4))
    (told,) = made.told()
    assert told["after"] == 4
    assert "before" not in told
    assert made.begun(0, "pair 0", {"copy": {}})["streams"] == 4


@pytest.mark.parametrize(
    "line",
    [
        '{"schema": 1, "target": {}}',
        '{"adjust": {}}',
        '{"adjust": {"streams": 0}}',
        '{"adjust": 3}',
    ],
)
def test_only_a_change_is_read_as_one(line: str) -> None:
    assert read_change(line) is None
    asked = cast("dict[str, Any]", request_of(streams=3, rate_bps=0))
    assert read_change(json.dumps({"adjust": asked})) == asked
