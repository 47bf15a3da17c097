"""The parts of an explanation: rows, fits, drift, what to measure."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.findings.bound_fit import fit
from farline.findings.bound_terms import Term, table_of
from farline.findings.drift import drift
from farline.findings.infrastructure import explain
from farline.findings.next_measurement import repeats_wanted
from farline.findings.pair_rows import PairRow, measured_pairs, pooled_cv
from farline.profiles.cells import Cell
from farline.spec.infrastructure import Connection, FileSystem, Infrastructure, Site
from tests.support import infrastructures as made
from tests.support.infrastructures import cell_of

KEYS: dict[str, object] = {"from_site": "a", "to_site": "b", "modality": "T"}


def test_cells_of_one_path_and_nearly_one_rtt_become_one_row() -> None:
    cells = [cell_of(KEYS, 10.0, [1e9, 2e9]), cell_of(KEYS, 10.3, [3e9]), cell_of(KEYS, 50, [1e9])]
    near, far = measured_pairs(cells).rows
    assert (near.n, far.rtt_ms) == (3, 50)
    assert near.mean_bps == pytest.approx(2e9)
    assert near.rtt_ms == pytest.approx(10.1)
    assert near.cv == pytest.approx(0.5)


@given(st.lists(st.floats(1e6, 1e11), min_size=2, max_size=20), st.integers(1, 19))
def test_a_row_is_the_same_from_whole_cells_and_from_parts(rates: list[float], cut: int) -> None:
    cut = min(cut, len(rates) - 1)
    (whole,) = measured_pairs([cell_of(KEYS, 10, rates)]).rows
    parts = [cell_of(KEYS, 10, rates[:cut]), cell_of(KEYS, 10, rates[cut:])]
    (summed,) = measured_pairs(parts).rows
    assert summed.n == whole.n
    assert summed.mean_bps == pytest.approx(whole.mean_bps)
    assert summed.cv == pytest.approx(whole.cv, abs=1e-6)


def test_failed_measurements_are_counted_and_are_no_rates() -> None:
    failed = Cell(KEYS, 10.0, 0, 0.0, 0.0, 0.0, 0.0, failed=3)
    measured = measured_pairs([failed, cell_of(KEYS, 10, [1e9])])
    assert (len(measured.rows), measured.n, measured.failed) == (1, 1, 3)


def test_a_modality_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SpecError, match="'X'"):
        measured_pairs([cell_of({**KEYS, "modality": "X"}, 10, [1e9])])


def test_own_capacity_goes_before_that_of_the_connection_and_what_is_asked_for_before_both() -> (
    None
):
    stated = Infrastructure("i", (Site("a"), Site("b")), (Connection(("b", "a"), 7.0, 2e9),), 3e9)
    own = cell_of(KEYS, 10, [1e9], capacity_bps=1e9)
    bare = cell_of({**KEYS, "modality": "E"}, None, [1e9])
    elsewhere = cell_of({**KEYS, "to_site": "c"}, 10, [1e9])
    asked = measured_pairs([own, bare, elsewhere], stated, 4e9).rows
    assert {row.capacity_bps for row in asked} == {4e9}
    rows = measured_pairs([own, bare, elsewhere], stated).rows
    by_key = {(row.receiver, row.modality): row for row in rows}
    assert by_key["b", "T"].capacity_bps == 1e9
    assert (by_key["b", "E"].capacity_bps, by_key["b", "E"].rtt_ms) == (2e9, 7.0)
    assert by_key["c", "T"].capacity_bps == 3e9


def test_a_file_transfer_is_limited_by_the_slower_of_reading_there_and_writing_here() -> None:
    sites = (
        Site("a", file_systems=(FileSystem("x", 5e9, 1e9),)),
        Site("b", host_bps=4e9, file_systems=(FileSystem("y", 9e9, 8e9),)),
    )
    cells = [cell_of(KEYS, 10, [1e9])]
    measured = measured_pairs(cells, Infrastructure("i", sites))
    (row,) = measured.rows
    assert measured.file_limit_bps(row) == 4e9
    assert measured.file_limit_bps(replace(row, sender="b", receiver="a")) == 1e9
    assert measured_pairs(cells).file_limit_bps(row) is None


def rows_of(rates: list[tuple[float, float]]) -> list[PairRow]:
    return [
        PairRow("a", f"b{index}", "T", rtt_ms, 10, rate, 0.1, 1.0)
        for index, (rtt_ms, rate) in enumerate(rates)
    ]


@given(st.floats(2.0, 80.0), st.floats(1e8, 1e11))
def test_a_knee_without_noise_is_found_where_it_is(knee_ms: float, level: float) -> None:
    rtts = [1.0, 1.5, 3, 5, 9, 17, 30, 60, 90, 120, 150, 200]
    rows = rows_of([(rtt, min(level, level * knee_ms / rtt)) for rtt in rtts])
    table = table_of(rows, 0.1)
    terms = (Term("level"), Term("window"))
    above = math.log(level * 1.5), math.log(level * 10.0)
    found = fit(table, terms, [above, (math.log(level), math.log(level * 40.0))])
    assert math.exp(found.theta[0]) == pytest.approx(level, rel=1e-4)
    assert math.exp(found.theta[1] - found.theta[0]) == pytest.approx(knee_ms, rel=1e-3)


def test_leaving_a_bound_out_only_lifts_rates() -> None:
    rows = rows_of([(rtt, min(9e9, 5e10 / rtt)) for rtt in (1, 2, 4, 8, 16, 32)])
    table = table_of(rows, 0.1)
    window = Term("window")
    found = fit(table, (Term("level"), window), [(math.log(9e9), math.log(5e10))])
    lift = found.log_rate(table, without=[window]) - found.log_rate(table)
    assert np.all(lift >= 0)
    assert (lift > 0.01).tolist() == found.holds(table, window).tolist()


def test_the_spread_of_repeats_is_pooled() -> None:
    rows = [replace(row, cv=0.1, n=50) for row in rows_of([(1, 1e9)] * 20)]
    assert pooled_cv(rows) == pytest.approx(0.1, abs=0.002)
    assert pooled_cv([replace(row, cv=None, n=1) for row in rows]) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("cv", "half_width", "runs"),
    [
        (0.05, 0.05, 7),
        (0.05, 0.1, 4),
        (0.1, 0.05, 18),
        (0.1, 0.1, 7),
        (0.2, 0.05, 64),
        (0.2, 0.1, 18),
    ],
)
def test_repeats_for_a_half_width(cv: float, half_width: float, runs: int) -> None:
    assert repeats_wanted(cv, half_width) == runs


def falling(
    fall: float, periods: int = 6, shock: float = 0.0, site: str | None = None
) -> list[Cell]:
    """Five paths over periods; a `shock` hits all paths of a period alike."""
    random = np.random.default_rng(3)
    cells = []
    for period in range(periods):
        common = math.exp(random.normal(0, shock)) if shock else 1.0
        for path in range(5):
            names = (f"a{path}", f"b{path % 2}")
            share = period / (periods - 1) if site is None or site in names else 0.0
            rate = 1e9 * (path + 1) * (1 - fall * share) * common
            keys = {"from_site": names[0], "to_site": names[1], "modality": "E", "period": period}
            cells.append(cell_of(keys, 10.0 * path, rate * random.lognormal(0, 0.1, 5)))
    return cells


def test_a_fall_over_periods_is_measured() -> None:
    cause = drift(falling(0.4))
    assert cause is not None and cause.site is None
    assert "fell by 4" in cause.line or "fell by 3" in cause.line
    assert 0.15 < cause.gain_share < 0.4


def test_a_fall_of_one_site_is_its_own() -> None:
    cause = drift(falling(0.6, site="b1"))
    assert cause is not None and cause.site == "b1"


@pytest.mark.parametrize("fall", [0.0, -0.5])
def test_no_fall_and_a_rise_are_no_drift(fall: float) -> None:
    assert drift(falling(fall)) is None


def test_bad_weeks_that_hit_all_paths_are_no_drift() -> None:
    alarms = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        shocks = np.exp(random.normal(0, 0.25, 6))
        cells = [
            replace(
                cell,
                sum_bps=cell.sum_bps * shocks[int(str(cell.keys["period"]))],
                sum_square=cell.sum_square * shocks[int(str(cell.keys["period"]))] ** 2,
            )
            for cell in falling(0.0)
        ]
        alarms += drift(cells) is not None
    assert alarms <= 3


def test_two_periods_are_too_few() -> None:
    assert drift(falling(0.5, periods=2)) is None
    assert drift([]) is None


@pytest.mark.parametrize("period", [None, "May", 1.5, True])
def test_a_period_that_is_no_whole_number_is_refused(period: object) -> None:
    (cell, *_) = falling(0.1)
    with pytest.raises(SpecError, match="period"):
        drift([replace(cell, keys={**cell.keys, "period": period})])


def changed_later(keys: dict[str, object], rtt_factor: float = 1.0) -> list[Cell]:
    """Rates that hold over six periods, but a third from the fourth on, where `keys` change."""
    cells = []
    for cell in falling(0.0):
        late = int(str(cell.keys["period"])) >= 3
        rate = cell.mean_bps / (3 if late else 1)
        own = {**cell.keys, "streams": 8, **(keys if late else {})}
        rtt_ms = (cell.rtt_ms or 5.0) * (rtt_factor if late else 1.0)
        cells.append(cell_of(own, rtt_ms, [0.9 * rate, rate, 1.1 * rate]))
    return cells


@pytest.mark.parametrize(
    ("keys", "rtt_factor"),
    [
        ({"streams": 2}, 1.0),
        ({"buffer_bytes": 1}, 1.0),
        ({"congestion_control": "reno"}, 1.0),
        ({}, 2.0),
    ],
)
def test_other_settings_or_another_rtt_are_no_drift(
    keys: dict[str, object], rtt_factor: float
) -> None:
    assert drift(changed_later({})) is not None
    assert drift(changed_later(keys, rtt_factor)) is None


def test_a_path_of_one_period_alone_tells_nothing_of_a_fall() -> None:
    once = cell_of({**KEYS, "period": 0}, 10.0, [1e9] * 3)
    one, two = drift(falling(0.4)), drift([once, *falling(0.4)])
    assert one is not None and two is not None
    assert two.gain_bps == pytest.approx(one.gain_bps)


def test_a_fall_is_seen_where_no_rtt_is_known() -> None:
    bare = [replace(cell, rtt_ms=None) for cell in falling(0.4)]
    cause, known = drift(bare), drift(falling(0.4))
    assert cause is not None and known is not None
    assert cause.gain_share == pytest.approx(known.gain_share)


def test_a_fall_is_told_by_periods_counted_from_the_first_or_by_dates() -> None:
    later = [
        replace(cell, keys={**cell.keys, "period": int(str(cell.keys["period"])) + 20402})
        for cell in falling(0.4)
    ]
    counted, dated = drift(later), drift(later, period_s=86400.0)
    assert counted is not None and "from period 1 to 6 of 6" in counted.line
    assert dated is not None and "from 2025-11-10 to 2025-11-16 (UTC)" in dated.line


def test_near_rtts_keep_the_capacity_that_one_of_them_states() -> None:
    cells = [cell_of(KEYS, 10, [1e9], capacity_bps=2e9), cell_of(KEYS, 10.2, [1e9])]
    (row,) = measured_pairs(cells).rows
    assert row.capacity_bps == 2e9


def test_streams_that_only_some_rows_state_are_not_used() -> None:
    rows = [PairRow("a", f"b{n}", "T", 10.0, 3, 1e9, None, n) for n in (None, 4.0, 8.0)]
    assert table_of(rows, 0.2).streams.tolist() == [1, 1, 1]
    assert table_of(rows[1:], 0.2).streams.tolist() == [4, 8]


def test_no_command_asks_for_more_streams_than_farline_takes() -> None:
    keys = {"modality": "T", "streams": 300}
    cells = [
        cell_of({**keys, "from_site": f"a{one}", "to_site": f"b{other}"}, 10.0 + 7 * one, [1e9])
        for one in range(2)
        for other in range(2)
    ]
    proposed = explain(cells).next
    assert any("more runs" in one.what for one in proposed)
    assert all("-P 300" not in (one.command or "") for one in proposed)


@pytest.mark.parametrize(
    ("repeats", "said"),
    [
        (1, "runs are taken to differ by 20 %: 18 runs give a mean to ± 10 %, and there is 1"),
        (2, "runs are taken to differ by 18 %: "),
        (5, "runs differ by 14 %: "),
    ],
)
def test_a_spread_that_few_runs_show_is_not_called_measured(repeats: int, said: str) -> None:
    keys = {"modality": "T", "from_site": "a", "to_site": "b"}
    (proposed,) = explain([cell_of(keys, 10.0, [1e9, 1.02e9, 0.98e9, 1e9, 1e9][:repeats])]).next
    assert proposed.why.startswith(said)


def test_cases_of_one_seed_are_alike() -> None:
    assert made.bad_site(3) == made.bad_site(3)
    assert made.bad_site(3) != made.bad_site(4)
