"""Response points: who counts in a mean, how sure it is, and what varies."""

from __future__ import annotations

import math
from typing import Any

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from farline.profiles.response import (
    is_determined,
    mean_interval,
    response,
    setting_of,
    sweepable_parameters,
    varying_parameters,
)


def row(bps: float | None = 1e9, status: str = "complete", **settings: Any) -> dict[str, Any]:
    return {"run_id": f"r{bps}", "status": status, "total_bps": bps, **settings}


def test_a_point_is_the_mean_of_its_runs_with_an_interval() -> None:
    values = [9.1e9, 9.3e9, 9.6e9, 9.2e9]
    (point,) = response([row(value, streams=4) for value in values], ["streams"])
    sem = scipy.stats.sem(values)
    low, high = scipy.stats.t.interval(0.95, 3, loc=sum(values) / 4, scale=sem)
    assert point.mean == pytest.approx(sum(values) / 4)
    assert point.low == pytest.approx(low, rel=1e-3) and point.high == pytest.approx(high, rel=1e-3)
    assert point.values == tuple(values) and point.n == 4
    assert point.settings == {"streams": 4}


def test_failed_and_partial_runs_are_counted_and_never_zeros() -> None:
    rows = [row(8e9), row(0.0, "failed"), row(None, "failed"), row(2e9, "partial")]
    (point,) = response(rows, [])
    assert point.mean == 8e9 and point.values == (8e9,)
    assert (point.failed, point.partial) == (2, 1)
    assert point.low is None and point.high is None


def test_a_setting_without_a_complete_run_has_no_mean() -> None:
    (point,) = response([row(1e9, "failed")], [])
    assert point.mean is None and point.n == 0 and point.failed == 1


def test_unknown_figures_are_left_out_not_taken_for_zero() -> None:
    (point,) = response([row(None), row(float("nan")), row(4e9)], [])
    assert point.values == (4e9,)


def test_points_come_in_the_order_of_their_settings() -> None:
    blocks = [65_536, None, 1024, 1_048_576]
    points = response([row(block_bytes=block) for block in blocks], ["block_bytes"])
    assert [p.settings["block_bytes"] for p in points] == [None, 1024, 65_536, 1_048_576]


def test_any_numeric_column_can_be_asked_for() -> None:
    rows = [{**row(), "cpu_s_per_gb": 0.4}, {**row(), "cpu_s_per_gb": 0.6}]
    (point,) = response(rows, [], "cpu_s_per_gb")
    assert point.mean == pytest.approx(0.5)


def test_verdicts_are_counted_over_complete_runs() -> None:
    rows = [
        {**row(), "verdict_limit": "path"},
        {**row(), "verdict_limit": "path"},
        {**row(), "verdict_limit": "cwnd"},
        {**row(status="failed"), "verdict_limit": "cwnd"},
    ]
    (point,) = response(rows, [])
    assert point.limits == {"path": 2, "cwnd": 1}


def test_a_confidence_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="confidence: 95 is not between 0 and 1"):
        response([row()], [], confidence=95)


def test_lists_and_nan_become_comparable_settings() -> None:
    assert setting_of({"client_cpus": [0, 1]}, "client_cpus") == (0, 1)
    assert setting_of({"omit_s": math.nan}, "omit_s") is None
    assert setting_of({}, "streams") is None


def test_what_varies_is_found_among_the_options_only() -> None:
    rows = [row(1e9, streams=1, seed=1), row(2e9, streams=2, seed=2)]
    assert varying_parameters(rows) == ["streams"]
    assert varying_parameters(rows, ["seed", "streams"]) == ["seed", "streams"]


def test_a_default_that_follows_from_another_option_is_seen_as_such() -> None:
    rows = [
        row(transport="tcp", block_bytes=131_072, streams=1),
        row(transport="tcp", block_bytes=131_072, streams=2),
        row(transport="udp", block_bytes=65_507, streams=1),
    ]
    assert is_determined(rows, "block_bytes", ["transport"])
    assert not is_determined(rows, "streams", ["transport"])
    assert not is_determined(rows, "block_bytes", [])


def test_the_option_table_names_what_a_campaign_may_vary() -> None:
    names = sweepable_parameters()
    assert {"streams", "block_bytes", "tcp.congestion_control"} <= set(names)
    assert not {"seed", "title", "schema"} & set(names)


@given(st.lists(st.floats(1.0, 1e12), min_size=2, max_size=30))
def test_the_interval_holds_the_mean_and_grows_with_confidence(values: list[float]) -> None:
    mean, low, high = mean_interval(values, 0.9)
    _, wider_low, wider_high = mean_interval(values, 0.99)
    assert low is not None and high is not None
    assert wider_low is not None and wider_high is not None
    slack = 1e-9 * mean
    assert low - slack <= mean <= high + slack
    assert wider_low <= low + slack and high <= wider_high + slack
