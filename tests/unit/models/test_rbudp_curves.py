"""Curves, the payload that an efficiency needs, and where curves cross."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.models.rbudp import MODEL_NAMES, Case, ModelName
from farline.models.rbudp_corrected import predict
from farline.models.rbudp_curves import crossings, curve, payload_for, round_places
from tests.support.draws import draws

MB = 10**6
CLEAN = Case(600 * MB, 600e6, 0.11)
LOSSY = Case(600 * MB, 610e6, 0.11, 0.07)


def efficiency(case: Case, size: int, model: ModelName) -> float:
    return predict(replace(case, payload_bytes=size), model).efficiency


@pytest.mark.parametrize("model", ["passes", "early"])
def test_without_loss_the_corrected_models_need_what_equation_4_says(model: ModelName) -> None:
    assert payload_for(CLEAN, 0.9, model) == pytest.approx(74.25e6, abs=1)


@pytest.mark.parametrize("model", MODEL_NAMES)
def test_the_payload_is_enough_and_a_smaller_one_is_not(model: ModelName) -> None:
    size = payload_for(LOSSY, 0.9, model)
    assert efficiency(LOSSY, size, model) >= 0.9 > efficiency(LOSSY, size - 1, model)
    assert all(efficiency(LOSSY, round(size * k), model) >= 0.9 for k in np.geomspace(1, 1e4, 40))


@pytest.mark.parametrize("model", MODEL_NAMES)
def test_an_efficiency_beyond_what_loss_leaves_is_refused(model: ModelName) -> None:
    with pytest.raises(
        ValueError, match=r"efficiency: no payload reaches 0\.95; the maximum is 0\.9"
    ):
        payload_for(LOSSY, 0.95, model)


def test_without_distance_a_single_byte_is_enough() -> None:
    assert payload_for(replace(CLEAN, rtt_s=0.0), 0.9, "early") == 1


@pytest.mark.parametrize("wanted", [0.0, 1.0])
def test_an_efficiency_is_between_0_and_1(wanted: float) -> None:
    with pytest.raises(ValueError, match="allowed: between 0 and 1"):
        payload_for(CLEAN, wanted, "early")


def test_a_curve_has_the_predictions_of_its_places() -> None:
    sizes = [MB, 10 * MB, 600 * MB]
    own = curve(LOSSY, "early", "payload", sizes)
    assert own.places.tolist() == sizes
    for size, rate_bps in zip(sizes, own.throughput_bps, strict=True):
        single = predict(replace(LOSSY, payload_bytes=size), "early")
        assert rate_bps == single.throughput_bps
    assert (own.low_bps < own.throughput_bps).all() and (own.throughput_bps < own.high_bps).all()


def test_over_the_rate_throughput_grows_and_stays_below_it() -> None:
    rates = [1e8, 2e8, 4e8, 8e8]
    own = curve(CLEAN, "passes", "rate", rates)
    assert own.places.tolist() == rates
    assert (np.diff(own.throughput_bps) > 0).all()
    assert (own.throughput_bps < own.places).all()


def test_crossings_are_found_to_the_byte_and_jumps_too() -> None:
    assert crossings(lambda size: size, lambda _: 12_345.5, 1, MB) == (12_346,)
    assert crossings(lambda size: 0.0 if size < 777 else 2.0, lambda _: 1.0, 1, MB) == (777,)
    assert crossings(lambda _: 1.0, lambda _: 2.0, 1, MB) == ()


def test_a_range_of_payloads_runs_upwards() -> None:
    with pytest.raises(ValueError, match="is not a range"):
        crossings(lambda _: 1.0, lambda _: 1.0, 10, 10)


def test_round_places_are_1_2_5_and_the_ends() -> None:
    assert round_places(600, 60_000) == [
        600, 1000, 2000, 5000, 10_000, 20_000, 50_000, 60_000
    ]  # fmt: skip
    assert round_places(1, 10) == [1, 2, 5, 10]


@draws(30)
@given(low=st.integers(1, 10**9), factor=st.floats(2, 1e6))
def test_round_places_keep_their_order_and_their_ends(low: int, factor: float) -> None:
    places = round_places(low, low * factor)
    assert places == sorted(set(places))
    assert (places[0], places[-1]) == (low, round(low * factor))
