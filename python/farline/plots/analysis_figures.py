"""Which figures an analysis gets, under which names, and what stands below them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from farline.plots.analysis_values import MODALITY_TEXT, AnalysisData, ProfileView
from farline.plots.comparison_figure import draw_comparison
from farline.plots.cuc_bars_figure import draw_cuc_bars
from farline.plots.figures import Drawn
from farline.plots.io_figure import draw_io
from farline.plots.knob_heat_figure import draw_knob_heat
from farline.plots.labels import percent, plural
from farline.plots.profile_figure import draw_profiles
from farline.plots.running_figure import draw_running
from farline.plots.site_matrix_figure import draw_site_matrix, pair_table

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
        said = f"{grid.title} over {at}. Crosses: nothing completed. Empty: not measured."
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
        parts.append(f" {plural(failed, 'failed transfer')} {counted} in no mean.")
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
    said = "C_UC of the part of each profile from its smallest RTT up to each other."
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
    said = "C_UC file to file, what memory-to-memory transfers add to it, and the rest up to 1."
    if len(ends) > 1:
        said += " The bars are over different ranges of RTT and compare only roughly."
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
        said += "Crosses: everything failed. Empty: not measured."
        yield Drawn(f"sites-{modality.lower()}", draw_site_matrix(pairs, first), said)
