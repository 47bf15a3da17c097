"""The profile of a transfer method: over what it could reach, and by equation 2.2 as printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.profiles.bootstrap import drawn_means
from farline.profiles.calculus import difference
from farline.profiles.method_profile import method_profile
from farline.profiles.throughput_profile import ThroughputProfile
from tests.support.draws import draws

calm = draws(50)
"""Other work on the machine makes no test fail."""

GBPS = 1e9


def profile_of(rtt_ms: list[float], gbps: list[float], **options: Any) -> ThroughputProfile:
    options = {"capacity_bps": 10 * GBPS, **options}
    return ThroughputProfile.from_means(rtt_ms, np.array(gbps) * GBPS, **options)


NETWORK = profile_of([0, 100], [10, 4], label="T")
FILES = profile_of([0, 100], [5, 4], label="E", modality="E")


def test_a_method_that_loses_nothing_is_one_at_the_measured_round_trip_times() -> None:
    found = method_profile(FILES, NETWORK, file_bps=[5 * GBPS, 60 * GBPS], host_bps=[8 * GBPS])
    assert found.cap_bps == 5 * GBPS and found.how == "strict"
    assert found.profile(np.array([0.0, 100.0])) == pytest.approx([1.0, 1.0], abs=1e-12)
    assert (found.profile.unit, found.profile.capacity_bps) == ("1", 1.0)


def test_equation_22_as_printed_exceeds_one_where_tcp_is_below_the_limit() -> None:
    found = method_profile(FILES, NETWORK, file_bps=[5 * GBPS], how="paper")
    assert found.profile.mean_bps == pytest.approx([1.0, 2.0], abs=1e-12)
    assert any("reaches 2.00 of its limit at 100 ms" in line for line in found.warnings)
    assert any("equation 2.2 as printed does that" in line for line in found.warnings)


@pytest.mark.parametrize("how", ["strict", "paper"])
@pytest.mark.parametrize("limits", [[], [10 * GBPS], [20 * GBPS]])
def test_without_a_binding_limit_it_is_the_plain_ratio(how: Any, limits: list[float]) -> None:
    found = method_profile(FILES, NETWORK, host_bps=limits, how=how)
    assert found.profile.mean_bps == pytest.approx([0.5, 1.0], abs=1e-12)
    assert found.cap_bps == (limits[0] if limits else None)
    assert found.coefficients is not None
    assert found.coefficients.c_uc.value == pytest.approx(0.75 - 0.375 + 0.25)


def test_where_tcp_falls_below_the_limit_the_profile_has_a_knot() -> None:
    found = method_profile(FILES, NETWORK, file_bps=[5 * GBPS])
    assert found.profile.rtt_ms == pytest.approx([0, 250 / 3, 100])
    assert found.profile.mean_bps[1] == pytest.approx((5 - 5 / 6) / 5)


def test_values_above_one_are_kept_and_warned_of() -> None:
    fast = profile_of([0, 100], [5, 5], label="E")
    found = method_profile(fast, NETWORK)
    assert found.profile.mean_bps[1] == pytest.approx(1.25)
    assert any("1.25 of its limit at 100 ms: a limit or a measurement is wrong" in line
               for line in found.warnings)  # fmt: skip
    near = method_profile(profile_of([0, 100], [5, 4.06]), NETWORK)
    assert near.profile.mean_bps[1] == pytest.approx(1.015)
    assert not any("of what it could" in line for line in near.warnings)


def test_a_network_that_gets_faster_with_distance_is_pointed_out() -> None:
    found = method_profile(FILES, profile_of([0, 100], [6, 8]))
    assert any("the network's profile rises" in line for line in found.warnings)


@calm
@given(
    st.lists(st.floats(0.1, 10), min_size=3, max_size=3),
    st.lists(st.floats(0.1, 10), min_size=3, max_size=3),
    st.floats(0.5, 20),
)
def test_strict_is_never_below_the_plain_ratio_and_scales_out(
    files: list[float], network: list[float], cap: float
) -> None:
    rtts = [0.0, 10.0, 20.0]
    e, t = profile_of(rtts, files), profile_of(rtts, network)
    capped = method_profile(e, t, host_bps=[cap * GBPS], resamples=0).profile
    plain = method_profile(e, t, resamples=0).profile
    assert (capped(rtts) >= plain(rtts) - 1e-12).all()
    expected = np.array(files) / np.minimum(network, cap)
    assert capped(rtts) == pytest.approx(expected, rel=1e-9)


def repeated(rtts: list[float], gbps: list[float], sd: float, seed: int) -> ThroughputProfile:
    random = np.random.default_rng(seed)
    rows = {
        "rtt_ms": np.repeat(rtts, 20),
        "rate_bps": np.repeat(gbps, 20) * GBPS * random.normal(1, sd, 20 * len(rtts)),
    }
    return ThroughputProfile.from_frame(rows, capacity_bps=10 * GBPS)


def test_bootstrap_and_first_order_intervals_agree_and_the_seed_decides() -> None:
    rtts = [0.0, 50.0, 100.0]
    e, t = repeated(rtts, [6, 5, 3], 0.1, 1), repeated(rtts, [9, 8, 6], 0.1, 2)
    found = method_profile(e, t, seed=3)
    assert found.low is not None and found.high is not None
    low, high = found.profile.band()
    assert found.high - found.low == pytest.approx(high - low, rel=0.25)
    assert found.coefficients is not None and found.c_uc_bootstrap is not None
    closed = found.coefficients.c_uc
    assert closed.half_width is not None
    assert found.c_uc_bootstrap.value == pytest.approx(closed.value)
    assert found.c_uc_bootstrap.half_width == pytest.approx(closed.half_width, rel=0.25)
    again = method_profile(e, t, seed=3)
    assert again.c_uc_bootstrap == found.c_uc_bootstrap
    assert method_profile(e, t, seed=4).c_uc_bootstrap != found.c_uc_bootstrap


def test_where_the_limit_binds_the_networks_noise_does_not_count() -> None:
    rtts = [0.0, 50.0]
    e, t = repeated(rtts, [4, 4], 0.02, 1), repeated(rtts, [9, 8], 0.3, 2)
    found = method_profile(e, t, host_bps=[5 * GBPS], resamples=0)
    assert found.profile.standard_error_bps == pytest.approx(e.standard_error_bps / 5e9)


def test_a_bootstrap_is_left_out_where_none_is_asked_for_or_nothing_was_repeated() -> None:
    rtts = [0.0, 50.0]
    e, t = repeated(rtts, [4, 4], 0.1, 1), repeated(rtts, [9, 8], 0.1, 2)
    asked = method_profile(e, t, resamples=0)
    assert (asked.low, asked.high, asked.c_uc_bootstrap) == (None, None, None)
    single = method_profile(FILES, NETWORK)
    assert (single.low, single.c_uc_bootstrap) == (None, None)


def test_means_with_large_errors_are_drawn_above_zero_and_that_is_said() -> None:
    t = ThroughputProfile.from_means([0, 9], [8e9, 6e9], [2, 2], [9e9, 7e9])
    e = ThroughputProfile.from_means([0, 9], [4e9, 3e9], [2, 2], [4e9, 3e9])
    found = method_profile(e, t)
    assert found.low is not None and bool(np.all(found.low > 0))
    assert any("use the standard errors" in line for line in found.warnings)
    kept = method_profile(repeated([0, 9], [4, 3], 0.1, 1), repeated([0, 9], [8, 6], 0.1, 2))
    assert not any("drawn from" in line for line in kept.warnings)


def test_drawn_means_have_the_mean_and_the_error_of_what_they_are_drawn_for() -> None:
    noisy = ThroughputProfile.from_means([0, 9], [8e9, 6e9], [4, 4], [6e9, 1e9])
    drawn = drawn_means(noisy, 200_000, np.random.default_rng(1))
    assert bool(np.all(drawn > 0))
    assert drawn.mean(axis=0) == pytest.approx(noisy.mean_bps, rel=0.01)
    assert drawn.std(axis=0) == pytest.approx(noisy.standard_error_bps, rel=0.02)


def test_derived_profiles_have_no_bootstrap() -> None:
    e, t = repeated([0, 9], [4, 3], 0.1, 1), repeated([0, 9], [8, 6], 0.1, 2)
    found = method_profile(difference(t, e), t)
    assert (found.low, found.high, found.c_uc_bootstrap) == (None, None, None)


def test_means_with_deviations_are_drawn_from_them() -> None:
    e = ThroughputProfile.from_means([0, 9], [4e9, 3e9], [10, 10], [4e8, 3e8])
    t = ThroughputProfile.from_means([0, 9], [8e9, 6e9], [10, 10], [4e8, 3e8])
    found = method_profile(e, t)
    low, high = found.profile.band()
    assert found.low is not None and found.high is not None
    assert found.high - found.low == pytest.approx(high - low, rel=0.25)


def test_profiles_that_touch_have_a_method_but_no_coefficients() -> None:
    found = method_profile(FILES, profile_of([100, 200], [8, 4]))
    assert found.coefficients is None and found.profile.mean_bps == pytest.approx([0.5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"how": "printed"}, "how: 'printed' is not one of strict, paper"),
        ({"host_bps": [0.0]}, "limit of a host or file system: 0 is not a rate above 0"),
        ({"file_bps": [float("nan")]}, "limit of a host or file system: nan is not a rate"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        method_profile(FILES, NETWORK, **options)


def test_profiles_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SpecError, match="no round-trip time is covered by all"):
        method_profile(FILES, profile_of([200, 300], [1, 1]))
    with pytest.raises(SpecError, match="the network's profile is not above 0"):
        method_profile(FILES, profile_of([0, 100], [1, 0]))
    bare = profile_of([0, 100], [10, 4], capacity_bps=None)
    files = profile_of([0, 100], [5, 4], capacity_bps=None)
    with pytest.raises(
        SpecError, match=r"equation 2\.2 needs one capacity L; the profiles have no"
    ):
        method_profile(files, bare, host_bps=[5 * GBPS], how="paper")
    other = profile_of([0, 100], [10, 4], capacity_bps=40 * GBPS)
    with pytest.raises(SpecError, match="one capacity L; the profiles have 1e"):
        method_profile(FILES, other, host_bps=[5 * GBPS], how="paper")
    noisy = repeated([0.0, 100.0], [5, 4], 0.1, 1)
    with pytest.raises(SpecError, match="resamples: 7 are too few"):
        method_profile(noisy, noisy, resamples=7)
