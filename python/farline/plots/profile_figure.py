"""Throughput over round-trip time, as in Rao et al. 2018, Figs. 1, 6, 7, 8 and 9a.

A few profiles share one panel. Many get a panel each, in which all others are faint, so that every
site is seen against the rest. Curves are drawn through the means as the profile runs, straight in
RTT, on a log axis too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.plots.analysis_values import POINTS_UP_TO, Line, ProfileView, Region
from farline.plots.labels import parameter_label, rate_unit
from farline.plots.rtt_axis import RttAxis, draw_rtt_axis, rtt_axis
from farline.plots.style import (
    COLUMN_INCHES,
    FAINT,
    GRID,
    INK,
    MARKERS,
    PAGE_INCHES,
    new_figure,
    palette,
)
from farline.spec.units import rate_human

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TOGETHER = 6
"""Profiles that one panel holds; more get a panel each."""

COLUMNS = 4
CAPACITY_SEEN = 2.2
"""Times the highest rate up to which the capacity's line is within the figure."""

WHISKER_SEEN = 1.25
"""Times the highest mean beyond which a whisker leaves the figure: of two runs it reaches far."""

_CHORD_TEXT = {"concave": "above the chord", "convex": "below the chord"}

SHAPE_COLOURS = {"concave": "#1D7A46", "convex": "#D55E00"}


@dataclass(frozen=True, slots=True)
class _Scene:
    """What all panels of a figure share."""

    axis: RttAxis
    factor: float
    unit: str
    top: float


def draw_profiles(
    views: Sequence[ProfileView], log: bool = False, together: int = TOGETHER
) -> Figure:
    """The profiles in one panel, or one panel each where there are more than `together`."""
    scene = _scene(views, log)
    if len(views) > together:
        return _draw_each(views, scene)
    figure, (panel,) = new_figure(1, COLUMN_INCHES, 2.6)
    colours = palette(len(views), is_ordered(views))
    if len(views) == 1:
        _shade_chord(panel, views[0], scene)
    _draw_capacity(panel, views, scene)
    for index, view in enumerate(views):
        ink = INK if len(views) == 1 else colours[index]
        _draw_view(panel, view, colours[index], MARKERS[index % len(MARKERS)], scene)
        _draw_lines(panel, view, ink, scene, named=len(views) == 1)
    if len(views) == 1:
        _draw_regions(panel, views[0].regions, scene)
    draw_rtt_axis(panel, scene.axis)
    panel.set_ylim(0, scene.top / scene.factor)
    panel.set_ylabel(f"Throughput ({scene.unit})")
    _legend(figure, panel, views[0].group)
    return figure


def is_ordered(views: Sequence[ProfileView]) -> bool:
    """Whether what tells the profiles apart is a quantity: every name begins with a number."""
    return len(views) > 1 and all(view.name[:1].isdigit() for view in views)


def whiskers(view: ProfileView) -> tuple[Floats, Floats]:
    """Lower and upper ends at each knot: the interval of the mean, else one standard deviation."""
    if view.mean_low_bps is not None and view.mean_high_bps is not None:
        return view.mean_low_bps, view.mean_high_bps
    profile = view.profile
    return profile.mean_bps - profile.sd_bps, profile.mean_bps + profile.sd_bps


def few_points(view: ProfileView) -> list[tuple[float, tuple[float, ...]]]:
    """Round-trip times and single rates, of knots with two to ten of them."""
    points = view.profile.points_bps or ()
    known = zip(view.profile.rtt_ms.tolist(), points, strict=False)
    return [(rtt, rates) for rtt, rates in known if 1 < len(rates) <= POINTS_UP_TO]


def _scene(views: Sequence[ProfileView], log: bool) -> _Scene:
    times = [time for view in views for time in _times(view)]
    rates = [rate for view in views for rate in _highest(view)]
    top = max((rate for rate in rates if math.isfinite(rate)), default=0.0)
    capacities = [view.profile.capacity_bps or 0.0 for view in views]
    seen = [c for c in capacities if 0 < c <= CAPACITY_SEEN * top]
    factor, unit = rate_unit([max([top, *seen])])
    return _Scene(rtt_axis(times, log), factor, unit, 1.08 * max([top, *seen]) or factor)


def _times(view: ProfileView) -> list[float]:
    fitted = [] if view.fitted is None else view.fitted.rtt_ms.tolist()
    return [*view.profile.rtt_ms.tolist(), *fitted]


