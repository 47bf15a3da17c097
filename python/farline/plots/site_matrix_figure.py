"""Every site with every other: mean rates from rows to columns (Rao et al. 2018, Figs. 3 and 4).

A pair that was never measured is empty; one in which everything failed has a cross, not a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farline.plots.analysis_values import PairRow
from farline.plots.labels import digits, rate_unit
from farline.plots.style import FAILED, GRID, PAGE_INCHES, ink_on, new_figure

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

CELL_INCHES = 0.5
RTT_SHOWN_UP_TO = 10
"""Sites up to which a cell has room for its RTT below its rate."""


def site_names(pairs: Sequence[PairRow], first: Sequence[str] = ()) -> list[str]:
    """All sites, those of `first` in its order and then by name."""
    found = {name for pair in pairs for name in (pair.from_site, pair.to_site)}
    known = [name for name in first if name in found]
    return known + sorted(found - set(known))


def draw_site_matrix(pairs: Sequence[PairRow], first: Sequence[str] = ()) -> Figure:
    """Senders as rows, receivers as columns; `pairs` are of one modality, each pair once."""
    import numpy as np

    names = site_names(pairs, first)
    table = {(pair.from_site, pair.to_site): pair for pair in pairs}
    rates = np.full((len(names), len(names)), np.nan)
    for (row, column), _ in np.ndenumerate(rates):
        pair = table.get((names[row], names[column]))
        if pair is not None and pair.mean_bps is not None:
            rates[row, column] = pair.mean_bps
    factor, unit = rate_unit(rates[np.isfinite(rates)].tolist())
    side = CELL_INCHES * len(names)
    figure, (panel,) = new_figure(1, min(PAGE_INCHES, max(3.5, 1.7 + side)), max(2.2, 0.9 + side))
    image = panel.imshow(rates / factor, cmap="cividis", aspect="auto")
    colours = image.to_rgba(rates / factor)
    for row, sender in enumerate(names):
        for column, receiver in enumerate(names):
            _write(panel, row, column, table.get((sender, receiver)), factor, names, colours)
    _finish(panel, names)
    if np.isfinite(rates).any():
        bar = figure.colorbar(image, ax=panel, pad=0.02)
        bar.set_label(f"Mean throughput ({unit})")
        bar.outline.set_visible(False)
    return figure


def pair_table(pairs: Sequence[PairRow]) -> dict[str, dict[tuple[str, str], PairRow]]:
    """Pairs by modality and by their ends."""
    found: dict[str, dict[tuple[str, str], PairRow]] = {}
    for pair in pairs:
        found.setdefault(pair.modality, {})[pair.from_site, pair.to_site] = pair
    return found


def _write(
    panel: Axes,
    row: int,
    column: int,
    pair: PairRow | None,
    factor: float,
    names: Sequence[str],
    colours: NDArray[np.float64],
) -> None:
    if pair is None:
        return
    if pair.mean_bps is None:
        mark = "\N{MULTIPLICATION SIGN}" if pair.failed else ""
        panel.text(column, row, mark, color=FAILED, ha="center", va="center")
        return
    ink = ink_on(colours[row, column])
    lines = [digits(pair.mean_bps / factor, 2 if len(names) > 8 else 3)]
    if pair.rtt_ms is not None and len(names) <= RTT_SHOWN_UP_TO:
        lines.append(f"{pair.rtt_ms:.3g} ms")
    size = 7.0 if len(names) <= 8 else 6.5
    near = "center" if len(lines) < 2 else "bottom"
    said = [panel.text(column, row, lines[0], color=ink, ha="center", va=near, size=size)]
    for text in lines[1:]:
        said.append(
            panel.text(column, row + 0.08, text, color=ink, ha="center", va="top", size=5.5)
        )
    for written in said:
        # It is inside its cell: the layout of a large matrix takes seconds to find that out.
        written.set_in_layout(False)


def _finish(panel: Axes, names: Sequence[str]) -> None:
    crowded = max((len(name) for name in names), default=0) > 6 or len(names) > 8
    panel.set_xticks(
        range(len(names)),
        names,
        rotation=40 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor",
    )
    panel.set_yticks(range(len(names)), names)
    panel.set_xlabel("To")
    panel.set_ylabel("From")
    panel.grid(visible=False)
    panel.set_xticks([at + 0.5 for at in range(len(names) - 1)], minor=True)
    panel.set_yticks([at + 0.5 for at in range(len(names) - 1)], minor=True)
    panel.grid(which="minor", axis="both", color=GRID, lw=0.5)
    panel.tick_params(which="both", length=0)
    panel.spines[:].set_visible(False)
