"""The curve of Yu et al. 2014, Fig. 3: ideal, and where a measured one becomes flat."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.fairness.curve import find_knee, ideal_rates

LOADS = [float(load) for load in range(1, 11)]


def test_one_flow_beside_one_keeps_half_from_half_on() -> None:
    pairs = [ideal_rates(load, 10.0) for load in LOADS]
    assert pairs[:5] == [(9.0, 1.0), (8.0, 2.0), (7.0, 3.0), (6.0, 4.0), (5.0, 5.0)]
    assert pairs[5:] == [(5.0, 5.0)] * 5


def test_four_flows_beside_one_keep_four_fifths() -> None:
    assert ideal_rates(10.0, 10.0, flows=4) == (8.0, 2.0)
    assert ideal_rates(1.0, 10.0, flows=4) == (9.0, 1.0)


def test_the_knee_of_the_ideal_curve_is_in_its_middle() -> None:
    knee = find_knee(LOADS, [ideal_rates(load, 10.0)[0] for load in LOADS])
    assert knee is not None
    assert knee.load_bps == pytest.approx(5.0, abs=0.05)
    assert knee.plateau_bps == pytest.approx(5.0, abs=0.05)
    assert knee.slope == pytest.approx(1.0, abs=0.02)


@given(
    st.floats(2.5, 8.5),
    st.lists(st.floats(-0.15, 0.15), min_size=10, max_size=10),
)
def test_the_knee_of_a_noisy_curve_is_found_near_its_place(
    place: float, noise: list[float]
) -> None:
    rates = [4.0 + max(place - load, 0.0) + extra for load, extra in zip(LOADS, noise, strict=True)]
    knee = find_knee(LOADS, rates)
    assert knee is not None
    assert knee.load_bps == pytest.approx(place, abs=0.9)


def test_a_transfer_that_does_not_give_way_has_no_knee() -> None:
    assert find_knee(LOADS, [9.4] * 10) is None
    assert find_knee(LOADS, [5 + load / 10 for load in LOADS]) is None
    assert find_knee(LOADS, [9.4, 9.3, 9.4, 9.3, 9.4, 9.3, 9.4, 9.3, 9.4, 9.3]) is None


def test_three_loads_are_too_few() -> None:
    assert find_knee([1.0, 5.0, 10.0], [9.0, 5.0, 5.0]) is None
    with pytest.raises(ValueError):
        find_knee([1.0], [1.0, 2.0])
