"""Cells: the same from rows in memory and from the store's table, in any order and any parts."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.profiles.cell import bucket_of
from farline.profiles.cells import (
    RATES_MAX,
    TABLE_COLUMNS,
    Cell,
    cells_from_table,
    cells_of,
    merge_cells,
)
from tests.support.draws import draws

calm = draws(50)
"""Other work on the machine makes no test fail."""

Row = dict[str, Any]

ROWS: list[Row] = [
    {"from_site": "A", "rtt_ms": 10.0, "rate_bps": 4e9, "complete": True, "bytes": 500},
    {"from_site": "A", "rtt_ms": 10.001, "rate_bps": 6e9, "complete": True, "bytes": 700},
    {"from_site": "A", "rtt_ms": 10.0, "rate_bps": None, "complete": False, "bytes": None},
    {"from_site": "B", "rtt_ms": None, "rate_bps": 1e9, "complete": True, "bytes": 100},
    {"from_site": None, "rtt_ms": 20.0, "rate_bps": None, "complete": False, "bytes": 3},
]


def columns(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def table_of(rows: list[Row]) -> pyarrow.Table:
    """The store's long form of rows, a row for each site, RTT and bucket; worked out plainly."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        bucket = int(bucket_of(row["rate_bps"])) if row["complete"] else None
        rtt = None if row["rtt_ms"] is None else round(row["rtt_ms"], 2)
        groups.setdefault((row["from_site"], rtt, bucket), []).append(row)
    found = []
    for (site, rtt, bucket), some in groups.items():
        rates = [row["rate_bps"] for row in some]
        whole = bucket is not None
        found.append(
            {
                "from_site": site,
                "rtt_ms": rtt,
                "bucket": bucket,
                "n": len(some),
                "sum_bps": math.fsum(rates) if whole else None,
                "sum_square": math.fsum(rate**2 for rate in rates) if whole else None,
                "low_bps": min(rates) if whole else None,
                "high_bps": max(rates) if whole else None,
                "moved_bytes": sum(row["bytes"] for row in some) if whole else None,
                "busy_s": None,
                "capacity_bps": None,
            }
        )
    return pyarrow.table({name: [row[name] for row in found] for name in found[0]})


def as_values(cell: Cell) -> tuple[Any, ...]:
    """What two ways to make a cell have to agree on exactly."""
    return (dict(cell.keys), cell.rtt_ms, cell.n, cell.failed, dict(cell.histogram))


measured = st.fixed_dictionaries(
    {
        "from_site": st.sampled_from(["A", "B", None]),
        "rtt_ms": st.one_of(st.none(), st.integers(0, 400).map(lambda i: i / 4)),
        "rate_bps": st.floats(1e3, 1e11),
        "complete": st.booleans(),
        "bytes": st.integers(0, 10**12),
    }
)


def test_a_cell_counts_and_adds_what_its_rows_have() -> None:
    failed, first, unknown = cells_of(columns(ROWS), by=["from_site"])
    assert dict(first.keys) == {"from_site": "A"} and first.rtt_ms == 10.0
    assert (first.n, first.failed, first.moved_bytes) == (2, 1, 1200)
    assert first.mean_bps == 5e9 and (first.low_bps, first.high_bps) == (4e9, 6e9)
    assert first.sd_bps == pytest.approx(math.sqrt(2) * 1e9)
    assert first.rates_bps == (4e9, 6e9)
    assert (failed.n, failed.failed) == (0, 1) and math.isnan(failed.mean_bps)
    assert unknown.rtt_ms is None and unknown.n == 1


def test_a_failed_row_is_never_a_rate() -> None:
    rows = {"rate_bps": [2e9, 0.0, 9e9], "rtt_ms": [1.0] * 3, "complete": [True, False, False]}
    (cell,) = cells_of(rows)
    assert (cell.n, cell.failed, cell.mean_bps, cell.high_bps) == (1, 2, 2e9, 2e9)


def test_frames_tables_and_mappings_give_the_same_cells() -> None:
    plain = repr(cells_of(columns(ROWS), by=["from_site"]))
    assert repr(cells_of(pyarrow.table(columns(ROWS)), by=["from_site"])) == plain
    assert repr(cells_of(pandas.DataFrame(columns(ROWS)), by=["from_site"])) == plain


