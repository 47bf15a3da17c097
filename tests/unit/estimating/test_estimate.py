"""Answers from the rows of a store."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import jsonschema
import pytest

from farline.estimating import Question, TransferEstimate, estimate_transfer
from farline.estimating.document import document_of
from farline.estimating.words import basis_words, headline
from farline.store.paths import PastTransfer
from tests.unit.estimating.rows import ENDS, GB, NOW_S, history, row

SCHEMA = Path(__file__).parents[3] / "schemas" / "transfer-estimate.schema.json"
ASKED = Question(10 * GB, 100, NOW_S)


def answer(rows: list[PastTransfer], question: Question = ASKED) -> TransferEstimate:
    return estimate_transfer(question, rows, ENDS)


def half_width(one: TransferEstimate) -> float:
    return one.interval(0.8).duration_high_s / one.duration_s


def test_a_path_with_a_history_is_estimated_from_it() -> None:
    one = answer(history(20))
    assert (one.basis, one.transfers, one.streams) == ("own-path", 20, 4)
    assert one.rate_bps == pytest.approx(2e9, rel=0.1)
    assert half_width(one) < 1.4
    assert basis_words(one) == "20 transfers over this path, the newest 1 h ago"


def test_nothing_known_is_said_and_shown_by_the_width() -> None:
    one = answer([])
    assert (one.basis, one.transfers, one.newest_s) == ("model", 0, None)
    assert 3.0 < half_width(one) < 3.2
    assert "so the interval is wide" in basis_words(one)


def test_other_paths_move_the_middle_and_narrow_nothing() -> None:
    fast = history(20, 8e9, to_host="other", path="near > other")
    alone, like = answer([]), answer(fast)
    assert (like.basis, like.transfers) == ("like-paths", 20)
    assert like.rate_bps > 1.3 * alone.rate_bps
    assert half_width(like) == pytest.approx(half_width(alone))


def test_measurements_between_memories_stand_in_until_a_copy_has_gone() -> None:
    probes = history(5, 4e9, modality="T", kind="probe", files=None)
    one = answer(probes)
    assert (one.basis, one.transfers) == ("probes", 5)
    assert answer([*probes, row(60, 1e9)]).basis == "own-path"


def test_what_was_capped_resumed_or_of_another_path_says_nothing() -> None:
    rows = [
        row(60, 1e6, capped=True),
        row(50, 1e6, resumed=True),
        row(40, 1e6, from_host="far", to_host="near", path="far > near", capped=True),
    ]
    assert answer(rows).basis == "model"


def test_what_ended_later_than_the_question_is_not_looked_at() -> None:
    assert answer([*history(5), row(-60, 1e5)]).transfers == 5


def test_a_kernel_of_another_series_widens_and_a_security_fix_does_not() -> None:
    rows = history(20)
    same = answer(rows, replace(ASKED, own_kernel="6.1.0-42-amd64"))
    changed = answer(rows, replace(ASKED, own_kernel="6.12.3-amd64"))
    assert half_width(same) == half_width(answer(rows))
    assert half_width(changed) > 1.3 * half_width(same)


def test_a_round_trip_that_jitters_makes_no_new_kind() -> None:
    rows = [replace(one, rtt_ms=40.0 + at % 5) for at, one in enumerate(history(20))]
    assert not answer(rows).is_new_kind
    rerouted = [*rows, row(10, 2e9, rtt_ms=160.0)]
    assert answer(rerouted[:-1]).prediction.workload.rtt_s == pytest.approx(0.042)


def test_many_small_files_take_longer_than_their_bytes() -> None:
    rows = history(20)
    assert answer(rows, replace(ASKED, files=1_000_000)).duration_s > 3 * answer(rows).duration_s


def test_a_deadline_with_time_to_spare_is_kept_and_has_a_latest_start() -> None:
    one = answer(history(20), replace(ASKED, deadline_s=NOW_S + 3600))
    assert one.meets_deadline
    assert one.latest_start_s == NOW_S + 3600 - one.sure_duration_s
    assert one.deadline_confidence == 0.99
    reserved = one.reservation
    assert reserved is not None
    assert reserved.start_s == NOW_S
    assert reserved.end_s == pytest.approx(NOW_S + one.sure_duration_s, abs=1)
    # What is reserved carries the bytes in that time, headers included.
    assert reserved.rate_bps * one.sure_duration_s > 8 * ASKED.total_bytes * 1.06


def test_a_deadline_that_is_too_near_has_no_reservation() -> None:
    one = answer(history(20), replace(ASKED, deadline_s=NOW_S + 30))
    assert (one.meets_deadline, one.reservation) == (False, None)
    assert one.deadline_confidence is not None
    assert one.deadline_confidence < 0.2


def test_the_confidence_in_a_deadline_agrees_with_what_takes_that_long() -> None:
    rows = history(20)
    for confidence in (0.6, 0.8, 0.9, 0.95):
        sure_s = answer(rows, replace(ASKED, confidence=confidence)).sure_duration_s
        one = answer(rows, replace(ASKED, deadline_s=NOW_S + sure_s))
        assert one.deadline_confidence == pytest.approx(confidence, abs=0.02)


def test_more_confidence_takes_more_time() -> None:
    rows = history(20)
    spans = [
        answer(rows, replace(ASKED, confidence=one)).sure_duration_s
        for one in (0.5, 0.7, 0.9, 0.99)
    ]
    assert spans == sorted(spans)
    assert spans[0] == pytest.approx(answer(rows).duration_s)
    assert answer(rows).sure_duration_s == answer(rows).interval(0.8).duration_high_s


@pytest.mark.parametrize("deadline_s", [None, NOW_S + 20, NOW_S + 7200])
def test_the_document_is_as_its_schema_says(deadline_s: float | None) -> None:
    one = answer(history(20), replace(ASKED, deadline_s=deadline_s))
    document = json.loads(json.dumps(document_of(one, "data/", "far:/archive", UTC)))
    jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert document["estimated_at"] == "2027-01-15T08:00:00+00:00"
    assert document["deadline"] == (None if deadline_s is None else document["deadline"])
    assert (document["reservation"] is None) == (deadline_s == NOW_S + 20)


def test_the_headline_reads_as_people_say_it() -> None:
    words = headline(answer(history(20)))
    assert words.startswith("40")
    assert "8 in 10 such transfers take between" in words
