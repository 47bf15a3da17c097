"""The page of an analysis for a browser, and its figures for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from farline.errors import SystemFailure
from farline.plots.analysis_values import AnalysisData
from farline.plots.whole_file import write_whole

FORMATS = ("png", "svg")


def write_analysis_page(
    data: AnalysisData, path: Path, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write the page to `path`, and every figure into `figures/` beside it, in these formats.

    Returns the files, the page first. What is there under the same names is replaced; the page
    appears whole or not at all. With no formats there is the page alone.

    Raises:
        SystemFailure: the folder cannot be written.
    """
    from farline.plots.analysis_page import render_analysis

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figures = _figures(data, path.parent / "figures", formats) if formats else []
        write_whole(path, render_analysis(data, [found.name for found in figures]))
    except OSError as error:
        raise SystemFailure(f"{path}: cannot write the page: {error.strerror}") from error
    return [path, *figures]


def write_analysis_figures(
    data: AnalysisData, folder: Path, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Draw every figure that the data allows into `folder`; returns the files.

    `captions.txt` beside them says below each what a paper would write.

    Raises:
        SystemFailure: the folder cannot be written.
    """
    try:
        return _figures(data, folder, formats)
    except OSError as error:
        raise SystemFailure(f"{folder}: cannot write the figures: {error.strerror}") from error


def _figures(data: AnalysisData, folder: Path, formats: Sequence[str]) -> list[Path]:
    from farline.plots.analysis_figures import analysis_figures
    from farline.plots.figures import write_drawn

    return write_drawn(analysis_figures(data), folder, formats)
