"""Nearly equal round-trip times become one knot, whatever the order and the parts they came in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.profiles.cells import cells_of, rtt_groups
from farline.profiles.throughput_profile import ThroughputProfile
from tests.support.draws import draws

calm = draws(50)
"""Other work on the machine makes no test fail."""

Rows = list[tuple[float, float]]

measurements = st.lists(
    st.tuples(st.integers(0, 3000).map(lambda i: i / 20), st.floats(1e6, 1e10)),
    min_size=1,
    max_size=40,
)


def columns(rows: Rows) -> dict[str, list[float]]:
    return {"rtt_ms": [rtt for rtt, _ in rows], "rate_bps": [rate for _, rate in rows]}


def profile_of(rows: Rows, **options: Any) -> ThroughputProfile:
    return ThroughputProfile.from_cells(cells_of(columns(rows)), **options)


def test_the_most_measured_round_trip_time_takes_what_is_near() -> None:
    rows = [(10.0, 1e9)] * 5 + [(10.4, 2e9)] * 2 + [(9.6, 3e9)] + [(10.9, 4e9)]
    profile = profile_of(rows)
    assert profile.n.tolist() == [8, 1]
    assert profile.rtt_ms == pytest.approx([(5 * 10 + 2 * 10.4 + 9.6) / 8, 10.9])
    assert profile.mean_bps == pytest.approx([12e9 / 8, 4e9])
    assert profile.sd_bps[0] == pytest.approx(np.std([1e9] * 5 + [2e9] * 2 + [3e9], ddof=1))


def test_a_chain_does_not_swallow_a_range() -> None:
    rows = [(0.4 * step, 1e9) for step in range(101)]
    profile = profile_of(rows)
    assert len(profile) >= 40 / (2 * 0.5) - 1
    assert np.diff(profile.rtt_ms).min() > 0.5


def test_the_tolerance_grows_with_the_round_trip_time() -> None:
    rows = [(100.0, 1e9), (100.0, 1e9), (101.0, 1e9), (102.1, 1e9)]
    assert profile_of(rows).n.tolist() == [3, 1]
    assert profile_of(rows, merge_share=0.0).n.tolist() == [2, 1, 1]
    assert profile_of(rows, merge_share=0.05).n.tolist() == [4]


def test_without_a_tolerance_only_equal_ones_are_merged() -> None:
    rows = [(1.0, 1e9), (1.0, 3e9), (1.01, 5e9)]
    profile = profile_of(rows, merge_ms=0, merge_share=0)
    assert profile.rtt_ms.tolist() == [1.0, 1.01] and profile.mean_bps.tolist() == [2e9, 5e9]


def test_failed_measurements_count_wherever_they_are_but_make_no_knot() -> None:
    rows = {
        "rtt_ms": [1.0, 1.0, 50.0],
        "rate_bps": [1e9, None, None],
        "complete": [True, False, False],
    }
    profile = ThroughputProfile.from_frame(rows)
    assert profile.rtt_ms.tolist() == [1.0] and profile.failed == 2


@calm
@given(measurements, st.randoms(use_true_random=False))
def test_the_order_of_measurements_and_cells_does_not_matter(rows: Rows, random: Any) -> None:
    one = profile_of(rows)
    cells = cells_of(columns(random.sample(rows, len(rows))))
    other = ThroughputProfile.from_cells(random.sample(cells, len(cells)))
    assert other.rtt_ms == pytest.approx(one.rtt_ms, rel=1e-12)
    assert other.mean_bps == pytest.approx(one.mean_bps, rel=1e-12)
    assert other.n.tolist() == one.n.tolist()
    assert other.sd_bps == pytest.approx(one.sd_bps, rel=1e-9, abs=1e-3, nan_ok=True)
    assert other.points_bps == one.points_bps


@calm
@given(measurements, st.data())
def test_parts_give_the_same_profile_as_the_whole(rows: Rows, data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    cells = [
        cell
        for part in range(3)
        for cell in cells_of(columns([r for r, p in zip(rows, parts, strict=True) if p == part]))
    ]
    one, other = profile_of(rows), ThroughputProfile.from_cells(cells)
    assert other.rtt_ms == pytest.approx(one.rtt_ms, rel=1e-12)
    assert other.mean_bps == pytest.approx(one.mean_bps, rel=1e-12)
    assert other.n.tolist() == one.n.tolist()
    for share in one.quantiles:
        assert other.quantiles[share] == pytest.approx(one.quantiles[share], rel=1e-12)


@calm
@given(measurements)
def test_nothing_is_lost_and_knots_span_at_most_twice_the_tolerance(rows: Rows) -> None:
    profile = profile_of(rows)
    assert profile.n.sum() == len(rows)
    total = float((profile.n * profile.mean_bps).sum())
    assert total == pytest.approx(sum(rate for _, rate in rows), rel=1e-12)
    rtts, n = np.unique([rtt for rtt, _ in rows], return_counts=True)
    groups = rtt_groups(rtts, n.astype(np.float64), 0.5, 0.01)
    assert groups.tolist() == sorted(groups.tolist()), "knots do not interleave"
    for group in range(groups.max() + 1):
        some = rtts[groups == group]
        assert some[-1] - some[0] <= 2 * max(0.5, 0.01 * some[-1]) + 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"merge_ms": -0.1}, "merge_ms: -0.1 is not a number of 0 or more"),
        ({"merge_ms": float("nan")}, "merge_ms: nan is not a number of 0 or more"),
        ({"merge_share": 1.0}, "merge_share: 1.0 is not a share from 0 to below 1"),
    ],
)
def test_a_tolerance_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        profile_of([(1.0, 1e9)], **options)
