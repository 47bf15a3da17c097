"""Throughput over streams: the published families, where they hold, and the fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.models.stream_curves import (
    CUBIC_BETA,
    COrder,
    FullSecondOrder,
    HackerCurve,
    PartialSecondOrder,
    altman_share,
    altman_streams,
    whole_streams,
)
from farline.models.stream_fit import fit_streams

COUNTS = [1, 2, 4, 8, 16, 32]
PEAKED = FullSecondOrder(2e-6, -8e-6, 4e-5)


def test_the_full_second_order_has_its_reference_values() -> None:
    rates = [171.499, 353.553, 632.456, 784.465, 777.029, 747.631]
    assert PEAKED.rate(COUNTS) == pytest.approx(rates, abs=5e-4)
    assert PEAKED.peak_streams == pytest.approx(10)
    assert PEAKED.peak == pytest.approx(790.5694, abs=5e-5)
    assert PEAKED.asymptote == pytest.approx(707.1068, abs=5e-5)


def test_three_samples_give_the_full_second_order_back_in_any_order() -> None:
    n = [4, 1, 16]
    found = FullSecondOrder.through(n, PEAKED.rate(n).tolist())
    assert (found.a, found.b, found.c) == pytest.approx((2e-6, -8e-6, 4e-5))


def test_a_curve_is_stated_by_one_stream_and_its_peak() -> None:
    curve = FullSecondOrder.with_peak(750, 6, 3000)
    assert (curve.a, curve.b, curve.c) == pytest.approx((1.7778e-7, -8e-7, 2.4e-6), rel=1e-4)
    rates = [750, 1627.0, 2797.5, 2945.3, 2700.2]
    assert curve.rate(COUNTS[:5]) == pytest.approx(rates, abs=0.05)
    assert curve.asymptote == pytest.approx(2371.7, abs=0.05)


def test_the_partial_second_order_has_its_reference_values() -> None:
    curve = PartialSecondOrder(1e-6, 9e-5)
    rates = [104.828, 206.284, 388.514, 644.658, 860.165, 958.754]
    assert curve.rate(COUNTS) == pytest.approx(rates, abs=5e-4)
    assert curve.asymptote == pytest.approx(1000)
    assert curve.streams_for_share(0.9) == pytest.approx(19.588, abs=5e-4)
    assert curve.streams_for_share(0.95) == pytest.approx(28.863, abs=5e-4)
    found = PartialSecondOrder.through([1, 8], curve.rate([1, 8]).tolist())
    assert (found.a, found.b) == pytest.approx((1e-6, 9e-5))


def test_streams_that_share_a_bottleneck_fill_what_the_formula_says() -> None:
    shares = [0.75, 0.8571, 0.90, 0.9474, 0.9677]
    assert altman_share([1, 2, 3, 6, 10]) == pytest.approx(shares, abs=5e-5)
    cubic = [0.85, 0.9189, 0.9444, 0.9714]
    assert altman_share([1, 2, 3, 6], CUBIC_BETA) == pytest.approx(cubic, abs=5e-5)
    assert [altman_streams(share) for share in (0.90, 0.95, 0.99)] == [3, 7, 33]


@given(
    st.floats(1e-9, 1e-5), st.floats(1e-7, 1e-3), st.floats(0.3, 5.0),
    st.sampled_from([(1, 2, 4), (1, 4, 16), (2, 8, 32)]),
)  # fmt: skip
def test_the_c_order_is_found_again_from_three_samples(
    a: float, b: float, c: float, n: tuple[int, ...]
) -> None:
    curve = COrder(a, b, c)
    q = (np.array(n) / curve.rate(n)) ** 2
    if q[1] - q[0] < 1e-6 * q[0]:
        return  # no figure of double precision shows the growth
    found = COrder.through(n, curve.rate(n).tolist())
    assert found.rate(n) == pytest.approx(curve.rate(n), rel=1e-6)
    assert found.c == pytest.approx(c, rel=1e-2)


@pytest.mark.parametrize(("n", "ratio"), [((1, 2, 4), 5.0), ((1, 4, 16), 17.0)])
def test_the_growth_from_which_a_c_order_has_a_peak(n: tuple[int, ...], ratio: float) -> None:
    """(q3 - q1)/(q2 - q1) above (n3² - n1²)/(n2² - n1²), its reference values."""
    for factor, has_peak in ((0.95, False), (1.05, True)):
        q = (1.0, 1.01, 1.0 + 0.01 * ratio * factor)
        rates = [count / q_i**0.5 for count, q_i in zip(n, q, strict=True)]
        assert (COrder.through(n, rates).peak_streams is not None) == has_peak
    # There is a curve at all only above ln(n3/n1)/ln(n2/n1), which is 2 for both.
    flat = [count / q_i**0.5 for count, q_i in zip(n, (1.0, 1.01, 1.0195), strict=True)]
    with pytest.raises(SpecError, match="growth above 2"):
        COrder.through(n, flat)


def test_a_c_order_above_two_has_a_peak_and_others_none() -> None:
    curve = COrder(1e-7, 1e-4, 3.0)
    peak = curve.peak_streams
    assert peak is not None
    assert peak == pytest.approx((2 * 1e-4 / 1e-7) ** (1 / 3))
    assert curve.rate(peak) > max(curve.rate(0.97 * peak), curve.rate(1.03 * peak))
    assert COrder(1e-7, 1e-4, 2.0).peak_streams is None


def test_streams_that_cost_nothing_add_up_to_the_capacity() -> None:
    curve = HackerCurve(100.0, 450.0)
    assert curve.rate([1, 4, 5, 50]) == pytest.approx([100, 400, 450, 450])
    assert curve.peak_streams == 4.5
    assert HackerCurve(100.0).peak_streams is None


@pytest.mark.parametrize(
    ("family", "n", "rates", "word"),
    [
        (FullSecondOrder, [1, 2, 4], [100, 100, 180], "a > 0"),  # stands, then grows
        (FullSecondOrder, [1, 2, 4], [100, 60, 55], "c > 0"),  # falls from the first
        (PartialSecondOrder, [1, 2], [100, 250], "a > 0"),
        (COrder, [1, 2, 4], [100, 200, 300], "growth"),
        (FullSecondOrder, [1, 1, 4], [100, 90, 80], "three|3 samples"),
        (FullSecondOrder, [1, 2, 4], [100, 0, 80], "rates"),
    ],
)
def test_samples_that_are_no_curve_are_refused_with_what_does_not_hold(
    family: type[FullSecondOrder], n: list[float], rates: list[float], word: str
) -> None:
    with pytest.raises(SpecError, match=word):
        family.through(n, rates)


def test_the_whole_number_of_streams_is_the_fewest_that_is_near_enough() -> None:
    assert whole_streams(PEAKED, 64) == 10
    assert whole_streams(PEAKED, 64, within=0.03) == 7
    assert whole_streams(PEAKED, 4) == 4


@given(
    st.floats(1.5, 60), st.floats(0.02, 0.9), st.integers(0, 2**32 - 1),
    st.sampled_from([COUNTS, [1, 8, 32], [4, 16, 32, 64]]),
)  # fmt: skip
def test_any_curve_is_fitted_from_samples_without_noise(
    peak_streams: float, first: float, _seed: int, counts: list[int]
) -> None:
    curve = FullSecondOrder.with_peak(first * 1e9, peak_streams, 1e9)
    fit = fit_streams(counts, curve.rate(counts).tolist())
    assert fit.rate(counts) == pytest.approx(curve.rate(counts), rel=0.02)


@given(st.lists(st.floats(1e6, 1e11), min_size=2, max_size=12), st.integers(0, 5))
def test_whatever_the_samples_the_fit_is_a_curve(rates: list[float], start: int) -> None:
    counts = [COUNTS[(start + at) % 6] for at in range(len(rates))]
    fit = fit_streams(counts, rates)
    everywhere = fit.rate([1, 3, 64, 1000])
    assert np.all(np.isfinite(everywhere) & (everywhere > 0))
    assert fit.peak_streams > 1
    assert 4 * fit.curve.a * fit.curve.c > fit.curve.b**2


def test_noise_of_production_moves_the_fitted_peak_rate_by_less_than_itself() -> None:
    rng = np.random.default_rng(28)
    deviations = []
    for _ in range(40):
        noisy = PEAKED.rate(COUNTS) * np.exp(rng.normal(0, 0.19, 6))
        deviations.append(np.log(fit_streams(COUNTS, noisy.tolist()).peak / PEAKED.peak))
    assert np.std(deviations) < 0.19


@pytest.mark.parametrize(
    ("n", "rates"), [([4, 4], [1, 2]), ([0.5, 2], [1, 2]), ([1, 2], [1, -2]), ([1], [1])]
)
def test_a_fit_needs_two_counts_and_positive_rates(n: list[float], rates: list[float]) -> None:
    with pytest.raises(SpecError):
        fit_streams(n, rates)
