"""Rows: ratios as the benches' contract has them, and when a row has failed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from _emulator.figures import (
    LARGEST_RATIO,
    Figure,
    Label,
    Seen,
    always,
    at_least,
    at_most,
    none_of,
    share_of,
    within,
)

LABEL = Label("rtt", "10 ms", "ms")
VALID = {"valid": True, "reasons": []}
INVALID: dict[str, Any] = {"valid": False, "reasons": ["late"]}


def test_an_error_within_what_is_allowed_has_a_ratio_above_one() -> None:
    figure = within(LABEL, Seen([10.05, 10.1, 9.9]), 10.0, 0.2)
    assert figure.ratio == pytest.approx(2.0)
    assert figure.ours == 10.05
    assert figure.reached


def test_an_error_beyond_it_falls_short() -> None:
    assert not within(LABEL, Seen([10.3, 10.3, 10.0]), 10.0, 0.2).reached


def test_no_error_at_all_is_a_number_that_json_holds() -> None:
    figure = within(LABEL, Seen([10.0]), 10.0, 0.2)
    assert figure.ratio == LARGEST_RATIO
    json.loads(json.dumps(asdict(figure), allow_nan=False))


@pytest.mark.parametrize(
    ("figure", "reached"),
    [
        (at_least(LABEL, Seen([0.96]), 0.95), True),
        (at_least(LABEL, Seen([0.94]), 0.95), False),
        (share_of(LABEL, Seen([9.3]), 9.9, 0.93), True),
        (share_of(LABEL, Seen([9.1]), 9.9, 0.93), False),
        (at_most(LABEL, Seen([99.0, 100.0]), 100.0), True),
        (at_most(LABEL, Seen([99.0, 99.0, 101.0]), 100.0), False),
        (at_most(LABEL, Seen([0.0]), 100.0), True),
        (none_of(LABEL, Seen([0, 0, 0])), True),
        (none_of(LABEL, Seen([0, 0, 1])), False),
        (always(LABEL, Seen([1, 1])), True),
        (always(LABEL, Seen([1, 0])), False),
    ],
)
def test_limits_hold_on_both_sides(figure: Figure, reached: bool) -> None:
    assert figure.reached is reached


def test_a_figure_of_an_invalid_run_is_not_reached() -> None:
    assert within(LABEL, Seen([10.0], [VALID]), 10.0, 0.2).reached
    assert not within(LABEL, Seen([10.0, 10.0], [VALID, INVALID]), 10.0, 0.2).reached


def test_nothing_measured_is_no_row() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        Seen([])
