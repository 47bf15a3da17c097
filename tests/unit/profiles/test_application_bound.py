"""Raw and application bound from pairs of runs, and how they are found again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from farline.profiles.application_bound import (
    bound_of,
    bounds_of,
    newest_bound,
    pairs_of,
    ratio,
    raw_bps,
    received_bps,
)
from tests.support.records import make_record, make_spec


def run(number: int, mode: str, bps: float, **more: Any) -> dict[str, Any]:
    """A TCP run in one receive mode; its steady rate is 2 % above the total."""
    status = more.pop("status", "complete")
    spec = make_spec(tcp={"receive_mode": mode}, **more)
    return make_record(number, spec, bps=bps / 1.02, status=status)


def row(record: dict[str, Any], **labels: Any) -> dict[str, Any]:
    return {"labels": json.dumps(labels), "record": json.dumps(record)}


def test_medians_and_the_ratio_of_pairs() -> None:
    runs = [
        (1, run(0, "read", 576e6)), (1, run(1, "copy", 490e6)),
        (2, run(2, "copy", 250e6)), (2, run(3, "read", 300e6)),
        (3, run(4, "read", 580e6)), (3, run(5, "copy", 500e6)),
    ]  # fmt: skip
    pairs = pairs_of(runs)
    bound = bound_of([pair.application for pair in pairs])
    assert raw_bps(pairs) == pytest.approx(576e6)
    assert bound.application_bps == pytest.approx(490e6)
    assert ratio(pairs) == pytest.approx(490 / 576)
    assert bound.rate_bps == pytest.approx(0.95 * 490e6)


def test_pairs_that_are_not_whole_do_not_count() -> None:
    runs = [
        (1, run(0, "read", 1e9)), (1, run(1, "copy", 9e8)),
        (2, run(2, "copy", 1e6)),
        (3, run(3, "read", 1e6)), (3, run(4, "copy", 1e6, status="partial")),
    ]  # fmt: skip
    assert [pair.raw_bps for pair in pairs_of(runs)] == [pytest.approx(1e9)]
    assert pairs_of([]) == []


def test_the_rate_is_of_one_stream() -> None:
    bound = bound_of([run(0, "copy", 800e6, streams=4)])
    assert bound.streams == 4 and bound.rate_bps == pytest.approx(190e6)


@pytest.mark.parametrize(("rate_bps", "hidden"), [(0, False), (10**9, True), (2 * 10**9, False)])
def test_a_stated_rate_that_came_whole_hides_the_bound(rate_bps: int, hidden: bool) -> None:
    assert bound_of([run(0, "copy", 980e6, rate_bps=rate_bps)]).only_as_asked is hidden


def test_without_a_steady_part_the_whole_run_counts() -> None:
    record = run(0, "copy", 1e9)
    record["summary"]["forward"]["steady_bps"] = None
    assert received_bps(record) == pytest.approx(1e9 / 1.02)
    assert received_bps({**record, "summary": None}) == 0.0


def test_runs_are_found_again_by_their_label_and_in_their_direction() -> None:
    rows = [
        row(run(9, "copy", 5e8), app_perf="new", pair=1),
        row(run(3, "copy", 4e8), app_perf="old", pair=1),
        row(run(4, "copy", 3e8), app_perf="old", pair=2),
        row(run(5, "copy", 2e8)),
        row(run(6, "read", 1e8), app_perf="old", pair=3),
        row(run(7, "copy", 1e8, status="partial"), app_perf="old", pair=3),
    ]
    bounds = bounds_of(rows)
    assert [bound.application_bps for bound in bounds] == [
        pytest.approx(3.5e8), pytest.approx(5e8),
    ]  # fmt: skip
    assert newest_bound(bounds, "forward") == bounds[1]
    assert newest_bound(bounds, "reverse") is None and newest_bound([], "forward") is None
    assert bounds_of([{"labels": None, "record": json.dumps(run(1, "copy", 1.0))}]) == []
