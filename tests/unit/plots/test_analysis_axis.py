"""The axis of round-trip times: order is kept, zero has a place, labels do not touch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.plots.rtt_axis import rtt_axis
from tests.support.analyses import RTT_MS

TIMES = st.lists(
    st.floats(0.001, 1000.0, allow_nan=False).map(lambda time: round(time, 3)),
    min_size=1,
    max_size=30,
    unique=True,
)


@given(TIMES, st.booleans(), st.booleans())
def test_places_rise_with_round_trip_times(times: list[float], log: bool, zero: bool) -> None:
    knots = sorted([*([0.0] if zero else []), *times])
    axis = rtt_axis(knots, log)
    places = axis.place(knots)
    assert np.all(np.diff(places) > 0) and np.all(np.isfinite(places))
    low, high = axis.limits
    assert low < places[0] and places[-1] < high


@given(TIMES, st.booleans(), st.integers(2, 9))
def test_labels_are_within_the_axis_and_apart(times: list[float], log: bool, room: int) -> None:
    axis = rtt_axis(times, log)
    ticks = axis.ticks(room)
    low, high = axis.limits
    places = [place for place, _ in ticks]
    assert 1 <= len(ticks) <= room + 2
    assert all(low <= place <= high for place in places)
    assert places == sorted(set(places)) and len({text for _, text in ticks}) == len(ticks)


@pytest.mark.parametrize("log", [False, True])
def test_twenty_eight_times_have_a_few_round_labels(log: bool) -> None:
    texts = [text for _, text in rtt_axis(RTT_MS, log).ticks()]
    assert texts == (["1", "3", "10", "30", "100", "300"] if log else ["0", "100", "200", "300"])


def test_zero_has_a_place_on_a_log_axis() -> None:
    axis = rtt_axis([0.0, 0.4, 366.0], log=True)
    assert axis.place([0.0])[0] == 0.0
    assert axis.ticks()[0] == (0.0, "0")
    assert axis.label == "Round-trip time (ms, log scale)"


def test_zero_alone_is_drawn_on_a_linear_axis() -> None:
    axis = rtt_axis([0.0], log=True)
    assert not axis.log and axis.limits == (-0.5, 0.5)


def test_a_straight_line_between_knots_is_drawn_bent_on_a_log_axis() -> None:
    axis = rtt_axis([1.0, 100.0], log=True)
    along = axis.along([1.0, 100.0])
    assert along[0] == 1.0 and along[-1] == 100.0 and len(along) > 100
    assert np.allclose(np.diff(axis.place(along))[1:-1], 2 / 239, rtol=0.01)
    assert rtt_axis([1.0, 100.0]).along([1.0, 100.0]).tolist() == [1.0, 100.0]


def test_times_that_are_none_do_not_break_the_axis() -> None:
    assert rtt_axis([math.nan, 3.0]).low_ms == 3.0
    assert rtt_axis([]).limits[0] < rtt_axis([]).limits[1]
