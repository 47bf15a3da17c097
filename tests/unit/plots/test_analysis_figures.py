"""Figures of an analysis: what is drawn is what was measured, and gaps and failures stay such."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from farline.plots.analysis_figures import analysis_figures, draw_io, draw_running, slug
from farline.plots.analysis_values import AnalysisData, ProfileView, UseBar
from farline.plots.comparison_figure import draw_comparison
from farline.plots.cuc_bars_figure import bar_parts, draw_cuc_bars
from farline.plots.heat_figure import draw_knob_heat
from farline.plots.profile_figure import draw_profiles
from farline.plots.site_matrix_figure import draw_site_matrix, site_names
from farline.plots.style import FAILED, paper_style
from tests.support.analyses import (
    RTT_MS,
    SITES,
    made_analysis,
    made_bars,
    made_comparisons,
    made_empty,
    made_grids,
    made_io,
    made_line,
    made_pairs,
    made_profile,
    made_single,
    made_streams,
    made_view,
)


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    with paper_style():
        yield


@pytest.fixture(scope="module")
def data() -> AnalysisData:
    return made_analysis()


def means(panel: Axes) -> list[list[float]]:
    """Heights of the means of each profile in a panel."""
    bars = [c for c in panel.containers if isinstance(c, ErrorbarContainer)]
    return [[float(y) for y in np.asarray(bar.lines[0].get_ydata())] for bar in bars]


def whisker_ends(panel: Axes) -> list[list[float]]:
    (bar,) = [c for c in panel.containers if isinstance(c, ErrorbarContainer)]
    return [[float(end) for end in segment[:, 1]] for segment in bar.lines[2][0].get_segments()]


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def in_figure(figure: Figure) -> bool:
    """Whether all that is written is within the figure, legend and labels alike."""
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    ends = [box.x0, box.y0, width - box.x1, height - box.y1]
    return all(float(end) >= -0.02 for end in ends)


def apart(panel: Axes) -> bool:
    """Whether no two labels of the x axis touch."""
    panel.figure.draw_without_rendering()  # type: ignore[union-attr]
    boxes = [text.get_window_extent() for text in panel.get_xticklabels() if text.get_text()]
    return all(not one.overlaps(two) for one, two in itertools.pairwise(boxes))


def test_means_stand_at_their_rates_with_their_intervals() -> None:
    view = made_view("all", made_profile())
    (panel,) = draw_profiles([view]).axes
    (drawn,) = means(panel)
    assert np.allclose(drawn, view.profile.mean_bps / 1e9)
    assert view.mean_low_bps is not None and view.mean_high_bps is not None
    ends = np.array(whisker_ends(panel)).T * 1e9
    assert np.allclose(ends, [view.mean_low_bps, view.mean_high_bps])
    assert panel.get_ylim()[0] == 0 and panel.get_ylabel() == "Throughput (Gbit/s)"


def test_without_intervals_whiskers_are_standard_deviations() -> None:
    profile = made_profile()
    (panel,) = draw_profiles([ProfileView("all", profile)]).axes
    ends = np.array(whisker_ends(panel)).T * 1e9
    assert np.allclose(ends[1] - ends[0], 2 * profile.sd_bps)


def test_single_rates_are_drawn_where_there_are_at_most_ten() -> None:
    def dots(n: int) -> int:
        (panel,) = draw_profiles([made_view("all", made_profile(n=n))]).axes
        drawn = [np.asarray(line.get_ydata()) for line in panel.lines if line.get_marker() == "."]
        return sum(map(len, drawn))

    assert dots(10) == 10 * len(RTT_MS)
    assert dots(11) == 0 and dots(1) == 0


def test_the_model_is_dashed_only_beyond_what_was_measured(data: AnalysisData) -> None:
    figure = draw_profiles([data.profiles[0]])
    lines = {str(line.get_label()): line for line in figure.axes[0].lines}
    inside, beyond = lines["model: window"], lines["extrapolated"]
    assert inside.get_linestyle() == "-" and beyond.get_linestyle() == "--"
    assert float(np.max(np.asarray(inside.get_xdata()))) == 366.0
    assert float(np.min(np.asarray(beyond.get_xdata()))) == 366.0
    assert float(np.max(np.asarray(beyond.get_xdata()))) == 450.0


def test_the_legend_names_what_is_drawn_and_fits(data: AnalysisData) -> None:
    figure = draw_profiles([data.profiles[0]])
    texts = legend_texts(figure)
    assert {"All sites", "model: window", "n W / RTT", "above the chord", "concave"} <= set(texts)
    assert in_figure(figure)


def test_a_convex_profile_has_no_concave_area() -> None:
    profile = made_profile((10.0, 20.0, 40.0, 80.0))
    bent = replace(profile, mean_bps=1e11 / profile.rtt_ms, points_bps=None)
    texts = legend_texts(draw_profiles([made_view("all", bent)]))
    assert "below the chord" in texts and "above the chord" not in texts


def test_a_capacity_far_above_the_rates_is_said_and_does_not_flatten_the_picture() -> None:
    view = made_view("all", made_profile(capacity_bps=100e9))
    (panel,) = draw_profiles([view]).axes
    assert panel.get_ylim()[1] < 15
    assert "capacity 100 Gbit/s, above the figure" in [text.get_text() for text in panel.texts]


def test_a_whisker_of_two_runs_does_not_set_the_scale() -> None:
    view = made_view("all", made_profile())
    wild = replace(view, mean_high_bps=np.full(len(RTT_MS), 9e12))
    (panel,) = draw_profiles([wild]).axes
    assert panel.get_ylim()[1] < 15


@pytest.mark.parametrize("log", [False, True])
def test_labels_of_twenty_eight_times_do_not_touch(data: AnalysisData, log: bool) -> None:
    (panel,) = draw_profiles([data.profiles[0]], log).axes
    assert apart(panel)


def test_many_profiles_get_a_panel_each_with_the_others_behind(data: AnalysisData) -> None:
    sites = [view for view in data.profiles if view.group == "site"]
    figure = draw_profiles(sites)
    panels = [panel for panel in figure.axes if panel.axison]
    assert [panel.get_title(loc="left") for panel in panels] == list(SITES)
    for panel, view in zip(panels, sites, strict=True):
        assert np.allclose(means(panel)[0], view.profile.mean_bps / 1e9)
    assert in_figure(figure)


def test_a_few_profiles_share_a_panel_under_the_name_of_their_setting() -> None:
    views = made_streams().profiles
    figure = draw_profiles(views, log=True)
    (panel,) = figure.axes
    assert len(means(panel)) == 5
    assert figure.legends[0].get_title().get_text() == "Parallel streams"
    assert panel.get_xticklabels()[0].get_text() == "0"
    assert apart(panel) and in_figure(figure)


def test_one_measurement_without_a_capacity_can_be_drawn() -> None:
    (panel,) = draw_profiles(made_single().profiles).axes
    assert len(means(panel)[0]) == 1


def test_running_curves_have_bands_and_the_line_of_a_full_path(data: AnalysisData) -> None:
    (panel,) = draw_running(data.profiles[:2]).axes
    curve = data.profiles[0].running
    assert curve is not None
    assert np.allclose(np.asarray(panel.lines[0].get_ydata()), curve.c_uc)
    assert len(panel.collections) == 2
    assert panel.get_ylim() == (0.0, 1.0)


def test_a_running_curve_beyond_zero_and_one_stays_in_sight() -> None:
    view = made_view("all", made_profile())
    assert view.running is not None
    far = replace(view.running, c_uc=np.linspace(-0.2, 1.2, len(RTT_MS)), low=None, high=None)
    (panel,) = draw_running([replace(view, running=far)]).axes
    assert panel.get_ylim()[0] < -0.2 and panel.get_ylim()[1] > 1.2


def test_running_curves_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="no profile has a running curve"):
        draw_running(made_single().profiles)


def test_parts_of_a_bar_add_up_to_one_and_show_what_does_not_fit() -> None:
    for bar in made_bars():
        parts = bar_parts(bar)
        assert parts.file + parts.network + parts.unused == pytest.approx(1.0)
        assert parts.odd == (bar.name == "Odd one")
    only = bar_parts(UseBar("network alone", None, made_bars()[1].network))
    assert only.file == 0.0 and only.network > 0.0 and not only.odd


def test_bars_lie_where_their_names_are_long_and_all_fit() -> None:
    lying, standing = draw_cuc_bars(made_bars()), draw_cuc_bars(made_bars()[1:4])
    assert [text.get_text() for text in lying.axes[0].get_yticklabels()][1] == "XDD, XFS"
    assert standing.axes[0].get_xticklabels()[0].get_text() == "XDD, XFS"
    assert any("memory" in text.get_text() for text in lying.axes[0].texts)
    assert in_figure(lying) and in_figure(standing)


def test_the_matrix_leaves_gaps_empty_and_marks_failures() -> None:
    pairs = made_pairs(SITES[:5])
    panel = draw_site_matrix(pairs).axes[0]
    marks = [text for text in panel.texts if text.get_text() == "\N{MULTIPLICATION SIGN}"]
    assert [(mark.get_position(), mark.get_color()) for mark in marks] == [((1, 0), FAILED)]
    rates = [text for text in panel.texts if text not in marks and "ms" not in text.get_text()]
    assert len(rates) == sum(pair.mean_bps is not None for pair in pairs)
    array = np.asarray(panel.images[0].get_array(), dtype=float)
    for pair in pairs:
        place = (SITES.index(pair.from_site), SITES.index(pair.to_site))
        wanted = np.nan if pair.mean_bps is None else pair.mean_bps / 1e9
        assert array[place] == pytest.approx(wanted, nan_ok=True)


def test_sites_keep_the_order_of_the_infrastructure() -> None:
    pairs = made_pairs(("C", "A", "B"))
    assert site_names(pairs) == ["A", "B", "C"]
    assert site_names(pairs, ("B", "nowhere", "A")) == ["B", "A", "C"]


def test_a_heat_map_shows_values_gaps_and_failures() -> None:
    rates, scores = made_grids()
    panel = draw_knob_heat(rates).axes[0]
    texts = {text.get_position(): text.get_text() for text in panel.texts}
    assert texts[0, 0] == "1.00" and texts[4, 4] == "\N{MULTIPLICATION SIGN}"
    assert (3, 0) not in texts and len(texts) == 24
    assert "$C_{UC}$" in [axes.get_ylabel() for axes in draw_knob_heat(scores).axes]


def test_input_and_output_are_drawn_over_doublings() -> None:
    (panel,) = draw_io(made_io()).axes
    assert [text.get_text() for text in panel.get_xticklabels()] == ["1", "2", "4", "8", "16", "32"]
    assert np.allclose(means(panel)[0], made_io()[0].mean_bps / 1e9)


def test_a_ratio_stands_below_both_profiles_as_shares_of_capacity() -> None:
    ratio, difference = made_comparisons()
    upper, lower = draw_comparison(ratio).axes
    assert upper.get_ylabel() == "Throughput (share of capacity)"
    assert np.allclose(np.asarray(lower.lines[0].get_ydata()), ratio.values)
    assert draw_comparison(difference).axes[1].get_ylabel() == "Difference (Gbit/s)"
    bare = replace(ratio, first=replace(ratio.first, capacity_bps=None))
    assert draw_comparison(bare).axes[0].get_ylabel() == "Throughput (Gbit/s)"


def test_every_kind_of_figure_has_a_name_of_its_own_and_a_caption(data: AnalysisData) -> None:
    few = tuple(view for view in data.profiles if view.group != "site")
    found = list(analysis_figures(replace(data, profiles=few + data.profiles[2:4])))
    names = [drawn.name for drawn in found]
    assert len(set(names)) == len(names) and all(slug(name) == name for name in names)
    for start in ("profile-t", "profile-e", "profiles-t-site", "running-t", "cuc-bars", "sites-t"):
        assert any(name.startswith(start) for name in names), start
    for start in ("heat-", "io", "ratio-", "difference-"):
        assert any(name.startswith(start) for name in names), start
    assert all(drawn.caption.endswith(".") for drawn in found)
    captions = {drawn.name: drawn.caption for drawn in found}
    assert "95\u202f% confidence intervals" in captions["profile-t-all-sites"]
    whole = captions["profile-t-all-sites"]
    assert "2 failed transfers count not included in means." in whole
    # Two sites with 2 failed transfers each, which are those of the whole.
    assert "2 failed transfers count not included in means." in captions["profiles-t-site"]
    assert "Dashed" in whole and "Dashed" not in captions["profile-e-all-sites-files"]
    inside = replace(data.profiles[0], fitted=made_line(end_ms=366.0))
    (only, *_) = analysis_figures(AnalysisData("", (inside,)))
    assert "Dashed" not in only.caption
    (sites, *_) = analysis_figures(AnalysisData("", data.profiles[2:4]))
    assert "failed" not in sites.caption


def test_nothing_measured_gives_no_figure_but_the_failed_pair() -> None:
    assert [drawn.name for drawn in analysis_figures(made_empty())] == ["sites-t"]
