"""Figures: what is drawn is what was measured, at sizes that print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from farline.plots.axes import parameter_axis
from farline.plots.curves import select_curves
from farline.plots.data import CampaignData, campaign_data, middle_run
from farline.plots.distribution_figure import draw_distribution
from farline.plots.figures import draw_limits, write_figures
from farline.plots.heat_figure import draw_heat
from farline.plots.labels import LIMIT_TEXT, THROUGHPUT, settings_text
from farline.plots.response_figure import draw_response
from farline.plots.series import run_series
from farline.plots.series_figure import draw_series
from farline.plots.style import (
    LIMIT_COLOURS,
    STEPS_LIGHT,
    WORDS_LIGHT,
    ink_on,
    palette,
    paper_style,
)
from farline.profiles.response import ResponsePoint
from tests.support.campaigns import made_udt_samples

FIXED = {"tcp.congestion_control": "cubic"}


def places(figure: Figure, marker: str) -> list[float]:
    """Where the first panel has markers of this kind."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() == marker]
    return [float(x) for line in lines for x in np.asarray(line.get_xdata())]


def test_every_mean_is_where_it_belongs(grid: CampaignData) -> None:
    shown = select_curves(grid.throughput, THROUGHPUT, "block_bytes", "streams", FIXED)
    with paper_style():
        figure = draw_response(shown)
    containers = figure.axes[0].containers
    assert len(containers) == len(shown.curves)
    for container, curve in zip(containers, shown.curves, strict=True):
        drawn = container.lines[0].get_ydata()  # type: ignore[attr-defined]
        assert np.allclose(drawn, [(point.mean or 0) / 1e9 for point in curve.points])
    assert figure.axes[0].get_ylim()[0] == 0
    assert figure.axes[0].get_ylabel() == "Throughput (Gbit/s)"
    assert figure.axes[0].get_xlabel() == "Block size, log scale"


def test_words_are_not_joined_by_lines(grid: CampaignData) -> None:
    fixed = {"block_bytes": 1024 * 1024}
    shown = select_curves(grid.throughput, THROUGHPUT, "tcp.congestion_control", "streams", fixed)
    with paper_style():
        figure = draw_response(shown)
    for container in figure.axes[0].containers:
        assert container.lines[0].get_linestyle() == "None"  # type: ignore[attr-defined]


def test_a_setting_without_any_complete_run_is_a_cross_and_no_zero() -> None:
    points = [
        ResponsePoint({"streams": 1}, (2e9, 2.1e9), ("a", "b"), 2.05e9, 1e9, 3e9),
        ResponsePoint({"streams": 2}, failed=3),
    ]
    with paper_style():
        figure = draw_response(select_curves(points, THROUGHPUT, "streams"))
    (container,) = figure.axes[0].containers
    assert len(container.lines[0].get_xdata()) == 1  # type: ignore[attr-defined]
    assert places(figure, "x") == [2.0]


def test_single_runs_are_drawn_up_to_ten_and_not_beyond() -> None:
    def dots(count: int) -> int:
        values = tuple(1e9 + i for i in range(count))
        point = ResponsePoint({"streams": 1}, values, values, 1e9, 0.9e9, 1.1e9)  # type: ignore[arg-type]
        with paper_style():
            figure = draw_response(select_curves([point], THROUGHPUT, "streams"))
        return len(places(figure, "."))

    assert dots(10) == 10 and dots(11) == 0


def test_text_is_at_least_eight_points_and_figures_fit_a_column(grid: CampaignData) -> None:
    shown = select_curves(grid.throughput, THROUGHPUT, "block_bytes", "streams", FIXED)
    with paper_style():
        figure = draw_response(shown)
        figure.draw_without_rendering()
    assert figure.get_size_inches()[0] == 3.5
    panel = figure.axes[0]
    texts = [*panel.get_xticklabels(), *panel.get_yticklabels(), panel.xaxis.label]
    texts += figure.legends[0].get_texts()
    assert min(float(text.get_fontsize()) for text in texts) >= 8


