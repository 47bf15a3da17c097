"""The profile as a value: what it is made of, what it can be asked, what it refuses."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from itertools import pairwise
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.profiles.cells import cells_of
from farline.profiles.throughput_profile import ThroughputProfile
from tests.support.draws import draws

calm = draws(50)
"""Other work on the machine makes no test fail."""

GBPS = 1e9
ROWS: dict[str, Any] = {
    "rtt_ms": [150.0, 0.0, 50.0, 0.0, 150.0, 50.0, 0.0, 50.0],
    "rate_bps": [4e9, 9e9, 7e9, 10e9, 6e9, 7e9, 8e9, None],
    "complete": [True, True, True, True, True, True, True, False],
}


def sample(**options: Any) -> ThroughputProfile:
    return ThroughputProfile.from_frame(ROWS, capacity_bps=10 * GBPS, **options)


def test_a_profile_has_means_deviations_and_counts_by_round_trip_time() -> None:
    profile = sample(label="ours")
    assert profile.rtt_ms.tolist() == [0.0, 50.0, 150.0]
    assert profile.mean_bps.tolist() == [9e9, 7e9, 5e9]
    assert profile.sd_bps == pytest.approx([1e9, 0.0, math.sqrt(2) * 1e9])
    assert profile.n.tolist() == [3, 2, 2] and len(profile) == 3
    assert profile.low_bps is not None and profile.low_bps.tolist() == [8e9, 7e9, 4e9]
    assert profile.high_bps is not None and profile.high_bps.tolist() == [10e9, 7e9, 6e9]
    assert profile.points_bps == ((8e9, 9e9, 10e9), (7e9, 7e9), (4e9, 6e9))
    assert profile.quantiles[0.5].tolist() == [9e9, 7e9, 5e9]
    assert (profile.failed, profile.unplaced, profile.label) == (1, 0, "ours")


def test_frames_tables_mappings_and_cells_give_the_same_profile() -> None:
    expected = repr(sample())
    for frame in (pandas.DataFrame(ROWS), pyarrow.table(ROWS)):
        profile = ThroughputProfile.from_frame(frame, capacity_bps=10 * GBPS)
        assert repr(profile) == expected
    assert repr(ThroughputProfile.from_cells(cells_of(ROWS), capacity_bps=10 * GBPS)) == expected


def test_columns_may_have_names_of_their_own() -> None:
    rows = {"ping": [1.0, 9.0], "speed": [2e9, 1e9]}
    profile = ThroughputProfile.from_frame(rows, "ping", "speed")
    assert profile.rtt_ms.tolist() == [1.0, 9.0] and profile.mean_bps.tolist() == [2e9, 1e9]
    with pytest.raises(SpecError, match="column rtt: no such column; the columns are ping, speed"):
        ThroughputProfile.from_frame(rows, "rtt", "speed")


def test_means_may_come_in_any_order() -> None:
    profile = ThroughputProfile.from_means([9, 1], [1e9, 2e9], [4, 5], [1e8, 2e8], modality="E")
    assert profile.rtt_ms.tolist() == [1, 9] and profile.mean_bps.tolist() == [2e9, 1e9]
    assert profile.n.tolist() == [5, 4] and profile.sd_bps.tolist() == [2e8, 1e8]
    assert profile.modality == "E" and profile.points_bps is None


def test_measurements_without_a_round_trip_time_are_left_out_and_counted() -> None:
    rows = {"rtt_ms": [1.0, None, None, 2.0], "rate_bps": [1e9, 5e9, 5e9, 1e9]}
    profile = ThroughputProfile.from_frame(rows, capacity_bps=GBPS)
    assert profile.n.tolist() == [1, 1] and profile.unplaced == 2
    assert "2 measurements left out: the round-trip time is unknown" in profile.notes


def test_capacity_and_modality_come_from_the_cells_unless_stated() -> None:
    rows = {**ROWS, "capacity_bps": [10e9] * 8, "modality": ["E"] * 8}
    profile = ThroughputProfile.from_frame(rows)
    assert (profile.capacity_bps, profile.modality, profile.notes) == (10e9, "E", ())
    stated = ThroughputProfile.from_frame(rows, capacity_bps=40e9, modality="T")
    assert (stated.capacity_bps, stated.modality) == (40e9, "T")


def test_what_is_mixed_is_noted() -> None:
    rows = {
        "rtt_ms": [1.0, 9.0],
        "rate_bps": [1e9, 1e9],
        "capacity_bps": [10e9, 100e9],
        "duration_s": [10.0, 120.0],
    }
    profile = ThroughputProfile.from_frame(rows)
    assert profile.capacity_bps == 100e9
    text = " ".join(profile.notes)
    assert "capacities from 10.0 Gbit/s to 100 Gbit/s are mixed" in text
    assert "tests took 10 s at one round-trip time and 120 s at another" in text
    files = ThroughputProfile.from_frame(rows, modality="E", capacity_bps=10e9)
    assert files.notes == (), "files have sizes, so durations say nothing; and L is stated"


def test_a_profile_is_a_value_that_cannot_be_changed() -> None:
    profile = sample()
    with pytest.raises(FrozenInstanceError):
        profile.label = "other"  # type: ignore[misc]
    for array in (profile.rtt_ms, profile.mean_bps, profile.n, profile.quantiles[0.5]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    given_rtt = np.array([1.0, 2.0])
    copied = ThroughputProfile.from_means(given_rtt, [1e9, 1e9])
    given_rtt[0] = 1.5
    assert copied.rtt_ms[0] == 1.0
    assert profile.relabelled("theirs").label == "theirs" and profile.label == ""


def test_between_knots_a_profile_is_straight() -> None:
    profile = sample()
    assert profile([0, 25, 50, 100, 150]).tolist() == [9e9, 8e9, 7e9, 6e9, 5e9]
    assert float(profile(75.0)) == 6.5e9
    assert profile(np.array([[0.0, 150.0]])).shape == (1, 2)


def test_values_between_knots_have_the_standard_error_of_the_line() -> None:
    profile = sample()
    found = profile.evaluate([0.0, 25.0, 100.0])
    at = [1e9 / math.sqrt(3), 0.5 * 1e9 / math.sqrt(3), 0.5 * 1e9]
    assert found.standard_error_bps == pytest.approx(at)
    assert not found.extrapolated.any()


def test_nothing_is_extrapolated_unless_asked_for_and_then_it_is_marked() -> None:
    profile = ThroughputProfile.from_means([10, 100], [8e9, 4e9], [3, 3], [1e8, 1e8])
    for rtt in (9.99, 100.01):
        with pytest.raises(SpecError, match="is outside the measured range, 10 to 100 ms"):
            profile(rtt)
    marked = profile.evaluate([5, 10, 100, 400], "mark")
    assert marked.rate_bps.tolist() == [8e9, 8e9, 4e9, 1e9], "flat, and a window beyond"
    assert marked.extrapolated.tolist() == [True, False, False, True]
    assert np.isnan(marked.standard_error_bps).tolist() == [True, False, False, True]
    flat = profile.evaluate([5, 400], "flat")
    assert flat.rate_bps.tolist() == [8e9, 4e9] and flat.extrapolated.all()
    with pytest.raises(SpecError, match="outside: 'guess' is not one of raise, mark, flat"):
        profile.evaluate([20], "guess")  # type: ignore[arg-type]
    for rtt in (-1.0, math.nan, math.inf):
        with pytest.raises(SpecError, match="must be numbers of 0 or more"):
            profile.evaluate([rtt], "mark")


def test_a_part_is_the_profile_between_two_round_trip_times() -> None:
    part = sample().between(25, 100)
    assert part.rtt_ms.tolist() == [25, 50, 100]
    assert part.mean_bps.tolist() == [8e9, 7e9, 6e9]
    assert part.n.tolist() == [2, 2, 2]
    assert part.standard_error_bps == pytest.approx([0.5e9 / math.sqrt(3), 0.0, 0.5e9])
    assert part.sd_bps / np.sqrt(part.n) == pytest.approx(part.standard_error_bps)
    assert sample().between(50, 50).mean_bps.tolist() == [7e9]
    with pytest.raises(SpecError, match="151 ms is outside"):
        sample().between(25, 151)
    with pytest.raises(SpecError, match="100 ms is not before 25 ms"):
        sample().between(100, 25)


def test_the_band_is_students_t_on_the_scale_of_logarithms() -> None:
    low, high = sample().band(0.9)
    half = scipy.stats.t.ppf(0.95, 2) * 1e9 / math.sqrt(3)
    factor = math.exp(half / 9e9)
    assert (low[0], high[0]) == pytest.approx((9e9 / factor, 9e9 * factor))
    assert (low[1], high[1]) == (7e9, 7e9)
    lone = ThroughputProfile.from_means([1, 2], [1e9, 1e9]).band()
    assert np.isnan(lone[0]).all() and np.isnan(lone[1]).all()


def test_normalised_rates_are_over_the_capacity() -> None:
    share = sample().normalised()
    assert share.mean_bps == pytest.approx([0.9, 0.7, 0.5])
    assert share.sd_bps[0] == pytest.approx(0.1) and (share.capacity_bps, share.unit) == (1.0, "L")
    assert share.points_bps is not None and share.points_bps[1] == pytest.approx((0.7, 0.7))
    assert share.x == pytest.approx([0, 1 / 3, 1]) and share.rtt_ms.tolist() == [0, 50, 150]
    one, other = sample().coefficients().c_uc, share.coefficients().c_uc
    assert other.value == pytest.approx(one.value) and other.low == pytest.approx(one.low)
    part = sample().between(25, 100).normalised()
    assert part.standard_error_bps[2] == pytest.approx(0.05)
    with pytest.raises(SpecError, match="its capacity is unknown"):
        ThroughputProfile.from_means([1, 2], [1e9, 1e9]).normalised()


def test_a_single_round_trip_time_is_a_profile_of_one_knot() -> None:
    profile = ThroughputProfile.from_means([5], [1e9], capacity_bps=2e9)
    assert float(profile(5)) == 1e9 and profile.x.tolist() == [0.0]
    assert profile.evaluate([1, 5, 10], "mark").rate_bps.tolist() == [1e9, 1e9, 0.5e9]
    assert profile.running().c_uc == pytest.approx([0.5])
    assert [region.shape for region in profile.concave_regions()] == ["straight"]


def test_a_frame_has_a_row_for_each_knot() -> None:
    frame = sample().to_frame()
    assert list(frame.columns) == [
        "rtt_ms", "n", "mean_bps", "sd_bps", "ci_low_bps", "ci_high_bps", "low_bps", "high_bps",
        "p10_bps", "p50_bps", "p90_bps",
    ]  # fmt: skip
    assert frame.n.tolist() == [3, 2, 2] and frame.mean_bps.tolist() == [9e9, 7e9, 5e9]
    assert frame.ci_low_bps[0] < 9e9 < frame.ci_high_bps[0]
    bare = ThroughputProfile.from_means([1], [1e9]).to_frame()
    assert list(bare.columns)[-1] == "ci_high_bps" and math.isnan(bare.ci_low_bps[0])


def test_it_prints_as_a_table_with_units() -> None:
    lines = repr(sample(label="ours")).splitlines()
    assert lines[0] == (
        "ThroughputProfile 'ours', modality T, 3 round-trip times, capacity 10.0 Gbit/s, 1 failed"
    )
    assert lines[1].split() == ["rtt_ms", "n", "mean", "sd", "low", "high"]
    assert lines[2].split()[:4] == ["0", "3", "9.00", "Gbit/s"]
    assert len({len(line) for line in lines[1:]}) == 1, "columns are aligned"
    assert "capacity unknown" in repr(ThroughputProfile.from_means([1], [1e9]))


def test_a_long_profile_shows_both_ends() -> None:
    profile = ThroughputProfile.from_means(np.arange(1, 101), np.full(100, 1e9))
    lines = repr(profile).splitlines()
    assert len(lines) == 2 + 21 and "..." in lines[12] and lines[-1].split()[0] == "100"


def test_in_a_notebook_it_is_a_table_and_labels_are_no_markup() -> None:
    html = sample(label="<b>ours</b>")._repr_html_()
    assert html.count("<tr>") == 4 and "9.00 Gbit/s" in html
    assert "<b>" not in html and "&lt;b&gt;ours" in html


def noisy(shares: list[float], sd: float) -> ThroughputProfile:
    rtts = 10.0 * np.arange(len(shares))
    means = np.array(shares) * 10 * GBPS
    n = np.full(len(shares), 10)
    return ThroughputProfile.from_means(rtts, means, n, np.full(len(shares), sd * 10 * GBPS))


def test_regions_say_where_it_bends_beyond_its_noise() -> None:
    shares = [1.0, 0.98, 0.9, 0.7, 0.4, 0.25, 0.18, 0.15]
    regions = noisy(shares, 0.001).concave_regions()
    assert [region.shape for region in regions] == ["concave", "convex"]
    assert [(region.left_ms, region.right_ms) for region in regions] == [(0.0, 35.0), (35.0, 70.0)]
    assert all(region.sure for region in regions)
    (unclear,) = noisy(shares, 0.5).concave_regions()
    assert (unclear.shape, unclear.left_ms, unclear.right_ms) == ("straight", 0.0, 70.0)


def test_without_repeats_regions_are_not_sure() -> None:
    profile = ThroughputProfile.from_means([0, 10, 20], [9e9, 8e9, 1e9])
    (region,) = profile.concave_regions()
    assert (region.shape, region.sure) == ("concave", False)
    line = ThroughputProfile.from_means([0, 0.1, 0.7], [1e9, 0.9e9, 0.3e9])
    assert [region.shape for region in line.concave_regions()] == ["straight"]


@calm
@given(st.lists(st.floats(0, 1), min_size=3, max_size=12), st.floats(0, 0.2))
def test_regions_cover_the_profile_without_a_gap(shares: list[float], sd: float) -> None:
    profile = noisy(shares, sd)
    regions = profile.concave_regions()
    edges = [regions[0].left_ms, *(region.right_ms for region in regions)]
    assert edges[0] == profile.rtt_ms[0] and edges[-1] == profile.rtt_ms[-1]
    assert edges == sorted(set(edges))
    assert [region.left_ms for region in regions] == edges[:-1]
    shapes = [region.shape for region in regions]
    assert all(one != other for one, other in pairwise(shapes))


@pytest.mark.parametrize(
    ("rtt_ms", "rate_bps", "n", "sd_bps", "message"),
    [
        ([], [], None, None, "no round-trip time given; at least one is needed"),
        ([1, 2], [1e9], None, None, "rate_bps has 1 entries for 2 round-trip times"),
        ([1, 1], [1e9, 1e9], None, None, "does not increase strictly, 1 is followed by 1"),
        ([-1], [1e9], None, None, "rtt_ms has a value that is not a number of 0 or more"),
        ([math.nan], [1e9], None, None, "rtt_ms has a value that is not a number of 0 or more"),
        ([1], [math.inf], None, None, "mean_bps has a value that is not finite"),
        ([1], [1e9], [0], None, "n has a value below 1"),
        ([1], [1e9], [2], [-1.0], "sd_bps has a value below 0 or not a number"),
        ([1], [1e9], None, [1e8], "sd_bps needs n, the number of measurements per mean"),
        (["a"], [1e9], None, None, "rtt_ms contains a value that is not a number"),
        ([[1, 2]], [1e9], None, None, "rtt_ms has 2 dimensions; it must have one"),
    ],
)
def test_means_that_cannot_be_are_refused(
    rtt_ms: Any, rate_bps: Any, n: Any, sd_bps: Any, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        ThroughputProfile.from_means(rtt_ms, rate_bps, n, sd_bps)


@pytest.mark.parametrize("capacity_bps", [0.0, -1.0, math.inf, math.nan])
def test_a_capacity_that_cannot_be_is_refused(capacity_bps: float) -> None:
    with pytest.raises(SpecError, match=r"capacity_bps is \S+; it must be above 0"):
        ThroughputProfile.from_means([1], [1e9], capacity_bps=capacity_bps)


def test_nothing_complete_is_no_profile() -> None:
    rows = {"rtt_ms": [1.0, None], "rate_bps": [None, 1e9], "complete": [False, True]}
    with pytest.raises(SpecError, match="none of 2 measurements is complete and has a round-trip"):
        ThroughputProfile.from_frame(rows)
    with pytest.raises(SpecError, match="of 0 measurements"):
        ThroughputProfile.from_cells([])
