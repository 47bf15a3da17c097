"""Figures that a plan asks for: the axes, panels and curves that it names."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from farline.campaign.plan import Plan, load_plan, plan_from_document
from farline.campaign.settings import Setting
from farline.plots.data import CampaignData
from farline.plots.figures import CAPTIONS, write_figures
from farline.plots.page import render_page
from farline.plots.style import palette, paper_style
from farline.plots.tables import plan_lines
from farline.plots.wanted import WantedFigure, wanted_figures
from farline.plots.wanted_figure import draw_wanted, wanted_caption
from farline.spec.options import Grid
from tests.support.planned import planned_data

PLANS = sorted((Path(__file__).parents[3] / "plans").glob("tpg-*.toml"))
MIB = 1 << 20
BUFFERS = ["tcp.send_buffer_bytes", "tcp.receive_buffer_bytes"]
GROUP = {"buffers_bytes": {"options": BUFFERS, "values": ["128K", "1M", "8M"]}}


def level(setting: Setting) -> float:
    """Rises with block and packet, has its peak at buffers of 1 MiB; Gb/s."""
    spec = setting.spec
    part = next(spec[name] for name in ("udt", "tcp") if name in spec)
    packet = part.get("packet_bytes", 1472)
    peak = 1 / (1 + abs(np.log2(part.get("send_buffer_bytes", MIB) / MIB)) / 8)
    block = spec["block_bytes"]
    return float(9e9 * peak * packet / (packet + 2000) * block / (block + 4000))


def made(*figures: dict[str, Any], **parts: Any) -> CampaignData:
    """Blocks over buffers, with two congestion controls."""
    document = {
        "grid": {"block_bytes": ["16K", "64K"], "tcp": {"congestion_control": "reno,bbr"}},
        "together": GROUP,
        "figure": list(figures),
        **parts,
    }
    return planned_data(plan_from_document(document), level, with_samples=True)


def drawn(data: CampaignData, number: int = 0) -> Figure:
    with paper_style():
        figure = draw_wanted(data, wanted_figures(data.plan)[number])
    assert figure is not None
    return figure


def legend(figure: Figure, panel: int) -> list[str]:
    found = figure.axes[panel].get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


def ticks(figure: Figure, panel: int = 0) -> list[str]:
    return [text.get_text() for text in figure.axes[panel].get_xticklabels()]


def test_a_panel_has_the_curves_that_the_plan_names() -> None:
    data = made(
        {
            "name": "f",
            "x": "block_bytes",
            "curves": "buffers_bytes",
            "panels": [["128K", "1M"], ["8M"]],
            "where": {"tcp": {"congestion_control": "reno"}},
        }
    )
    figure = drawn(data)
    assert [legend(figure, 0), legend(figure, 1)] == [["128 KiB", "1 MiB"], ["8 MiB"]]
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["(a)", "(b)"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    assert figure.axes[0].get_ylabel() == "Throughput (Gbit/s)"
    held = {"tcp.congestion_control": "reno", "buffers_bytes": 131072}
    means = [p.mean for p in data.throughput if p.settings.items() >= held.items()]
    first = figure.axes[0].containers[0].lines[0].get_ydata()  # type: ignore[attr-defined]
    assert np.allclose(first, [(mean or 0) / 1e9 for mean in means])


def test_buffers_stand_at_the_logarithm_of_their_kibibytes() -> None:
    data = made({"name": "f", "x": "buffers_bytes", "x_scale": "log2-KiB", "curves": "block_bytes"})
    figure = drawn(data)
    assert ticks(figure) == ["7", "10", "13"]
    assert figure.axes[0].get_xlabel() == "log2 of the buffers in KiB"
    # What lies on no axis stands where it is best.
    assert "At " in wanted_caption(data, wanted_figures(data.plan)[0])


def test_blocks_are_counted_in_payloads_of_a_packet() -> None:
    """Yun et al. 2015, Fig. 6: n is the block over the packet less UDT's header of 16 bytes."""
    plan = load_plan(next(path for path in PLANS if path.stem == "tpg-block-size"))
    figure = drawn(planned_data(plan, level))
    assert ticks(figure)[0] == "1" and ticks(figure)[-1] == "20"
    places = figure.axes[0].get_xticks()
    assert places[0] == 8955 and places[-1] == 179119
    assert figure.axes[0].get_xlabel() == "Block size (n)"


