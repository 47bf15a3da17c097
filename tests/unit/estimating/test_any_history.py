"""What an estimate keeps whatever a history says: logs of others may say anything."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farline.cli.estimate_text import lines
from farline.estimating import Question, TransferEstimate, estimate_transfer
from farline.estimating.document import document_of
from farline.store.paths import PastTransfer
from tests.unit.estimating.rows import ENDS, GB, NOW_S, history, row

ASKED = Question(10 * GB, 100, NOW_S)
NAN, INF = math.nan, math.inf


def answer(rows: Sequence[PastTransfer], question: Question = ASKED) -> TransferEstimate:
    return estimate_transfer(question, rows, ENDS)


def half_width(one: TransferEstimate) -> float:
    return one.interval(0.8).duration_high_s / one.duration_s


def maybe(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | values


ODD = st.sampled_from([NAN, INF, -INF, -1.0, 0.0, 1e-300, 1e300])
COUNTS = maybe(st.integers(0, 2**40))
ROWS = st.builds(
    lambda from_host, to_host, **more: PastTransfer(
        path=f"{from_host} > {to_host}", from_host=from_host, to_host=to_host, **more
    ),
    kind=st.sampled_from(["copy", "probe", "ingested"]),
    tool=st.just("farline"),
    source=st.just("log"),
    from_host=st.sampled_from(["near", "elsewhere"]),
    to_host=st.sampled_from(["far", "elsewhere"]),
    started_s=maybe(st.floats(0, 2 * NOW_S)),
    ended_s=maybe(st.floats(-1e9, 2 * NOW_S)),
    duration_s=maybe(st.floats(1e-9, 1e9) | ODD),
    rate_bps=st.floats(1e-3, 1e18) | ODD,
    bytes=maybe(st.integers(0, 2**63 - 1)),
    files=COUNTS,
    concurrency=maybe(st.integers(1, 1024)),
    streams=maybe(st.integers(1, 1024)),
    parallelism=maybe(st.integers(1, 1024)),
    pipelining=COUNTS,
    rtt_ms=maybe(st.floats(0, 1e6) | ODD),
    capacity_bps=maybe(st.floats(1, 1e15) | ODD),
    window_bytes=COUNTS,
    modality=st.sampled_from("TE"),
    from_kernel=maybe(st.sampled_from(["6.1.0", "?"])),
    capped=st.booleans(),
    resumed=st.booleans(),
    estimate=maybe(
        st.fixed_dictionaries(
            {"score": st.floats(0, 10) | ODD | st.just("x"), "residual": st.floats(-5, 5) | ODD}
        )
    ),
)
QUESTIONS = st.builds(
    Question,
    total_bytes=st.integers(0, 2**63 - 1),
    files=st.integers(1, 10**12),
    now_s=st.just(NOW_S),
    start_s=maybe(st.floats(NOW_S, NOW_S + 3e7)),
    deadline_s=maybe(st.floats(NOW_S + 1, NOW_S + 3e7)),
    confidence=st.floats(0.5, 0.99),
    streams=maybe(st.integers(1, 1024)),
    concurrency=maybe(st.integers(1, 1024)),
    rtt_s=maybe(st.floats(0, 10)),
    link_bps=maybe(st.floats(1, 1e13)),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(ROWS, max_size=30), QUESTIONS)
def test_any_history_gives_an_interval_around_its_own_centre(
    rows: list[PastTransfer], question: Question
) -> None:
    one = answer(rows, question)
    assert 0 < one.duration_s < INF
    for interval in one.intervals:
        assert 0 < interval.duration_low_s <= one.duration_s * (1 + 1e-9)
        assert one.duration_s <= interval.duration_high_s * (1 + 1e-9) < INF
    assert one == answer(rows, question)
    document = json.dumps(document_of(one, "a", "b", UTC), allow_nan=False)
    assert document
    assert [*lines(one, "a", "b", UTC)]


AMOUNTS = st.integers(1, 10**16)


@settings(max_examples=25, deadline=None)
@given(AMOUNTS, AMOUNTS, st.integers(1, 10**6), st.integers(0, 12))
def test_more_bytes_in_as_many_files_never_take_less_time(
    one: int, other: int, files: int, known: int
) -> None:
    """Of a path that has had one kind of data; larger files are faster, but not that much."""
    few, many = sorted((one, other))
    rows = history(known)
    asked = [replace(ASKED, total_bytes=size, files=files) for size in (few, many)]
    shorter, longer = (answer(rows, question).duration_s for question in asked)
    assert shorter <= longer * (1 + 1e-9)


@settings(max_examples=15, deadline=None)
@given(st.integers(3, 40), st.floats(0.02, 0.5))
def test_a_path_never_seen_is_wider_than_one_with_a_history(count: int, swing: float) -> None:
    rows = [
        replace(one, duration_s=(one.duration_s or 1.0) * (1 + swing) ** (-1) ** at)
        for at, one in enumerate(history(count))
    ]
    elsewhere = replace(ASKED, link_bps=None)
    unknown = estimate_transfer(elsewhere, rows, type(ENDS).between("near", "another"))
    assert half_width(answer(rows)) < half_width(unknown)


@pytest.mark.parametrize(
    "estimate",
    [
        {"score": NAN, "residual": 0.1},
        {"score": 1.0, "residual": NAN},
        {"score": INF, "residual": 0.1},
        {"score": -3.0, "residual": 0.1},
        {"score": True, "residual": 0.1},
        {"score": "1", "residual": 0.1},
    ],
)
def test_a_score_that_is_none_is_found_anew(estimate: dict[str, object]) -> None:
    rows = history(20)
    labelled = [replace(one, estimate=estimate) for one in rows]
    assert answer(labelled).intervals == answer(rows).intervals


@pytest.mark.parametrize(
    "odd",
    [
        {"rate_bps": NAN, "duration_s": None},
        {"rate_bps": INF, "duration_s": None},
        {"duration_s": 1e-12},
        {"bytes": 0},
        {"ended_s": NAN},
    ],
)
def test_a_transfer_that_cannot_be_true_is_none(odd: dict[str, object]) -> None:
    rows = history(20)
    more = replace(row(1800, 2e9), **odd)  # type: ignore[arg-type]
    assert answer([*rows, more]).duration_s == answer(rows).duration_s


def test_a_rate_far_above_the_link_is_a_mistake_in_units() -> None:
    rows = history(20)
    one = answer([*rows[:-3], *(row(3600.0 * at, 2e15) for at in (3, 2, 1))])
    assert one.duration_s == pytest.approx(answer(rows).duration_s, rel=0.1)
    assert half_width(one) < 1.4


def test_what_a_path_has_done_it_can_do_whatever_its_interfaces_state() -> None:
    """Virtual interfaces state any speed: a path that does 2 Gbit/s has no link of 1."""
    one = answer(history(20, capacity_bps=1e9))
    assert one.rate_bps == pytest.approx(2e9, rel=0.1)


@pytest.mark.parametrize("stalled_bps", [2e7, 2e3])
def test_one_transfer_that_stalled_moves_the_middle_little(stalled_bps: float) -> None:
    rows = history(40)
    # An hour before the newest ten: its load is over.
    one = answer([*rows[:30], row(3600.0 * 10.5, stalled_bps), *rows[30:]])
    assert one.duration_s == pytest.approx(answer(rows).duration_s, rel=0.15)
    assert half_width(one) < 1.6


def test_a_transfer_that_is_told_a_hundred_times_makes_nobody_sure() -> None:
    rows = [*history(3), *[row(3600, 2e9)] * 400]
    assert half_width(answer(rows)) > 1.03


@pytest.mark.parametrize("shift_s", [-10 * 365 * 86_400.0, -31 * 86_400.0])
def test_a_path_that_was_idle_for_long_is_wider(shift_s: float) -> None:
    rows = history(30)
    old = [replace(one, ended_s=(one.ended_s or 0.0) + shift_s) for one in rows]
    assert half_width(answer(old)) > 1.25 * half_width(answer(rows))


def test_times_are_seconds_since_1970_wherever_the_log_was_written() -> None:
    """What ends after the question is left out: clocks that are ahead teach nothing yet."""
    ahead = [row(-3600.0 * at, 1e6) for at in range(1, 5)]
    assert answer([*history(10), *ahead]).transfers == 10
