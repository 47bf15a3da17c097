"""Which figures an analysis gets, under which names, and what stands below them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from farline.plots.analysis_values import MODALITY_TEXT, AnalysisData, IoCurve, ProfileView, Running
from farline.plots.comparison_figure import draw_comparison
from farline.plots.cuc_bars_figure import draw_cuc_bars
from farline.plots.figures import Drawn
from farline.plots.heat_figure import draw_knob_heat
from farline.plots.labels import percent, plural, rate_unit
from farline.plots.profile_figure import (
    COLUMNS,
    TOGETHER,
    draw_profiles,
    is_ordered,
    legend_columns,
    legend_title,
    many_panels,
)
from farline.plots.rtt_axis import RttAxis, draw_rtt_axis, rtt_axis
from farline.plots.site_matrix_figure import draw_site_matrix, pair_table
from farline.plots.style import FAINT, GRID, MARKERS, new_figure, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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


LABEL = "C_UC up to this RTT"
PRINTED = "$C_{UC}$ up to this RTT"
FLAT = 0.75
"""C_UC of a profile that is at capacity throughout."""


def draw_running(
    views: Sequence[ProfileView], log: bool = False, together: int = TOGETHER
) -> Figure:
    """The running curves of those profiles that have one; raises ValueError where none has."""
    shown = [(view, view.running) for view in views if view.running is not None]
    if not shown:
        raise ValueError("no profile has a running curve")
    axis = rtt_axis((time for _, curve in shown for time in curve.rtt_ms.tolist()), log)
    low, high = _limits([curve for _, curve in shown])
    if len(shown) > together:
        return _draw_each(shown, axis, (low, high))
    figure, (panel,) = new_figure(1, height_inches=2.5)
    colours = palette(len(shown), is_ordered([view for view, _ in shown]))
    for index, (view, curve) in enumerate(shown):
        _draw_curve(panel, curve, axis, colours[index], MARKERS[index % len(MARKERS)], view.name)
    _finish(panel, axis, (low, high))
    panel.set_ylabel(PRINTED)
    if len(shown) > 1:
        columns = legend_columns([view.name for view, _ in shown])
        figure.legend(
            title=legend_title(shown[0][0].group),
            loc="outside upper left",
            ncols=min(columns, len(shown)),
            alignment="left",
            columnspacing=1.0,
        )
    return figure


def _draw_curve(
    panel: Axes,
    curve: Running,
    axis: RttAxis,
    colour: str,
    marker: str,
    name: str,
    small: bool = False,
) -> None:
    places = axis.place(curve.rtt_ms)
    size = 2.8 if small or len(places) > 14 else 4.0
    width = 1.1 if small else 1.4
    panel.plot(
        places, curve.c_uc, color=colour, marker=marker, ms=size, lw=width, label=name, zorder=3
    )
    if curve.low is not None and curve.high is not None:
        panel.fill_between(places, curve.low, curve.high, color=colour, alpha=0.15, lw=0, zorder=2)


def _finish(panel: Axes, axis: RttAxis, limits: tuple[float, float], room: int = 7) -> None:
    panel.axhline(FLAT, color=FAINT, lw=0.8, ls=(0, (1, 1.5)), zorder=1)
    panel.annotate(
        "at capacity",
        (1.0, FLAT),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 1.5),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=7,
        color=FAINT,
    )
    draw_rtt_axis(panel, axis, room, label=room > 4)
    panel.set_ylim(*limits)


def _limits(curves: Sequence[Running]) -> tuple[float, float]:
    """From 0 to 1 as in the paper, further where a curve leaves that range."""
    import numpy as np

    values = np.concatenate([curve.c_uc for curve in curves])
    known = values[np.isfinite(values)].tolist() or [0.0]
    return min(0.0, min(known) - 0.05), max(1.0, max(known) + 0.05)


def _draw_each(
    shown: Sequence[tuple[ProfileView, Running]], axis: RttAxis, limits: tuple[float, float]
) -> Figure:
    panels, figure = many_panels(len(shown))
    for index, (panel, (view, curve)) in enumerate(zip(panels, shown, strict=True)):
        for _, other in shown:
            panel.plot(axis.place(other.rtt_ms), other.c_uc, color=GRID, lw=0.8, zorder=1)
        _draw_curve(panel, curve, axis, palette(1, False)[0], "o", view.name, small=True)
        panel.set_title(view.name)
        _finish(panel, axis, limits, 4)
        panel.tick_params(labelbottom=index + COLUMNS >= len(shown))
    figure.supxlabel(axis.label, fontsize=8)
    figure.supylabel(PRINTED, fontsize=8)
    return figure


MATRIX_SITES_UP_TO = 30
"""Sites whose matrix can be read on paper; the page has the table of any number."""


def analysis_figures(data: AnalysisData) -> Iterator[Drawn]:
    """Every figure that the data allows, one at a time."""
    yield from _profile_figures(data)
    if data.bars:
        yield Drawn("cuc-bars", draw_cuc_bars(data.bars), _bars_caption(data))
    yield from _matrices(data)
    for grid in data.heat:
        at = f"{grid.row_label.lower()} and {grid.column_label.lower()}"
        said = f"{grid.title} over {at}. Crosses: no transfer completed. Empty: not measured."
        yield Drawn(f"heat-{slug(grid.title)}", draw_knob_heat(grid), said)
    if data.io:
        said = "Input and output over processes or streams; bars are one standard deviation."
        yield Drawn("io", draw_io(data.io), said)
    for found in data.comparisons:
        said = f"{found.name}: both profiles, and their {found.kind} on the common interval."
        band = " Band: one standard error." if found.deviation is not None else ""
        figure = draw_comparison(found, data.log_rtt)
        yield Drawn(f"{found.kind}-{slug(found.name)}", figure, said + band)


def groups(views: Sequence[ProfileView]) -> dict[tuple[str, str], list[ProfileView]]:
    """Profiles by what they are compared over, and by modality, in the order of the first."""
    found: dict[tuple[str, str], list[ProfileView]] = {}
    for view in views:
        found.setdefault((view.group, view.profile.modality), []).append(view)
    return found


def slug(text: str) -> str:
    """A name for a file: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "figure"


