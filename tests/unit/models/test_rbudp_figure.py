"""The picture of the models: curves where they belong, a marker for each measured blast."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from farline.models.rbudp import MODEL_NAMES, Case
from farline.models.rbudp_curves import Variable, curve
from farline.models.rbudp_measured import Measured, measured
from farline.plots.rbudp_model_figure import NamedCurves, draw_rbudp_model
from farline.plots.style import paper_style, save
from tests.unit.models.records import made_blast, made_run

MB = 10**6
CASE = Case(600 * MB, 610e6, 0.11, 0.07)


def points() -> tuple[Measured, ...]:
    return measured(made_run(1, [made_blast(600 * MB, 9.36)]), CASE, 0.11, 0.07)


def drawn(over: Variable, places: list[float]) -> NamedCurves:
    return NamedCurves("here", [curve(CASE, name, over, places) for name in MODEL_NAMES])


@pytest.mark.parametrize(
    ("over", "places", "factor", "label", "at"),
    [
        ("payload", [1e6, 1e8, 1e9], 1e6, "Payload (MB), log scale", 600.0),
        ("rate", [1e8, 3e8, 6.1e8], 1e6, "Sending rate (Mbit/s)", 610.0),
    ],
)
def test_lines_are_the_curves_and_markers_the_blasts(
    over: Variable, places: list[float], factor: float, label: str, at: float
) -> None:
    named = drawn(over, places)
    with paper_style():
        panel = draw_rbudp_model([named], points()).axes[0]
    *lines, marks = panel.lines
    for line, own in zip(lines, named.curves, strict=True):
        assert np.asarray(line.get_xdata()) == pytest.approx(np.array(places) / factor)
        assert np.asarray(line.get_ydata()) == pytest.approx(own.throughput_bps / 1e6)
    assert np.asarray(marks.get_xdata()) == pytest.approx([at])
    assert np.asarray(marks.get_ydata()) == pytest.approx([8 * 600 / 9.36])
    assert panel.get_xlabel() == label and panel.get_ylabel() == "Throughput (Mbit/s)"
    assert panel.get_ylim()[0] == 0


def test_cases_differ_in_colour_and_models_in_kind_of_line() -> None:
    with paper_style():
        panel = draw_rbudp_model([drawn("payload", [1e6, 1e9])] * 2, ()).axes[0]
    assert len({line.get_color() for line in panel.lines}) == 2
    texts = [text for text in panel.get_legend_handles_labels()[1] if text != "measured"]
    assert len(texts) == 6 and texts[0] == "here, as printed"
    assert len(panel.collections) == 4  # the spans of the corrected ones


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_values_make_the_same_file(tmp_path: Path, kind: str) -> None:
    files = []
    for name in ("a", "b"):
        with paper_style():
            figure = draw_rbudp_model([drawn("payload", [1e6, 1e9])], points())
            files += save(figure, tmp_path / name, [kind])
    assert files[0].read_bytes() == files[1].read_bytes()
