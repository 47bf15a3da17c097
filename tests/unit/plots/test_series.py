"""Samples of many streams on one time axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.plots.series import run_series
from tests.support.campaigns import made_samples, made_udt_samples

Columns = dict[str, "np.ndarray[Any, Any]"]


def samples(*ways: str, count: int = 3, bps: float = 8e9, duration_s: float = 2.0) -> Columns:
    return made_samples(ways, count, bps, duration_s, np.random.default_rng(3))


def received(columns: Columns, stream: int | None = None) -> int:
    rows = columns["role"] == 1
    if stream is not None:
        rows &= columns["stream"] == stream
    return int(columns["bytes"][rows].sum())


def test_the_total_is_the_sum_of_the_streams_and_no_byte_is_lost() -> None:
    columns = samples("forward")
    series = run_series(columns)
    assert series is not None
    (direction,) = series.directions
    widths = np.diff(series.edges_s)
    assert direction.seen_by == "receiver" and set(direction.streams_bps) == {0, 1, 2}
    assert np.allclose(sum(direction.streams_bps.values()), direction.total_bps)
    assert (direction.total_bps * widths).sum() / 8 == pytest.approx(received(columns), rel=1e-9)


@given(st.integers(1, 40), st.integers(1, 60))
def test_a_coarser_grid_keeps_every_byte(points: int, tenths: int) -> None:
    columns = samples("forward", count=2, duration_s=tenths / 10)
    series = run_series(columns, max_points=points)
    assert series is not None and len(series.middles_s) <= points + 1
    moved = (series.directions[0].total_bps * np.diff(series.edges_s)).sum() / 8
    assert moved == pytest.approx(received(columns), rel=1e-9)


def test_both_directions_are_kept_apart() -> None:
    series = run_series(samples("forward", "reverse", count=2))
    assert series is not None
    assert [direction.way for direction in series.directions] == ["forward", "reverse"]
    assert [sorted(direction.streams_bps) for direction in series.directions] == [[0, 1], [2, 3]]


def test_gauges_come_from_the_sender_and_unknown_is_no_number() -> None:
    columns = samples("forward", count=1)
    columns["rtt_us"][3] = -1
    series = run_series(columns)
    assert series is not None
    rtt = series.directions[0].rtt_us[0]
    assert np.isnan(rtt).sum() == 1 and np.nanmin(rtt) > 0


def test_a_transport_without_gauges_has_none() -> None:
    columns = samples("forward", count=1)
    columns["rtt_us"][:] = columns["cwnd_bytes"][:] = -1
    series = run_series(columns)
    assert series is not None
    assert not series.directions[0].rtt_us and not series.directions[0].cwnd_bytes


def test_without_the_receivers_samples_the_senders_are_shown_and_named() -> None:
    columns = samples("forward")
    sent = {name: column[columns["role"] == 0] for name, column in columns.items()}
    series = run_series(sent)
    assert series is not None and series.directions[0].seen_by == "sender"


def test_a_short_last_interval_joins_the_one_before() -> None:
    columns = samples("forward", count=1, duration_s=1.0)
    last = columns["end_us"].max()
    columns["end_us"][columns["end_us"] == last] = last + 3000
    series = run_series(columns)
    assert series is not None
    assert len(series.middles_s) == 10
    assert series.edges_s[-1] == pytest.approx((last + 3000) / 1e6)


def test_no_samples_make_no_series() -> None:
    empty = {name: column[:0] for name, column in samples("forward").items()}
    assert run_series(empty) is None


def test_a_udt_run_has_flight_send_period_and_losses() -> None:
    series = run_series(made_udt_samples())
    assert series is not None
    (direction,) = series.directions
    assert set(direction.flight_packets) == {0, 1} and (direction.flight_packets[0] == 700).all()
    period_us = direction.send_period_us[1]
    assert np.isnan(period_us[:10]).all() and (period_us[10:] == 1.5).all()
    assert (direction.lost_packets[0] == 3).all()


def test_losses_on_a_coarser_grid_are_all_there() -> None:
    columns = made_udt_samples()
    series = run_series(columns, max_points=4)
    assert series is not None
    counted = sum(values.sum() for values in series.directions[0].lost_packets.values())
    assert counted == columns["lost_packets"][columns["role"] == 1].sum()


def test_a_run_without_pacing_has_no_send_period() -> None:
    columns = made_udt_samples()
    columns["send_period_ns"][columns["role"] == 0] = 0
    series = run_series(columns)
    assert series is not None and series.directions[0].send_period_us == {}
