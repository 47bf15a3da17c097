"""Heat map of the mean over two parameters, with the figure in every cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farline.plots.analysis_values import HeatGrid
from farline.plots.axes import Axis
from farline.plots.curves import CurveSet
from farline.plots.labels import digits, parameter_label, quantity_unit, rate_unit
from farline.plots.style import FAILED, PAGE_INCHES, ink_on, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from farline.plots.series import Numbers


def draw_heat(curve_set: CurveSet, rows: Axis) -> Figure:
    """Cells over `curve_set.axis` (columns) and `rows`, the axis of its curve parameter."""
    columns = curve_set.axis
    cells, lost = _cells(curve_set, rows)
    factor, unit = quantity_unit(curve_set.quantity, cells[cells == cells].tolist())
    width = min(7.16, max(3.5, 1.4 + 0.52 * len(columns.values)))
    figure, (panel,) = new_figure(1, width, 1.1 + 0.3 * len(rows.values))
    image = panel.imshow(cells / factor, cmap="cividis", aspect="auto", origin="lower")
    _write_cells(panel, cells / factor, image)
    for row, column in lost:
        panel.text(column, row, "\N{MULTIPLICATION SIGN}", color=FAILED, ha="center", va="center")
    crowded = sum(len(text) for text in columns.texts) > 8 * width
    panel.set_xticks(
        range(len(columns.texts)),
        columns.texts,
        rotation=30 if crowded else 0,
        ha="right" if crowded else "center",
    )
    panel.set_yticks(range(len(rows.texts)), rows.texts)
    panel.set_xlabel(columns.label)
    panel.set_ylabel(parameter_label(rows.name))
    panel.grid(visible=False)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=panel, pad=0.02)
    bar.set_label(f"{curve_set.quantity.label} ({unit})" if unit else curve_set.quantity.label)
    bar.outline.set_visible(False)
    return figure


def _cells(curve_set: CurveSet, rows: Axis) -> tuple[Numbers, list[tuple[int, int]]]:
    """Means by row and column, NaN where there is none, and the cells where no run completed."""
    import numpy as np

    cells = np.full((len(rows.values), len(curve_set.axis.values)), np.nan)
    lost = []
    for curve in curve_set.curves:
        row = rows.values.index(curve.value)
        for point in curve.points:
            column = curve_set.axis.values.index(point.settings[curve_set.axis.name])
            if point.mean is None:
                lost.append((row, column))
            else:
                cells[row, column] = point.mean
    return cells, lost


def _write_cells(panel: Axes, cells: Numbers, image: AxesImage) -> None:
    import numpy as np

    colours = image.to_rgba(cells)
    for (row, column), value in np.ndenumerate(cells):
        if not np.isnan(value):
            colour = ink_on(colours[row, column])
            panel.text(column, row, digits(float(value)), color=colour, ha="center", va="center")


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
