"""Figures in plans: what is read, and what is refused and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from farline.campaign.plan import Plan, load_plan, plan_from_document
from farline.errors import SpecError
from farline.plots.wanted import WantedFigure

GROUP = {
    "buffer_bytes": {
        "options": ["tcp.send_buffer_bytes", "tcp.receive_buffer_bytes"],
        "values": ["128K", "1M"],
    }
}
BLOCK = {"name": "f", "x": "block_bytes"}


def plan(*figures: Any) -> Plan:
    return plan_from_document(
        {
            "grid": {"block_bytes": ["16K", "64K"], "tcp": {"congestion_control": "reno,bbr"}},
            "together": GROUP,
            "figure": list(figures),
        }
    )


def test_values_are_read_with_their_units() -> None:
    table = {
        **BLOCK,
        "curves": "buffer_bytes",
        "panels": [["128K"], ["1M"]],
        "where": {"tcp": {"congestion_control": "bbr"}},
        "y": "mean_rtt_us",
    }
    (figure,) = plan(table).figures
    assert figure == WantedFigure(
        "f",
        x="block_bytes",
        curves="buffer_bytes",
        panels=((131072,), (1 << 20,)),
        where={"tcp.congestion_control": "bbr"},
        y=("mean_rtt_us",),
    )


def test_a_figure_survives_its_document() -> None:
    made = plan(
        {**BLOCK, "curves": "buffer_bytes", "panels": [["128K"]], "x_scale": "log2-KiB"},
        {"name": "g", "kind": "series", "curves": "buffer_bytes", "caption": "over time"},
    )
    assert plan_from_document(made.document()) == made


@pytest.mark.parametrize(
    ("table", "line"),
    [
        (3, r"figure: must be a list of tables \[\[figure\]\]"),
        ({}, r"\[\[figure\]\] name: None is not 1 to 64 letters"),
        ({"name": "../f", "x": "block_bytes"}, r"name: '../f' is not 1 to 64 letters"),
        ({"name": "f"}, r"\[\[figure\]\] f x: missing"),
        ({"name": "f", "kind": "series"}, "f curves: missing"),
        ({**BLOCK, "xscale": "log2"}, "xscale: unknown; allowed: name, kind, x, curves"),
        ({**BLOCK, "kind": "pie"}, "kind: 'pie' is not allowed; allowed: curves, bars, series"),
        ({**BLOCK, "x_scale": "ln"}, "x_scale: 'ln' is not allowed; allowed: auto, linear"),
        ({**BLOCK, "x_label": 3}, "x_label: 3 is not a string"),
        ({**BLOCK, "kind": "bars", "panels": [[1]]}, "panels: has no meaning in a figure of kind"),
        ({**BLOCK, "panels": ["16K"]}, "panels: must be a list of lists of values of block_bytes"),
        ({**BLOCK, "panels": [["much"]]}, "block_bytes"),
        ({**BLOCK, "where": 3}, "where: must be a table"),
        ({**BLOCK, "where": {"strems": 1}}, "strems: unknown"),
        ({**BLOCK, "curves": "block_bytes"}, "f curves: block_bytes is already on the x axis"),
        ({**BLOCK, "where": {"block_bytes": "16K"}}, "f where: block_bytes is x, so"),
        (
            {**BLOCK, "curves": "buffer_bytes", "where": {"buffer_bytes": "1M"}},
            "f where: buffer_bytes is curves, so",
        ),
        ({**BLOCK, "name": "heat"}, "heat: the report already has a figure of that name"),
        (
            {**BLOCK, "name": "cpu-streams"},
            "cpu-streams: the report already has a figure of that name",
        ),
        ({**BLOCK, "y": ["speed"]}, "y: 'speed' is unknown; allowed: total_bps"),
        ({**BLOCK, "y": []}, "y: the list is empty"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(table: Any, line: str) -> None:
    with pytest.raises(SpecError, match=line) as refusal:
        plan(table)
    assert "\n" not in refusal.value.message


def test_two_figures_do_not_share_a_name() -> None:
    with pytest.raises(SpecError, match="name: 'f' is listed twice"):
        plan(BLOCK, BLOCK)


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ('x = "streams"', "f x: streams does not vary; what varies is block_bytes"),
        ('x = "block_bytes"\ncurves = "point"', "f curves: point does not vary"),
        (
            'x = "block_bytes"\npanels = [["1M"]]',
            ("f panels: block_bytes never has the value 1048576"),
        ),
        ('x = "block_bytes"\nwhere = { streams = 3 }', "f where: streams never has the value 3"),
    ],
)
def test_a_plan_file_draws_only_what_it_varies(tmp_path: Path, lines: str, line: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(f'[grid]\nblock_bytes = ["16K", "64K"]\n[[figure]]\nname = "f"\n{lines}\n')
    with pytest.raises(SpecError, match=line):
        load_plan(path)