def test_bars_stand_for_points_with_one_row_for_each_result() -> None:
    data = made(
        {
            "name": "f",
            "kind": "bars",
            "x": "point",
            "curves": "tcp.congestion_control",
            "x_label": "Experiment",
            "y": ["total_bps", "mean_rtt_us"],
        },
        grid={"tcp": {"congestion_control": "reno,bbr"}},
        together={},
        point=[{"block_bytes": "16K"}, {"block_bytes": "64K"}, {"name": 8, "block_bytes": "1M"}],
    )
    figure = drawn(data)
    assert [len(panel.patches) for panel in figure.axes] == [6, 6]
    assert ticks(figure, 1) == ["1", "2", "8"]
    assert figure.axes[1].get_xlabel() == "Experiment"
    assert figure.axes[1].get_ylabel().startswith("Mean round-trip time")
    assert legend(figure, 0) == ["bbr", "reno"]
    assert data.parameters == ["point", "tcp.congestion_control"]


def test_the_page_says_what_points_and_groups_stand_for() -> None:
    data = made(point=[{"streams": 1}, {"name": "many", "streams": 8}])
    said = {fact.name: fact.client for fact in plan_lines(data)}
    assert said["Buffers are"] == "TCP send buffer, TCP receive buffer"
    assert (said["Point 1"], said["Point many"]) == ("1 stream", "8 streams")


def test_runs_over_time_are_those_of_the_named_points() -> None:
    data = made(
        {"name": "f", "kind": "series", "curves": "point", "panels": [[1, 2], [3]]},
        grid={},
        together={},
        point=[{"block_bytes": size} for size in ("16K", "64K", "1M")],
    )
    figure = drawn(data)
    assert [legend(figure, 0), legend(figure, 1)] == [["1", "2"], ["3"]]
    assert figure.axes[0].get_xlabel() == "Time since the start of the run (s)"
    assert "middle run" in wanted_caption(data, wanted_figures(data.plan)[0])


def test_what_a_command_line_no_longer_varies_is_left_out(tmp_path: Path) -> None:
    plan = plan_from_document(
        {
            "grid": {"block_bytes": ["16K", "64K"]},
            "together": GROUP,
            "figure": [
                {"name": "gone", "x": "block_bytes"},
                {"name": "kept", "x": "buffers_bytes", "curves": "block_bytes"},
            ],
        }
    ).with_grid(Grid({"block_bytes": 4096}))
    data = planned_data(plan, level)
    write_figures(data, tmp_path, ["svg"])
    names = {path.stem for path in tmp_path.iterdir()}
    assert "kept" in names and "gone" not in names


def test_what_a_command_line_holds_elsewhere_is_left_out() -> None:
    control = "tcp.congestion_control"
    plan = plan_from_document(
        {
            "grid": {"block_bytes": ["16K", "64K"], "tcp": {"congestion_control": "reno,bbr"}},
            "figure": [
                {"name": name, "x": "block_bytes", "where": {control: name}}
                for name in ("reno", "bbr")
            ],
        }
    ).with_grid(Grid({"tcp": {"congestion_control": "bbr"}}))
    data = planned_data(plan, level)
    kept = [f.name for f in wanted_figures(data.plan) if draw_wanted(data, f) is not None]
    assert kept == ["bbr"]


def test_what_was_not_measured_gives_no_figure() -> None:
    data = made({"name": "f", "x": "block_bytes"})
    assert draw_wanted(data, WantedFigure("g", x="streams")) is None
    assert draw_wanted(data, WantedFigure("g", x="block_bytes", y=("lost_packets",))) is None
    assert draw_wanted(data, WantedFigure("g", kind="series", curves="streams")) is None


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_figure_of_a_shipped_plan_can_be_drawn(path: Path) -> None:
    plan: Plan = load_plan(path)
    data = planned_data(plan, level, with_samples=path.stem == "tpg-table1")
    assert len(data.throughput) == len(data.plan["settings"])
    assert {figure.name for figure in plan.figures} == {
        figure.name for number, figure in enumerate(plan.figures) if drawn(data, number).axes
    }
    # The plan that the report prints is the plan that was run.
    again = plan_from_document(tomllib.loads(data.plan_text))
    assert again.factors == plan.factors and again.figures == plan.figures


def test_the_report_has_them_with_their_captions(tmp_path: Path) -> None:
    data = made({"name": "fig-6", "x": "block_bytes", "caption": "As Yun et al. 2015, Fig. 6"})
    write_figures(data, tmp_path, ["svg"])
    assert (tmp_path / "fig-6.svg").is_file()
    captions = (tmp_path / CAPTIONS).read_text(encoding="utf-8")
    assert "fig-6: As Yun et al. 2015, Fig. 6. At " in captions
    assert "fig-6.svg" in render_page(data, ["fig-6.svg"])


def test_more_curves_than_colours_are_told_apart() -> None:
    assert len(set(palette(12, ordered=True))) == 12
    assert palette(12, ordered=True)[0] == palette(2, ordered=True)[0].lower()
