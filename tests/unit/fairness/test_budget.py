"""Harm that is estimated without asking the others, and what a budget allows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.fairness.budget import (
    Probe,
    competing_flows,
    estimated_harm,
    line_rate,
    rate_within,
    streams_within,
)


def on_a_line(streams: int, others: float, capacity_bps: float = 100e6) -> Probe:
    return Probe(streams, capacity_bps * streams / (streams + others))


@given(st.integers(1, 16), st.integers(1, 16), st.floats(0.5, 40))
def test_two_numbers_of_streams_tell_the_number_of_others(
    few: int, more: int, others: float
) -> None:
    one, two = on_a_line(few, others), on_a_line(few + more, others)
    found = competing_flows(one, two)
    if found is not None:
        assert found == pytest.approx(others, rel=1e-6)
        assert line_rate(one, found) == pytest.approx(100e6, rel=1e-6)
        harm = estimated_harm(few, found)
        assert harm == pytest.approx(few / (few + others), rel=1e-6)


def test_a_rate_that_no_stream_adds_to_means_nobody_else_wants_it() -> None:
    assert competing_flows(Probe(1, 80e6), Probe(4, 80e6)) == 0.0
    assert competing_flows(Probe(1, 80e6), Probe(4, 83e6)) == 0.0
    assert estimated_harm(4, 0.0) == 0.0


def test_rates_in_proportion_to_streams_say_nothing_of_others() -> None:
    assert competing_flows(Probe(1, 10e6), Probe(4, 40e6)) is None


@given(st.floats(0.01, 0.99), st.floats(0.3, 200))
def test_streams_within_a_budget_keep_to_it_and_one_more_does_not(
    max_harm: float, others: float
) -> None:
    streams = streams_within(max_harm, others)
    if streams:
        assert estimated_harm(streams, others) <= max_harm + 1e-9
    if streams < 256:
        assert estimated_harm(streams + 1, others) > max_harm - 1e-6


def test_one_flow_beside_one_harms_by_half_so_that_a_fifth_allows_no_whole_stream() -> None:
    assert estimated_harm(1, 1.0) == 0.5
    assert streams_within(0.2, 1.0) == 0
    assert streams_within(0.2, 8.0) == 2
    assert streams_within(0.2, 0.0) == 256


def test_a_rate_within_a_budget_is_what_is_free_and_a_part_of_the_rest() -> None:
    assert rate_within(0.2, 100.0, 60.0) == pytest.approx(68.0)
    assert rate_within(0.0, 100.0, 60.0) == 60.0
    assert rate_within(1.0, 100.0, 60.0) == 100.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: competing_flows(Probe(2, 1.0), Probe(2, 1.0)),
        lambda: competing_flows(Probe(1, 0.0), Probe(2, 1.0)),
        lambda: estimated_harm(0, 1.0),
        lambda: estimated_harm(1, -1.0),
        lambda: streams_within(1.5, 1.0),
        lambda: rate_within(0.2, 100.0, 101.0),
        lambda: line_rate(Probe(1, 1.0), -1.0),
    ],
)
def test_what_has_no_meaning_is_refused(call: object) -> None:
    with pytest.raises(ValueError):
        call()  # type: ignore[operator]
