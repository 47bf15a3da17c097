"""Which points make up which curve."""

from __future__ import annotations

from farline.plots.curves import default_views, select_curves
from farline.plots.data import CampaignData
from farline.plots.labels import THROUGHPUT


def test_points_of_other_settings_are_left_out_not_averaged_in(grid: CampaignData) -> None:
    fixed = {"tcp.congestion_control": "bbr"}
    shown = select_curves(grid.throughput, THROUGHPUT, "block_bytes", "streams", fixed)
    assert [curve.value for curve in shown.curves] == [1, 4]
    assert all(len(curve.points) == 3 for curve in shown.curves)
    for curve in shown.curves:
        for point in curve.points:
            assert point in grid.throughput
            assert point.settings["tcp.congestion_control"] == "bbr"
        sizes = [point.settings["block_bytes"] for point in curve.points]
        assert sizes == sorted(sizes)  # type: ignore[type-var]


def test_one_parameter_makes_one_curve(both_ways: CampaignData) -> None:
    shown = select_curves(both_ways.throughput, THROUGHPUT, "streams")
    assert [curve.value for curve in shown.curves] == [None]
    assert shown.axis.values == (1, 2, 4)


def test_every_parameter_gets_a_view_and_the_rest_stands_at_the_best(grid: CampaignData) -> None:
    views = default_views(grid.throughput, grid.parameters, grid.best)
    assert [x for x, _, _ in views] == list(grid.parameters)
    assert grid.best is not None
    for x, curve, held in views:
        assert {x, curve, *held} == set(grid.parameters)
        assert all(value == grid.best.settings[name] for name, value in held.items())


def test_too_many_values_make_no_curves(grid: CampaignData) -> None:
    assert default_views([], grid.parameters, None) == []