def _highest(view: ProfileView) -> list[float]:
    """Rates that the figure must hold."""
    import numpy as np

    mean = view.profile.mean_bps
    high = np.fmin(whiskers(view)[1], WHISKER_SEEN * np.nanmax(mean, initial=0.0))
    fitted = [] if view.fitted is None else view.fitted.rate_bps.tolist()
    most = np.nanmax(mean, initial=0.0) * CAPACITY_SEEN
    points = [rate for _, rates in few_points(view) for rate in rates]
    return [*mean.tolist(), *high.tolist(), *points, *(r for r in fitted if r <= most)]


def _draw_view(
    panel: Axes, view: ProfileView, colour: str, marker: str, scene: _Scene, small: bool = False
) -> None:
    """Means with whiskers and the straight lines between, and single rates where they are few."""
    import numpy as np

    profile, axis = view.profile, scene.axis
    along = axis.along(profile.rtt_ms)
    means = profile.mean_bps / scene.factor
    curve = np.interp(along, profile.rtt_ms, means) if len(means) else means
    panel.plot(axis.place(along), curve, color=colour, zorder=3, lw=1.1 if small else 1.4)
    low, high = whiskers(view)
    below, above = (profile.mean_bps - low) / scene.factor, (high - profile.mean_bps) / scene.factor
    panel.errorbar(
        axis.place(profile.rtt_ms),
        means,
        yerr=[np.nan_to_num(np.maximum(below, 0)), np.nan_to_num(np.maximum(above, 0))],
        color=colour,
        marker=marker,
        linestyle="-",
        # The curve itself is drawn above, with its bends on a log axis.
        linewidth=0,
        elinewidth=0.8,
        markersize=2.8 if small or len(means) > 14 else 4,
        zorder=4,
        label="_means",
    )
    panel.plot([], [], color=colour, marker=marker, label=view.name)
    for rtt, rates in few_points(view):
        place = float(axis.place([rtt])[0])
        heights = [rate / scene.factor for rate in rates]
        panel.plot([place] * len(rates), heights, ".", color=colour, alpha=0.35, ms=3.2, mew=0)


def _draw_lines(panel: Axes, view: ProfileView, ink: str, scene: _Scene, named: bool) -> None:
    """The fitted model, dashed where nothing was measured, and the bounds."""
    if view.fitted is not None:
        name = f"model: {view.fitted.name}" if named else "_model"
        _draw_line(panel, view.fitted, ink, scene, name, 1.0)
    for bound in view.bounds:
        panel.plot(
            scene.axis.place(bound.rtt_ms),
            bound.rate_bps / scene.factor,
            color=FAINT,
            ls="-.",
            lw=1.0,
            zorder=2,
            label=bound.name if named else "_bound",
        )


def _draw_line(panel: Axes, line: Line, ink: str, scene: _Scene, name: str, width: float) -> None:
    """Solid within the measured range and dashed beyond; the pieces meet at its ends."""
    import numpy as np

    ends = np.array([line.left_ms, line.right_ms])
    times = np.union1d(line.rtt_ms, ends[(ends > line.rtt_ms[0]) & (ends < line.rtt_ms[-1])])
    rates = np.interp(times, line.rtt_ms, line.rate_bps) / scene.factor
    inside = (times >= line.left_ms) & (times <= line.right_ms)
    places = scene.axis.place(times)
    panel.plot(places[inside], rates[inside], color=ink, lw=width, zorder=5, label=name)
    for part, text in ((times <= line.left_ms, "_left"), (times >= line.right_ms, "beyond")):
        if part.sum() > 1:
            said = "extrapolated" if text == "beyond" and name[:1] != "_" else "_"
            dashes = (0, (3, 2))
            panel.plot(places[part], rates[part], color=ink, lw=width, ls=dashes, label=said)


def _shade_chord(panel: Axes, view: ProfileView, scene: _Scene) -> None:
    """What lies above the chord of the profile's ends is concave, what lies below convex."""
    import numpy as np

    profile, axis = view.profile, scene.axis
    if len(profile.rtt_ms) < 3:
        return
    along = np.union1d(
        axis.along(profile.rtt_ms), np.linspace(profile.rtt_ms[0], profile.rtt_ms[-1], 400)
    )
    curve = np.interp(along, profile.rtt_ms, profile.mean_bps) / scene.factor
    ends = [0, -1]
    chord = np.interp(along, profile.rtt_ms[ends], profile.mean_bps[ends]) / scene.factor
    places, least = axis.place(along), 0.004 * scene.top / scene.factor
    for shape, inside in (("concave", curve > chord), ("convex", curve < chord)):
        if float(np.max(np.where(inside, np.abs(curve - chord), 0.0))) > least:
            panel.fill_between(
                places, chord, curve, where=inside.tolist(), color=SHAPE_COLOURS[shape],
                alpha=0.16, lw=0, zorder=1, label=_CHORD_TEXT[shape],
            )  # fmt: skip
    panel.plot(places, chord, color=FAINT, lw=0.7, ls=":", zorder=2)