def test_the_heat_map_writes_every_mean_and_crosses_what_failed() -> None:
    points = [
        ResponsePoint({"streams": 1, "block_bytes": 8}, (1e9,), ("a",), 1e9),
        ResponsePoint({"streams": 2, "block_bytes": 8}, (2e9,), ("b",), 2e9),
        ResponsePoint({"streams": 1, "block_bytes": 16}, failed=1),
        ResponsePoint({"streams": 2, "block_bytes": 16}, (4e9,), ("c",), 4e9),
    ]
    shown = select_curves(points, THROUGHPUT, "streams", "block_bytes")
    with paper_style():
        figure = draw_heat(shown, parameter_axis("block_bytes", [8, 16]))
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert texts == {"1.00", "2.00", "4.00", "\N{MULTIPLICATION SIGN}"}


def test_bars_add_up_to_the_runs() -> None:
    bars = [("1", {"path": 3, "not complete": 2}), ("2", {"cwnd": 5})]
    with paper_style():
        figure = draw_limits(bars, "Streams")
    widths = sum(patch.get_width() for patch in figure.axes[0].patches)  # type: ignore[attr-defined]
    assert widths == 10


def test_repetitions_show_every_run(grid: CampaignData) -> None:
    named = [(settings_text(point.settings), point) for point in grid.throughput[:3]]
    with paper_style():
        figure = draw_distribution(named, THROUGHPUT)
    assert len(places(figure, "o")) == sum(point.n for _, point in named)


def test_a_run_over_time_has_a_panel_for_each_thing_known(both_ways: CampaignData) -> None:
    series = run_series(next(iter(both_ways.samples.values())))
    assert series is not None
    with paper_style():
        figure = draw_series(series, {"forward": 0.3, "reverse": 0.2})
    labels = [panel.get_ylabel().split(" ")[0] for panel in figure.axes]
    assert labels == ["Throughput", "RTT", "Cwnd"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "client to server" in legend and "server to client" in legend


def test_a_udt_run_has_its_own_panels_too() -> None:
    series = run_series(made_udt_samples())
    assert series is not None
    with paper_style():
        figure = draw_series(series, {})
    labels = [panel.get_ylabel() for panel in figure.axes]
    assert [label.split(" (")[0] for label in labels[:3]] == ["Throughput", "RTT", "Cwnd"]
    assert labels[3:] == ["In flight (packets)", "Send period (µs)", "Lost (packets)"]


def test_the_typical_run_is_the_one_in_the_middle() -> None:
    point = ResponsePoint({}, (3.0, 1.0, 2.0), ("c", "a", "b"), 2.0)
    assert middle_run(point) == "b"
    assert middle_run(ResponsePoint({})) is None


@pytest.mark.parametrize("name", ["grid", "single", "both_ways", "lost"])
def test_every_campaign_can_be_drawn(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    data: CampaignData = request.getfixturevalue(name)
    written = write_figures(data, tmp_path, ("png",))
    assert written and all(path.read_bytes().startswith(b"\x89PNG") for path in written)
    captions = (tmp_path / "captions.txt").read_text()
    assert all(f"{path.stem}: " in captions for path in written)


def test_the_same_values_give_the_same_bytes(single: CampaignData, tmp_path: Path) -> None:
    first = write_figures(single, tmp_path / "a", ("svg", "png"))
    second = write_figures(single, tmp_path / "b", ("svg", "png"))
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_runs_without_samples_are_drawn_all_the_same(grid: CampaignData, tmp_path: Path) -> None:
    bare = campaign_data("bare", grid.rows)
    names = {path.stem for path in write_figures(bare, tmp_path, ("svg",))}
    assert "response-streams" in names and not any(name.startswith("time-") for name in names)


def test_colours_are_distinct_and_ordered_ones_span_their_range() -> None:
    assert palette(8, ordered=False) == list(WORDS_LIGHT)
    assert palette(3, ordered=True)[0] == STEPS_LIGHT[0]
    assert palette(3, ordered=True)[-1] == STEPS_LIGHT[-1]
    assert len(set(LIMIT_COLOURS.values())) == len(LIMIT_COLOURS)
    # Every limit of a verdict has one; what did not complete is hatched instead.
    assert LIMIT_COLOURS.keys() == LIMIT_TEXT.keys() - {"not complete"}
    assert ink_on("#000000") == "#ffffff" and ink_on("#ffffff") == "#000000"
