"""What the end of a copy says of the estimate that its path's history gave it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from farline.cli.copy.end import summary_lines
from farline.copying.event_lines import event_of, line_of
from farline.copying.look_back import look_back
from farline.store import RunBundle, Store
from farline.store.paths import path_history
from farline.tools.events import EstimateChecked
from tests.support.kept_copies import make_copy_record, make_tally
from tests.support.records import make_samples, make_summary

BEGAN = datetime(2026, 11, 20, tzinfo=UTC)


def copy_record(number: int, seconds: float = 10.0, **report: Any) -> Any:
    """A copy of 1 GB in 10 files that began `number` hours after the first."""
    record = make_copy_record(number, **{"copied": make_tally(10, 10**9), **report})
    summary = {**make_summary(8e9 / seconds, seconds), "min_rtt_us": 20_000}
    started = (BEGAN + timedelta(hours=number)).isoformat()
    return {**record, "summary": summary, "started_at": started, "run_s": seconds}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    for number in range(1, 9):
        store.append(RunBundle(copy_record(number), make_samples(2)))
    return store


def test_a_copy_like_those_before_it_was_foreseen(store: Store) -> None:
    found = look_back(copy_record(20, 11.0), store.path)
    assert found is not None
    assert found.checked.took_s == pytest.approx(11.0)
    assert found.checked.low_s < 10.0 < found.checked.high_s
    assert found.checked.estimated_s == pytest.approx(10.0, rel=0.2)


def test_a_slow_copy_has_a_score_that_says_so_and_is_kept_for_later(store: Store) -> None:
    record = copy_record(20, 60.0)
    found = look_back(record, store.path)
    assert found is not None
    assert found.checked.took_s > found.checked.high_s
    assert found.label["score"] > 2
    store.append(RunBundle(record, make_samples(2), labels={"estimate": found.label}))
    kept = path_history(store)[-1].estimate
    assert kept is not None
    assert kept["score"] == found.label["score"]


def test_a_kernel_that_changed_meanwhile_makes_the_estimate_wider(store: Store) -> None:
    record = copy_record(20, 10.0)
    usual = look_back(record, store.path)
    record["client"]["host"]["kernel"] = "7.0.1"
    wide = look_back(record, store.path)
    assert usual is not None
    assert wide is not None
    assert wide.checked.high_s > 1.2 * usual.checked.high_s


def test_the_end_of_a_copy_has_it_in_one_row_and_a_stream_as_an_event() -> None:
    checked = EstimateChecked(6720.0, 5400.0, 8400.0, 6000.0)
    shown = summary_lines(copy_record(1), False, {}, checked)
    at = next(number for number, line in enumerate(shown) if line.startswith("estimate"))
    assert " ".join(" ".join(shown[at : at + 2]).split()) == (
        "estimate 1 h 52 min from earlier copies, 8 in 10 take 1 h 30 min to 2 h 20 min; "
        "it took 1 h 40 min"
    )
    assert not any(line.startswith("estimate") for line in summary_lines(copy_record(1), False, {}))
    line = line_of(checked)
    assert line is not None
    assert event_of(*line) == checked


def test_copies_that_came_later_do_not_help(store: Store) -> None:
    assert look_back(copy_record(0, 10.0), store.path) is None


@pytest.mark.parametrize(
    "record",
    [
        copy_record(20, resumed_bytes=5),
        {**copy_record(20), "status": "failed"},
        {**copy_record(20), "summary": None},
    ],
    ids=["resumed", "failed", "nothing moved"],
)
def test_it_is_quiet_where_an_estimate_says_nothing(store: Store, record: Any) -> None:
    assert look_back(record, store.path) is None


def test_it_is_quiet_where_nothing_was_copied_before(tmp_path: Path) -> None:
    assert look_back(copy_record(1), tmp_path / "none") is None