def _draw_regions(panel: Axes, regions: Sequence[Region], scene: _Scene) -> None:
    """A strip along the axis: where the profile bends which way, as it was computed."""
    named: set[str] = set()
    for region in regions:
        left, right = (
            float(place) for place in scene.axis.place([region.left_ms, region.right_ms])
        )
        label = region.shape if region.shape not in named else "_again"
        named.add(region.shape)
        panel.axvspan(
            left, right, 0.0, 0.022, color=SHAPE_COLOURS[region.shape], lw=0, zorder=6, label=label
        )


def _draw_capacity(panel: Axes, views: Sequence[ProfileView], scene: _Scene) -> None:
    """The capacity as a line where the figure reaches so high, else in words."""
    for capacity in sorted({view.profile.capacity_bps or 0.0 for view in views} - {0.0}):
        text = f"capacity {_short_rate(capacity)}"
        within = capacity <= scene.top
        if within:
            panel.axhline(capacity / scene.factor, color=INK, lw=0.8, ls=(0, (1, 1.5)), zorder=2)
        panel.annotate(
            text if within else f"{text}, above the figure",
            (1.0, capacity / scene.top if within else 1.0),
            xycoords="axes fraction",
            xytext=(-2, 2 if within else 1),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=7,
            color=FAINT,
        )


def _short_rate(rate_bps: float) -> str:
    """ "10 Gbit/s" rather than "10.0 Gbit/s"."""
    number, unit = rate_human(rate_bps).split(" ")
    return f"{float(number):g} {unit}"


def _legend(figure: Figure, panel: Axes, group: str) -> None:
    handles, texts = panel.get_legend_handles_labels()
    if len(handles) < 2:
        return
    columns = legend_columns(texts)
    figure.legend(
        handles,
        texts,
        loc="outside upper left",
        title=legend_title(group),
        ncols=min(columns, len(texts)),
        alignment="left",
        columnspacing=1.0,
        labelspacing=0.3,
    )


def legend_title(group: str) -> str | None:
    """What tells the profiles apart, as parameters are named; sites need no such word."""
    return parameter_label(group) if group and group != "site" else None


def legend_columns(texts: Sequence[str]) -> int:
    """Columns of a legend that fit side by side above one column of a paper."""
    longest = max(map(len, texts), default=0)
    return 1 if longest > 20 else 2 if longest > 11 else 3


def _draw_each(views: Sequence[ProfileView], scene: _Scene) -> Figure:
    """A panel for each profile, all others faint behind it."""
    panels, figure = many_panels(len(views), "sharey")
    for index, (panel, view) in enumerate(zip(panels, views, strict=True)):
        _draw_others(panel, views, scene)
        _draw_view(panel, view, palette(1, False)[0], "o", scene, small=True)
        _draw_lines(panel, view, INK, scene, named=False)
        capacity = view.profile.capacity_bps
        if capacity and capacity <= scene.top:
            panel.axhline(capacity / scene.factor, color=INK, lw=0.8, ls=(0, (1, 1.5)))
        panel.set_title(view.name)
        panel.set_ylim(0, scene.top / scene.factor)
        draw_rtt_axis(panel, scene.axis, 4, label=False)
        panel.tick_params(labelbottom=index + COLUMNS >= len(views))
    figure.supxlabel(scene.axis.label, fontsize=8)
    figure.supylabel(f"Throughput ({scene.unit})", fontsize=8)
    return figure


def _draw_others(panel: Axes, views: Iterable[ProfileView], scene: _Scene) -> None:
    import numpy as np

    for other in views:
        along = scene.axis.along(other.profile.rtt_ms)
        rates = np.interp(along, other.profile.rtt_ms, other.profile.mean_bps) / scene.factor
        panel.plot(scene.axis.place(along), rates, color=GRID, lw=0.8, zorder=1)


def many_panels(count: int, share: str = "sharey") -> tuple[list[Axes], Figure]:
    """`count` small panels in rows of four, as wide as a page."""
    from matplotlib.figure import Figure

    rows = math.ceil(count / COLUMNS)
    figure = Figure(figsize=(PAGE_INCHES, 0.6 + 1.35 * rows), layout="constrained")
    grid = figure.subplots(rows, COLUMNS, sharey=share == "sharey", squeeze=False)
    panels = list(grid.flat)
    for empty in panels[count:]:
        empty.set_axis_off()
    return panels[:count], figure
