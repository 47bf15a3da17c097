"""What file systems and hosts deliver over processes or streams, as in Rao et al. 2018, Fig. 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farline.plots.analysis_values import IoCurve
from farline.plots.labels import rate_unit
from farline.plots.profile_figure import legend_columns
from farline.plots.style import MARKERS, new_figure, palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_io(curves: Sequence[IoCurve]) -> Figure:
    """Means with one standard deviation, one curve for each file system or host."""
    import numpy as np

    factor, unit = rate_unit(float(curve.mean_bps.max(initial=0.0)) for curve in curves)
    counts = np.unique(np.concatenate([curve.x for curve in curves]))
    doubling = len(counts) > 2 and bool(counts[0] > 0) and float(counts[-1] / counts[0]) >= 8
    figure, (panel,) = new_figure(1, height_inches=2.5)
    for index, curve in enumerate(curves):
        places = np.log2(curve.x) if doubling else curve.x
        panel.errorbar(
            places,
            curve.mean_bps / factor,
            yerr=np.nan_to_num(curve.sd_bps / factor),
            color=palette(len(curves), False)[index],
            marker=MARKERS[index % len(MARKERS)],
            elinewidth=0.9,
            label=curve.name,
        )
    shown = counts if len(counts) <= 8 else counts[:: -(-len(counts) // 8)]
    panel.set_xticks(np.log2(shown) if doubling else shown, [f"{count:g}" for count in shown])
    labels = sorted({curve.x_label for curve in curves})
    panel.set_xlabel(" or ".join(labels) + (", log scale" if doubling else ""))
    panel.set_ylabel(f"Throughput ({unit})")
    panel.set_ylim(bottom=0)
    if len(curves) > 1:
        columns = legend_columns([curve.name for curve in curves])
        figure.legend(loc="outside upper left", ncols=min(columns, len(curves)), columnspacing=1.0)
    return figure
