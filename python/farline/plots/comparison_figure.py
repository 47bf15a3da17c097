"""Two profiles and their difference or ratio (Rao et al. 2018, Figs. 8, 9c and 9d)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farline.plots.analysis_values import Comparison
from farline.plots.labels import rate_unit
from farline.plots.profile_figure import legend_columns
from farline.plots.rtt_axis import draw_rtt_axis, rtt_axis
from farline.plots.style import FAINT, MARKERS, new_figure, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from farline.plots.rtt_axis import RttAxis
    from farline.profiles.throughput_profile import ThroughputProfile


def draw_comparison(comparison: Comparison, log: bool = False) -> Figure:
    """Above: both profiles, as shares of their capacity where both have one. Below: the result."""
    both = (comparison.first, comparison.second)
    axis = rtt_axis((time for profile in both for time in profile.rtt_ms.tolist()), log)
    figure, (upper, lower) = new_figure(2, height_inches=3.8, heights=[1.3, 1.0])
    unit = _draw_both(upper, both, axis)
    _draw_values(lower, comparison, axis)
    upper.set_ylim(bottom=0)
    upper.set_ylabel(f"Throughput ({unit})")
    draw_rtt_axis(lower, axis)
    columns = min(2, legend_columns([profile.label for profile in both]))
    figure.legend(
        *upper.get_legend_handles_labels(), loc="outside upper left", ncols=columns,
        columnspacing=1.0,
    )  # fmt: skip
    return figure


def normalisers(
    both: tuple[ThroughputProfile, ThroughputProfile],
) -> tuple[tuple[float, float], str]:
    """What to divide each profile by, and the unit then: capacities, or one factor for both."""
    if both[0].capacity_bps and both[1].capacity_bps:
        return (both[0].capacity_bps, both[1].capacity_bps), "share of capacity"
    factor, unit = rate_unit(float(profile.mean_bps.max(initial=0.0)) for profile in both)
    return (factor, factor), unit


def _draw_both(
    panel: Axes, both: tuple[ThroughputProfile, ThroughputProfile], axis: RttAxis
) -> str:
    import numpy as np

    scales, unit = normalisers(both)
    for index, (profile, scale) in enumerate(zip(both, scales, strict=True)):
        colour, along = palette(2, False)[index], axis.along(profile.rtt_ms)
        means = profile.mean_bps / scale
        panel.plot(axis.place(along), np.interp(along, profile.rtt_ms, means), color=colour)
        panel.errorbar(
            axis.place(profile.rtt_ms),
            means,
            yerr=np.nan_to_num(profile.sd_bps / scale),
            color=colour,
            marker=MARKERS[index],
            linestyle="-",
            linewidth=0,
            elinewidth=0.8,
            markersize=3.4,
        )
        panel.plot([], [], color=colour, marker=MARKERS[index], label=profile.label or "profile")
    return unit


def _draw_values(panel: Axes, comparison: Comparison, axis: RttAxis) -> None:
    """The result with one standard error as a band, and the line that means "alike"."""
    import numpy as np

    ratio = comparison.kind == "ratio"
    factor, unit = (1.0, "") if ratio else rate_unit(np.abs(comparison.values).tolist())
    places, values = axis.place(comparison.rtt_ms), comparison.values / factor
    colour = palette(3, False)[2]
    panel.plot(places, values, color=colour, marker="^", ms=3.4)
    if comparison.deviation is not None:
        spread = np.nan_to_num(comparison.deviation / factor)
        panel.fill_between(places, values - spread, values + spread, color=colour, alpha=0.18, lw=0)
    alike = 1.0 if ratio else 0.0
    panel.axhline(alike, color=FAINT, lw=0.8, ls=(0, (1, 1.5)))
    if ratio:
        panel.set_ylim(0.0, max(1.08, 1.08 * float(np.nanmax(values, initial=0.0))))
    panel.set_ylabel("Ratio" if ratio else f"Difference ({unit})")
