"""A quantity over two settings, concurrency and parallelism as in Rao et al. 2018, Fig. 13."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farline.plots.analysis_values import HeatGrid
from farline.plots.labels import digits, rate_unit
from farline.plots.style import FAILED, PAGE_INCHES, ink_on, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def heat_unit(grid: HeatGrid) -> tuple[float, str]:
    """Factor and unit to write the grid's values with."""
    import numpy as np

    known = grid.values[np.isfinite(grid.values)].tolist()
    return rate_unit(known) if grid.unit == "bit/s" else (1.0, grid.unit)


def draw_knob_heat(grid: HeatGrid) -> Figure:
    """One cell per pair of settings with its value; empty where nothing was measured."""
    import numpy as np

    factor, unit = heat_unit(grid)
    width = min(PAGE_INCHES, max(3.5, 1.4 + 0.52 * len(grid.columns)))
    figure, (panel,) = new_figure(1, width, 1.2 + 0.3 * len(grid.rows))
    image = panel.imshow(grid.values / factor, cmap="cividis", aspect="auto", origin="lower")
    colours = image.to_rgba(grid.values / factor)
    for (row, column), value in np.ndenumerate(grid.values / factor):
        if np.isfinite(value):
            ink = ink_on(colours[row, column])
            panel.text(column, row, digits(value), color=ink, ha="center", va="center")
        elif (row, column) in grid.failed:
            mark = "\N{MULTIPLICATION SIGN}"
            panel.text(column, row, mark, color=FAILED, ha="center", va="center")
    panel.set_xticks(range(len(grid.columns)), grid.columns)
    panel.set_yticks(range(len(grid.rows)), grid.rows)
    panel.set_xlabel(grid.column_label)
    panel.set_ylabel(grid.row_label)
    panel.grid(visible=False)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    if np.isfinite(grid.values).any():
        bar = figure.colorbar(image, ax=panel, pad=0.02)
        title = grid.title.replace("C_UC", "$C_{UC}$")
        bar.set_label(f"{title} ({unit})" if unit else title)
        bar.outline.set_visible(False)
    return figure
