"""Coefficients of profiles as Rao et al. 2018 define them, and where a number misleads."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats

from farline.errors import SpecError
from farline.profiles.coefficients import uc_weights
from farline.profiles.throughput_profile import ThroughputProfile

Floats = npt.NDArray[np.float64]

GBPS = 1e9
SUITE_MS = np.array([0.4, 11.8, 22.6, 45.6, 91.6, 183.0, 366.0])
"""The round-trip times of the emulation testbed of Rao et al. 2018."""

EVEN = np.linspace(0.0, 1.0, 40_001)
EDGES = (1.0 - np.cos(np.pi * EVEN)) / 2.0
"""Knots that are close at both ends, where roots are steep."""


def profile_of(
    rtt_ms: npt.ArrayLike, shares: npt.ArrayLike, capacity_bps: float = 10 * GBPS
) -> ThroughputProfile:
    """A profile whose rates are shares of the capacity."""
    rates = np.asarray(shares, dtype=np.float64) * capacity_bps
    return ThroughputProfile.from_means(rtt_ms, rates, capacity_bps=capacity_bps)


def repeated(rates_bps: dict[float, list[float]], capacity_bps: float) -> ThroughputProfile:
    rows = [(rtt, rate) for rtt, several in rates_bps.items() for rate in several]
    frame = {"rtt_ms": [rtt for rtt, _ in rows], "rate_bps": [rate for _, rate in rows]}
    return ThroughputProfile.from_frame(frame, capacity_bps=capacity_bps)


REPEATS = {
    0.0: [9 * GBPS, 10 * GBPS, 8 * GBPS],
    50.0: [7 * GBPS, 7 * GBPS],
    150.0: [4 * GBPS, 6 * GBPS],
}

Curve = Callable[[Floats], Floats]

CURVES: list[tuple[str, Curve, float, float, float]] = [
    ("1", lambda x: np.ones_like(x), 1.0, 1.0, 0.75),
    ("0", lambda x: np.zeros_like(x), 0.0, 0.0, 0.25),
    ("1 - x", lambda x: 1 - x, 0.5, 0.5, 0.5),
    ("0.9 - 0.6x", lambda x: 0.9 - 0.6 * x, 0.6, 0.6, 0.55),
    ("quarter circle", lambda x: np.sqrt(1 - x**2), math.pi / 4, 0.5, math.pi / 4),
    ("1 - x²", lambda x: 1 - x**2, 2 / 3, 0.5, 2 / 3),
    ("cos", lambda x: np.cos(np.pi * x / 2), 2 / math.pi, 0.5, 2 / math.pi),
    ("1/(1 + x)", lambda x: 1 / (1 + x), math.log(2), 0.75, 0.568147180560),
    ("1/(1 + 4x)", lambda x: 1 / (1 + 4 * x), math.log(5) / 4, 0.6, 0.352359478109),
    ("1/(1 + 9x)", lambda x: 1 / (1 + 9 * x), math.log(10) / 9, 0.55, 0.230842788110),
    (
        "exp(-3x)",
        lambda x: np.exp(-3 * x),
        (1 - math.exp(-3)) / 3,
        (1 + math.exp(-3)) / 2,
        0.304290877544,
    ),
    ("1 - sqrt(x)", lambda x: 1 - np.sqrt(x), 1 / 3, 0.5, 1 / 3),
    ("4x(1 - x)", lambda x: 4 * x * (1 - x), 2 / 3, 0.0, 11 / 12),
    ("1 - 4x(1 - x)", lambda x: 1 - 4 * x * (1 - x), 1 / 3, 1.0, 1 / 12),
]


@pytest.mark.parametrize(
    ("curve", "mean", "chord", "c_uc"), [row[1:] for row in CURVES], ids=[row[0] for row in CURVES]
)
def test_known_curves_have_their_known_coefficients(
    curve: Curve, mean: float, chord: float, c_uc: float
) -> None:
    x = EDGES if curve(np.array([1.0]))[0] in (0.0, 0.5) else EVEN
    found = profile_of(366.0 * x, np.maximum(curve(x), 0.0)).coefficients()
    assert found.mean.value == pytest.approx(mean, abs=2e-9)
    assert found.chord.value == pytest.approx(chord, abs=1e-9)
    assert found.c_u.value == pytest.approx(1 - mean, abs=2e-9)
    assert found.c_cc.value == pytest.approx(mean - chord, abs=2e-9)
    assert found.c_uc.value == pytest.approx(c_uc, abs=2e-9)


@pytest.mark.parametrize(
    ("knots", "c_uc"), [(3, 0.683013), (5, 0.748927), (11, 0.776130), (21, 0.782116)]
)
def test_few_knots_on_a_curve_give_too_little(knots: int, c_uc: float) -> None:
    x = np.linspace(0.0, 1.0, knots)
    found = profile_of(x, np.sqrt(1 - x**2)).coefficients()
    assert found.c_uc.value == pytest.approx(c_uc, abs=5e-7)
    assert any("miss the curve between" in line for line in found.warnings) == (knots <= 5)


@pytest.mark.parametrize("knots", [11, 101, 10_001])
def test_a_step_at_the_end_comes_near_to_one_and_a_plateau_above(knots: int) -> None:
    x = np.linspace(0.0, 1.0, knots)
    step, plateau = np.ones(knots), np.ones(knots)
    step[-1] = plateau[0] = plateau[-1] = 0.0
    lost = 1 / (knots - 1)
    assert profile_of(x, step).coefficients().c_uc.value == pytest.approx(1.0 - lost / 2)
    assert profile_of(x, plateau).coefficients().c_uc.value == pytest.approx(1.25 - lost)


def test_measured_style_on_unequal_round_trip_times() -> None:
    found = profile_of([0, 91.5, 183, 366], [1.0, 0.9, 0.8, 0.2]).coefficients()
    assert found.mean.value == pytest.approx(0.70, abs=1e-9)
    assert found.chord.value == pytest.approx(0.60, abs=1e-9)
    assert found.c_cc.value == pytest.approx(0.10, abs=1e-9)
    assert found.c_uc.value == pytest.approx(0.65, abs=1e-9)
    assert found.c_u.value == pytest.approx(0.30, abs=1e-9)
    assert (found.left, found.right) == pytest.approx((1.0, 0.2))
    assert found.area_u == pytest.approx(0.3 * 10 * GBPS * 366)
    assert found.area_cc == pytest.approx(0.1 * 10 * GBPS * 366)
    # From RTT 0 on the printed chord is right.
    assert found.area_cc_printed == pytest.approx(found.area_cc)


def test_the_chord_as_printed_finds_an_area_under_a_straight_line() -> None:
    found = profile_of([100, 300], [0.8, 0.4]).coefficients()
    assert found.mean.value == pytest.approx(0.6, abs=1e-9)
    assert found.c_uc.value == pytest.approx(0.55, abs=1e-9)
    assert found.c_cc.value == pytest.approx(0.0, abs=1e-9)
    assert found.area_cc == pytest.approx(0.0, abs=1e-3)
    assert found.area_cc_printed == pytest.approx(400 * GBPS)


def test_repeats_give_means_weights_and_the_closed_interval() -> None:
    profile = repeated(REPEATS, 10 * GBPS)
    found = profile.coefficients()
    assert profile.mean_bps.tolist() == [9 * GBPS, 7 * GBPS, 5 * GBPS]
    assert found.mean.value == pytest.approx(2 / 3, abs=1e-9)
    assert found.chord.value == pytest.approx(0.7, abs=1e-9)
    assert found.c_cc.value == pytest.approx(-1 / 30, abs=1e-9)
    assert found.c_uc.value == pytest.approx(0.566666666667, abs=1e-9)
    assert uc_weights(profile.rtt_ms) == pytest.approx([-1 / 12, 0.5, 1 / 12], abs=1e-12)
    # s² = 1, 0 and 2 with n = 3, 2 and 2; degrees of freedom by Welch and Satterthwaite.
    parts = np.array([1 / 144 * 1 / 3, 0.0, 1 / 144 * 2 / 2])
    freedom = parts.sum() ** 2 / (parts**2 / [2, 1, 1]).sum()
    half = scipy.stats.t.ppf(0.975, freedom) * math.sqrt(parts.sum()) / 10
    assert found.c_uc.half_width == pytest.approx(half, rel=1e-9)
    assert found.c_uc.low == pytest.approx(found.c_uc.value - half)


def test_weights_of_the_testbed_of_the_paper() -> None:
    expected = [-0.2344, 0.0304, 0.0462, 0.0944, 0.1879, 0.3753, 0.0003]
    weights = uc_weights(SUITE_MS)
    assert weights == pytest.approx(expected, abs=5e-5)
    assert (weights**2).sum() == pytest.approx(0.243, abs=5e-4)


def test_ten_repeats_give_a_hundredth_by_t_and_a_fifth_by_hoeffding() -> None:
    capacity = 10 * GBPS
    profile = ThroughputProfile.from_means(
        SUITE_MS, np.full(7, 5 * GBPS), np.full(7, 10), np.full(7, 0.05 * capacity),
        capacity_bps=capacity,
    )  # fmt: skip
    half = profile.coefficients().c_uc.half_width
    assert half is not None and half == pytest.approx(0.016, abs=1e-3)
    assert profile.hoeffding_half_width() == pytest.approx(0.21, abs=5e-3)
    assert profile.hoeffding_half_width(0.99) > profile.hoeffding_half_width(0.95)


def test_raising_the_rate_at_the_smallest_round_trip_time_lowers_the_coefficient() -> None:
    shares = np.linspace(0.9, 0.3, 7)
    raised = shares.copy()
    raised[0] += 0.1
    before, after = (profile_of(SUITE_MS, some).coefficients() for some in (shares, raised))
    assert after.c_uc.value < before.c_uc.value and after.mean.value > before.mean.value


def ramp_bps(rtt_ms: Floats, buffer_bytes: float) -> Floats:
    """A slow start that doubles each RTT, then full windows, over 30 s on 10 Gbit/s."""
    rtt_s = rtt_ms / 1e3
    window = np.minimum(1e10 * rtt_s, 8 * buffer_bytes)
    first = 8 * 10 * 1448
    ramp_s = rtt_s * np.log2(window / first)
    result: Floats = ((window - first) / np.log(2) + window / rtt_s * (30 - ramp_s)) / 30
    return result


def test_half_the_rate_at_the_largest_round_trip_time_hardly_shows() -> None:
    full = ThroughputProfile.from_means(
        SUITE_MS, ramp_bps(SUITE_MS, math.inf), capacity_bps=10 * GBPS
    )
    held = ThroughputProfile.from_means(SUITE_MS, ramp_bps(SUITE_MS, 250e6), capacity_bps=10 * GBPS)
    assert full.mean_bps[-1] == pytest.approx(8.352e9, rel=1e-3)
    assert held.mean_bps[-1] == pytest.approx(4.622e9, rel=1e-3)
    scores = [profile.coefficients() for profile in (full, held)]
    assert [round(found.c_uc.value, 4) for found in scores] == [0.7128, 0.7127]
    assert all(any("366 ms hardly count" in line for line in found.warnings) for found in scores)


def test_an_interval_inside_is_as_a_profile_of_that_part() -> None:
    profile = repeated(REPEATS, 10 * GBPS)
    inside = profile.coefficients(interval=(25.0, 100.0))
    assert (inside.left_ms, inside.right_ms) == (25.0, 100.0)
    assert (inside.left, inside.right) == pytest.approx((0.8, 0.6))
    part = profile.between(25.0, 100.0).coefficients()
    for name in ("mean", "chord", "c_u", "c_cc", "c_uc"):
        whole, cut = getattr(inside, name), getattr(part, name)
        assert cut.value == pytest.approx(whole.value, abs=1e-12)
        assert cut.half_width == pytest.approx(whole.half_width, rel=1e-9)


def test_a_single_run_takes_the_deviation_of_the_others_and_says_so() -> None:
    rates = {**REPEATS, 300.0: [4.5 * GBPS]}
    profile = repeated(rates, 10 * GBPS)
    found = profile.coefficients()
    pooled = math.sqrt((2 * 1.0 + 0.0 + 2.0) / 4)
    assert np.isnan(profile.sd_bps[-1])
    assert profile.standard_error_bps[-1] == pytest.approx(pooled * GBPS)
    assert found.c_uc.low is not None
    assert any("1 round-trip time has one measurement" in line for line in found.warnings)


def test_without_repeats_there_is_no_interval_and_a_word_about_it() -> None:
    found = profile_of([1, 2, 3], [0.9, 0.8, 0.7]).coefficients()
    assert (found.c_uc.low, found.c_uc.high, found.mean.half_width) == (None, None, None)
    assert any("no intervals" in line for line in found.warnings)


def test_repeats_that_agree_give_an_interval_of_no_width() -> None:
    found = repeated({1.0: [GBPS, GBPS], 2.0: [GBPS, GBPS]}, 10 * GBPS).coefficients()
    assert (found.c_uc.low, found.c_uc.high) == (found.c_uc.value, found.c_uc.value)


def warned(profile: ThroughputProfile, words: str) -> bool:
    return any(words in line for line in profile.coefficients().warnings)


@pytest.mark.parametrize(
    ("shares", "words", "expected"),
    [
        ([0.3] * 7, "C_UC below 0.5 does not mean convex", True),
        ([0.5, 0.2, 0.15, 0.1, 0.08, 0.05, 0.04], "C_UC below 0.5 does not mean convex", False),
        ([1.0, 0.99, 0.97, 0.93, 0.83, 0.66, 0.5], "C_UC above 0.5 does not mean concave", True),
        ([1.0, 0.99, 0.98, 0.97, 0.96, 0.9, 0.5], "C_UC above 0.5 does not mean concave", False),
        ([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.41], "the profile rises from 183 to 366 ms", True),
        ([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.4], "rises", False),
        ([1.07, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3], "a mean is 1.07 of the capacity", True),
        ([1.0, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3], "of the capacity:", False),
    ],
)
def test_warnings_name_what_misleads(shares: list[float], words: str, expected: bool) -> None:
    assert warned(profile_of(SUITE_MS, shares), words) == expected


def test_a_rise_within_the_noise_is_no_rise() -> None:
    means = np.array([9.0, 8.0, 8.1, 5.0, 4.0, 3.0]) * GBPS
    rtts = [0.0, 10, 20, 30, 40, 50]
    noisy, exact = (
        ThroughputProfile.from_means(
            rtts, means, np.full(6, 10), np.full(6, sd), capacity_bps=10 * GBPS
        )
        for sd in (GBPS, 0.01 * GBPS)
    )
    assert not warned(noisy, "rises") and warned(exact, "rises from 10 to 20 ms")


def test_a_rise_outside_the_interval_is_not_spoken_of() -> None:
    profile = profile_of([0, 10, 20, 30], [0.9, 0.8, 0.7, 0.8])
    assert "rises" in " ".join(profile.coefficients().warnings)
    assert "rises" not in " ".join(profile.coefficients(interval=(0.0, 20.0)).warnings)


def test_what_the_profile_notes_is_part_of_every_warning() -> None:
    rows = {"rtt_ms": [1, 9, 9], "rate_bps": [GBPS] * 3, "modality": ["T", "T", "E"]}
    profile = ThroughputProfile.from_frame(rows, capacity_bps=10 * GBPS)
    assert warned(profile, "modalities E and T are mixed")


def test_what_has_no_coefficients_is_said() -> None:
    unknown = ThroughputProfile.from_means([1, 2], [GBPS, GBPS], label="ours")
    with pytest.raises(SpecError, match=r"ours: its capacity is unknown.*give capacity_bps"):
        unknown.coefficients()
    with pytest.raises(SpecError, match="only one round-trip time, 5 ms; coefficients need two"):
        profile_of([5.0], [0.5]).coefficients()
    profile = profile_of([1, 9], [0.5, 0.4])
    for interval in [(0.5, 9.0), (1.0, 9.5), (4.0, 4.0), (5.0, 2.0)]:
        with pytest.raises(SpecError, match="it must lie within 1 to 9 ms"):
            profile.coefficients(interval=interval)
    for confidence in (0.0, 1.0, 95.0, math.nan):
        with pytest.raises(SpecError, match=r"confidence: .* is not between 0 and 1"):
            profile.coefficients(confidence)


def test_hoeffdings_bound_is_for_measurements_alone() -> None:
    profile = repeated(REPEATS, 10 * GBPS)
    with pytest.raises(SpecError, match="is for measured rates, not for derived profiles"):
        (profile - profile).hoeffding_half_width()