def test_without_a_column_of_outcomes_every_row_is_complete() -> None:
    (cell,) = cells_of({"rate_bps": np.array([1e9, 3e9])})
    assert (cell.n, cell.failed, cell.rtt_ms, cell.mean_bps) == (2, 0, None, 2e9)


def test_a_mean_duration_and_a_capacity_are_known_where_rows_state_them() -> None:
    rows = {"rate_bps": [1e9, 1e9], "duration_s": [10.0, 20.0], "capacity_bps": [1e10, 4e10]}
    (cell,) = cells_of(rows)
    assert cell.mean_duration_s == 15.0 and cell.capacity_bps == 4e10
    (bare,) = cells_of({"rate_bps": [1e9]})
    assert math.isnan(bare.mean_duration_s) and bare.capacity_bps is None


@calm
@given(st.lists(measured, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[Row], random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    one, other = (cells_of(columns(some), by=["from_site"]) for some in (rows, shuffled))
    assert list(map(as_values, one)) == list(map(as_values, other))
    for cell, again in zip(one, other, strict=True):
        assert again.sum_bps == pytest.approx(cell.sum_bps, rel=1e-12)
        assert again.sum_square == pytest.approx(cell.sum_square, rel=1e-12)
        assert again.rates_bps == cell.rates_bps


@calm
@given(st.lists(measured, min_size=1, max_size=30))
def test_the_stores_table_gives_the_same_cells_as_its_rows(rows: list[Row]) -> None:
    mine = cells_of(columns(rows), by=["from_site"])
    theirs = cells_from_table(table_of(rows), by=["from_site"])
    assert list(map(as_values, theirs)) == list(map(as_values, mine))
    for cell, stored in zip(mine, theirs, strict=True):
        assert stored.sum_bps == pytest.approx(cell.sum_bps, rel=1e-12)
        assert stored.moved_bytes == cell.moved_bytes
        assert stored.low_bps == pytest.approx(cell.low_bps, nan_ok=True)
        assert stored.high_bps == pytest.approx(cell.high_bps, nan_ok=True)
        assert stored.rates_bps is None


@calm
@given(st.lists(measured, min_size=2, max_size=30), st.data())
def test_parts_add_up_to_the_whole(rows: list[Row], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(rows) - 1))
    parts = [cells_of(columns(some), by=["from_site"]) for some in (rows[:cut], rows[cut:])]
    whole = cells_of(columns(rows), by=["from_site"])
    merged = merge_cells([*parts[0], *parts[1]])
    assert list(map(as_values, merged)) == list(map(as_values, whole))
    for cell, added in zip(whole, merged, strict=True):
        assert added.sum_bps == pytest.approx(cell.sum_bps, rel=1e-12)
        assert added.rates_bps == cell.rates_bps
        assert added.sd_bps == pytest.approx(cell.sd_bps, rel=1e-9, nan_ok=True)


def test_rows_of_the_table_that_say_the_same_place_add_up() -> None:
    table = table_of(ROWS)
    twice = pyarrow.concat_tables([table, table])
    (once, *_), (both, *_) = (
        [c for c in cells_from_table(some, ["from_site"]) if c.n > 1] for some in (table, twice)
    )
    assert (both.n, both.failed) == (2 * once.n, 2 * once.failed)
    assert both.histogram == {bucket: 2 * n for bucket, n in once.histogram.items()}
    assert both.mean_bps == once.mean_bps


def test_keys_that_are_not_asked_for_are_added_over() -> None:
    rows = {
        "rate_bps": [1e9, 2e9, 3e9],
        "rtt_ms": [5.0, 5.0, 5.0],
        "streams": [1, 4, 4],
        "tool": ["x", "x", "y"],
    }
    cells = cells_of(rows, by=["streams", "tool"])
    assert len(cells) == 3
    one, four = merge_cells(cells, by=["streams"])
    assert dict(one.keys) == {"streams": 1} and one.n == 1
    assert dict(four.keys) == {"streams": 4} and (four.n, four.mean_bps) == (2, 2.5e9)
    with pytest.raises(
        SpecError, match=("by colour: cells have no such key; their keys are streams")
    ):
        merge_cells(cells, by=["colour"])


def test_cells_come_in_the_order_of_keys_and_round_trip_times() -> None:
    rows = {"rate_bps": [1e9] * 4, "rtt_ms": [None, 9.0, 2.0, 2.0], "tool": ["a", "a", "b", "a"]}
    assert [(cell.keys["tool"], cell.rtt_ms) for cell in cells_of(rows, by=["tool"])] == [
        ("a", 2.0),
        ("a", 9.0),
        ("a", None),
        ("b", 2.0),
    ]


def test_many_rates_are_not_kept_one_by_one() -> None:
    (few,) = cells_of({"rate_bps": np.full(RATES_MAX, 1e9)})
    (many,) = cells_of({"rate_bps": np.full(RATES_MAX + 1, 1e9)})
    assert few.rates_bps is not None and len(few.rates_bps) == RATES_MAX
    assert many.rates_bps is None and many.n == RATES_MAX + 1


@calm
@given(st.lists(st.floats(1e9, 1.001e9), min_size=2, max_size=50))
def test_a_deviation_from_sums_is_never_below_zero_and_near_the_exact_one(
    rates: list[float],
) -> None:
    (exact,) = cells_of({"rate_bps": rates})
    (sums,) = cells_from_table(
        pyarrow.table(
            {
                "rtt_ms": pyarrow.array([None], pyarrow.float64()),
                "bucket": [0],
                "n": [len(rates)],
                "sum_bps": [math.fsum(rates)],
                "sum_square": [math.fsum(rate**2 for rate in rates)],
                "low_bps": [min(rates)],
                "high_bps": [max(rates)],
                "moved_bytes": [0],
                "busy_s": [0.0],
                "capacity_bps": pyarrow.array([None], pyarrow.float64()),
            }
        ),
        by=[],
    )
    assert exact.sd_bps == pytest.approx(np.std(rates, ddof=1), abs=1e-6)
    assert sums.sd_bps >= 0.0
    assert sums.sd_bps == pytest.approx(exact.sd_bps, abs=1e-7 * 1e9)


def test_histograms_count_every_complete_row_once() -> None:
    rates = np.random.default_rng(3).lognormal(21, 0.5, 500)
    (cell,) = cells_of({"rate_bps": rates})
    expected = Counter(math.floor(64 * math.log2(rate)) for rate in rates)
    assert cell.histogram == expected


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"rate_bps": [1e9, 0.0]}, "row 1: rate_bps is 0; a complete measurement has a rate"),
        ({"rate_bps": [1e9, None]}, "row 1: rate_bps is nan"),
        ({"rate_bps": [math.inf]}, "row 0: rate_bps is inf"),
        ({"rate_bps": [1e9], "rtt_ms": [-0.5]}, "row 0: rtt_ms is -0.5; it cannot be below 0"),
        ({"rate_bps": [1e9], "complete": [None]}, "row 0: complete is None; allowed: true"),
        ({"rate_bps": ["fast"]}, "column rate_bps: contains a value that is not a number"),
        ({"rtt_ms": [1.0]}, "column rate_bps: no such column; the columns are rtt_ms"),
        ([1.0, 2.0], "rows: list has no columns; use a pandas DataFrame"),
    ],
)
def test_rows_that_cannot_be_are_refused_with_their_place(rows: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        cells_of(rows)


def test_a_key_or_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(SpecError, match="column colour: no such column; the columns are rate_bps"):
        cells_of({"rate_bps": [1e9]}, by=["colour"])
    for name in TABLE_COLUMNS:
        with pytest.raises(SpecError, match=f"column {name}: no such column"):
            cells_from_table(table_of(ROWS).drop_columns([name]), by=["from_site"])


def test_no_rows_give_no_cells() -> None:
    assert cells_of({"rate_bps": [], "rtt_ms": [], "tool": []}, by=["tool"]) == []
    empty = table_of(ROWS).slice(0, 0)
    assert cells_from_table(empty, by=["from_site"]) == []