def _profile_figures(data: AnalysisData) -> Iterator[Drawn]:
    for (group, modality), views in groups(data.profiles).items():
        if not group:
            for view in views:
                name = f"profile-{modality.lower()}-{slug(view.name)}"
                figure = draw_profiles([view], data.log_rtt)
                yield Drawn(name, figure, _profile_caption(data, [view], modality))
        if group or len(views) > 1:
            name = f"profiles-{modality.lower()}-{slug(group or 'all')}"
            figure = draw_profiles(views, data.log_rtt)
            yield Drawn(name, figure, _profile_caption(data, views, modality))
        if any(view.running is not None for view in views):
            name = f"running-{modality.lower()}-{slug(group or 'all')}"
            yield Drawn(name, draw_running(views, data.log_rtt), _running_caption(data, views))


def _profile_caption(data: AnalysisData, views: Sequence[ProfileView], modality: str) -> str:
    counts = [int(n) for view in views for n in view.profile.n.tolist()] or [0]
    least, most = min(counts), max(counts)
    span = f"{least}" if least == most else f"{least} to {most}"
    what = MODALITY_TEXT.get(modality, modality)
    of = views[0].name if len(views) == 1 else plural(len(views), "profile")
    parts = [f"Throughput over round-trip time, {what}: {of}. Means of {span} measurements"]
    parts.append(f" with {_whisker_text(data, views)}.")
    if any(view.fitted is not None and view.fitted.goes_beyond for view in views):
        parts.append(" Dashed: the model beyond what was measured.")
    if len(views) == 1 and len(views[0].profile.rtt_ms) > 2:
        parts.append(" Shaded: what lies above or below the chord of both ends.")
    failed = _failed(data, views)
    if failed:
        counted = "counts" if failed == 1 else "count"
        parts.append(f" {plural(failed, 'failed transfer')} {counted} not included in means.")
    return "".join(parts)


def _failed(data: AnalysisData, views: Sequence[ProfileView]) -> int:
    """Failed transfers, each once: one between two sites is in the profiles of both."""
    if len(views) > 1 and views[0].group == "site":
        modality = views[0].profile.modality
        views = [v for v in data.profiles if not v.group and v.profile.modality == modality]
    return sum(view.profile.failed for view in views)


def _whisker_text(data: AnalysisData, views: Sequence[ProfileView]) -> str:
    known = [view.mean_low_bps is not None for view in views]
    interval = f"{percent(data.confidence)} confidence intervals"
    if all(known):
        return interval
    return f"{interval} or standard deviations" if any(known) else "one standard deviation"


def _running_caption(data: AnalysisData, views: Sequence[ProfileView]) -> str:
    said = "C_UC of the part of each profile from its smallest RTT up to each larger RTT."
    if any(view.running is not None and view.running.low is not None for view in views):
        said += f" Bands: {percent(data.confidence)} confidence intervals."
    return said


def _bars_caption(data: AnalysisData) -> str:
    ends = {
        (found.left_ms, found.right_ms)
        for bar in data.bars
        for found in (bar.file, bar.network)
        if found is not None
    }
    said = "C_UC file to file, what memory-to-memory transfers add, and the remainder up to 1."
    if len(ends) > 1:
        said += " The bars cover different ranges of RTT, so the comparison is only approximate."
    return said


def _matrices(data: AnalysisData) -> Iterator[Drawn]:
    first = [site.name for site in data.infrastructure.sites] if data.infrastructure else []
    for modality, table in pair_table(data.pairs).items():
        pairs = list(table.values())
        sites = {name for pair in pairs for name in (pair.from_site, pair.to_site)}
        if len(sites) < 2 or len(sites) > MATRIX_SITES_UP_TO:
            continue
        what = MODALITY_TEXT.get(modality, modality)
        said = f"Mean throughput, {what}, from the site of the row to that of the column. "
        said += "Crosses: all transfers failed. Empty: not measured."
        yield Drawn(f"sites-{modality.lower()}", draw_site_matrix(pairs, first), said)
