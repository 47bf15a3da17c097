"""What one page shows of an analysis: one query of the engine, the rest is adding up cells."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.cli.analyze.cells import by_site, ends_of, grouped, period_cells, value_text
from farline.cli.analyze.views import Group, Shape, views
from farline.errors import SpecError
from farline.plots.analysis_values import MODALITY_TEXT

if TYPE_CHECKING:
    from farline.cli.analyze.sources import Opened
    from farline.explain.infrastructure_finding import Explanation
    from farline.plots.analysis_values import (
        AnalysisData,
        Comparison,
        PairRow,
        ProfileView,
        UseBar,
    )
    from farline.profiles.cells import Cell
    from farline.store.transfers import Counts, Selection

NETWORK = ("T", "E")
"""Modalities that have round-trip times; H and F are of one site."""
SETTINGS = ("streams", "buffer_bytes", "congestion_control")
KNOBS = ("concurrency", "parallelism")
_SITES = ("from_site", "to_site", "modality")
SITES_MAX = 60
"""More sites do not fit on a page, nor do profiles of each help."""


@dataclass(frozen=True)
class Measured:
    """Everything that was asked of the engine.

    `fine` are cells told apart by sites, modality, settings, knobs and file system; `periods` by
    sites, modality and period.
    """

    fine: tuple[Cell, ...]
    periods: tuple[Cell, ...]
    counts: Counts

    def by(self, *keys: str, modalities: Sequence[str] = NETWORK) -> list[Cell]:
        """Cells added up by these keys alone; modality is always one."""
        from farline.profiles.cells import merge_cells

        wanted = [cell for cell in self.fine if cell.keys["modality"] in modalities]
        return merge_cells(wanted, by=tuple(dict.fromkeys(("modality", *keys))))

    def of_sites(self, *keys: str) -> list[Cell]:
        """The same by the sites at both ends too; without those whose sites are not known."""
        found = self.by("from_site", "to_site", *keys)
        return [cell for cell in found if None not in ends_of(cell)]


def measure(source: Opened, wanted: Selection, period_s: float | None) -> Measured:
    """Asks the engine: once for all cells, once by period, once for counts.

    Raises:
        SpecError: when nothing fits.
    """
    from farline.cli.analyze.cells import fine_cells

    keys = (*SETTINGS, *KNOBS, "file_system")
    counts = source.transfers.counts(wanted)
    if not counts.rows:
        raise SpecError("no transfers fit: nothing to analyse")
    fine = fine_cells(source, wanted, keys)
    periods = period_cells(source, wanted, period_s) if period_s is not None else []
    return Measured(tuple(fine), tuple(periods), counts)


def explanation_of(source: Opened, found: Measured, shape: Shape) -> Explanation:
    """What costs throughput, from cells by sites and settings."""
    from farline.explain.infrastructure import explain

    own = [
        cell
        for cell in found.by("from_site", "to_site", *SETTINGS, modalities=("H", "F"))
        if None not in ends_of(cell)
    ]
    return explain(
        [*found.of_sites(*SETTINGS), *own],
        periods=[cell for cell in found.periods if cell.keys["modality"] in NETWORK],
        infrastructure=source.infrastructure,
        capacity_bps=shape.capacity_bps,
        confidence=shape.confidence,
    )


def profile_groups(found: Measured) -> Iterator[Group]:
    """All transfers; then by site; then by each setting that was varied."""
    for (modality,), cells in grouped(found.by(), ("modality",)).items():
        yield Group("", "all sites", str(modality), cells)
    for (modality,), cells in grouped(found.of_sites(), ("modality",)).items():
        sites = by_site(cells)
        if 1 < len(sites) <= SITES_MAX:
            yield from (Group("site", site, str(modality), own) for site, own in sites.items())
    for setting in SETTINGS:
        for (modality,), cells in grouped(found.by(setting), ("modality",)).items():
            values = grouped(cells, (setting,))
            if 1 < len(values) <= SITES_MAX:
                yield from (
                    Group(setting, value_text(setting, value), str(modality), own)
                    for (value,), own in values.items()
                )


def pair_rows(source: Opened, found: Measured, shape: Shape) -> list[PairRow]:
    """What was measured between each two sites, each way."""
    from farline.plots.analysis_values import PairRow
    from farline.profiles.cells import add_cells

    rows = []
    for (modality, sender, receiver), cells in grouped(
        found.of_sites(), ("modality", "from_site", "to_site")
    ).items():
        whole = add_cells(cells, {}, None)
        rows.append(
            PairRow(
                from_site=str(sender),
                to_site=str(receiver),
                rtt_ms=_mean_rtt_ms(cells),
                n=whole.n,
                mean_bps=whole.mean_bps if whole.n else None,
                sd_bps=whole.sd_bps if whole.n > 1 else None,
                capacity_bps=shape.capacity_bps or whole.capacity_bps,
                failed=whole.failed,
                modality=str(modality),
            )
        )
    return rows


def _mean_rtt_ms(cells: Sequence[Cell]) -> float | None:
    """The mean of the round-trip times of a pair, weighted by n; None where none is known."""
    known = [(cell.rtt_ms, cell.n) for cell in cells if cell.rtt_ms is not None and cell.n]
    total = sum(n for _, n in known)
    return sum(rtt_ms * n for rtt_ms, n in known) / total if total else None


def use_bars(made: Sequence[ProfileView], shape: Shape) -> list[UseBar]:
    """papers/5, Fig. 2: for all, and for each site, C_UC of files and of memory to memory."""
    from farline.plots.analysis_values import UseBar

    names = dict.fromkeys((view.group, view.name) for view in made if view.group in ("", "site"))
    bars = []
    for group, name in names:
        own = {v.profile.modality: v for v in made if (v.group, v.name) == (group, name)}
        file, network = own.get("E"), own.get("T")
        if file is not None and network is not None:
            interval = _common(file, network)
            if interval is None:
                continue
            scores = [v.profile.coefficients(shape.confidence, interval) for v in (file, network)]
        else:
            scores = [view.coefficients if view else None for view in (file, network)]  # type: ignore[misc]
        known = next((one for one in scores if one is not None), None)
        if known is not None:
            note = f"{known.left_ms:.4g} to {known.right_ms:.4g} ms"
            bars.append(UseBar(name, scores[0], scores[1], note))
    return bars


def _common(first: ProfileView, second: ProfileView) -> tuple[float, float] | None:
    """The round-trip times that both cover, where coefficients of both can be had."""
    from farline.profiles.calculus import common_interval

    if first.coefficients is None or second.coefficients is None:
        return None
    try:
        left, right = common_interval(first.profile, second.profile)
    except SpecError:
        return None
    return (left, right) if left < right else None


def comparisons(source: Opened, wanted: Selection, made: Sequence[ProfileView]) -> list[Comparison]:
    """Memory to memory less files, and the file transfer method, where both were measured."""
    from farline.cli.analyze.compare_text import drawn_difference
    from farline.cli.analyze.limits import limits_from
    from farline.cli.analyze.method import drawn_method
    from farline.profiles.calculus import compare
    from farline.profiles.method_profile import method_profile

    whole = {view.profile.modality: view for view in made if not view.group}
    if not {"E", "T"} <= set(whole) or _common(whole["E"], whole["T"]) is None:
        return []
    files, network = (whole[kind].profile.relabelled(MODALITY_TEXT[kind]) for kind in ("E", "T"))
    limits = limits_from(source, wanted, (), ())
    method = method_profile(
        files, network, host_bps=limits.host_bps, file_bps=limits.file_bps, resamples=0
    )
    return [
        drawn_difference(network, files, compare(network, files)),
        drawn_method(files, network, method),
    ]


def analysis(
    source: Opened, wanted: Selection, shape: Shape, period_s: float | None, title: str | None
) -> AnalysisData:
    """Everything that the page shows.

    Raises:
        SpecError: when nothing fits.
    """
    from importlib.metadata import version

    from farline.cli.analyze.extras import heat_grids, io_curves, notes, tallies
    from farline.plots.analysis_values import AnalysisData

    found = measure(source, wanted, period_s)
    made, left_out = views(profile_groups(found), shape)
    known = source.infrastructure
    return AnalysisData(
        title=title or (known.name if known is not None else "Throughput analysis"),
        profiles=tuple(made),
        infrastructure=known,
        explanation=explanation_of(source, found, shape),
        pairs=tuple(pair_rows(source, found, shape)),
        bars=tuple(use_bars(made, shape)),
        heat=tuple(heat_grids(found, shape)),
        io=tuple(io_curves(found)),
        comparisons=tuple(comparisons(source, wanted, made)),
        tallies=tuple(tallies(source)),
        confidence=shape.confidence,
        notes=tuple(notes(source, found, left_out)),
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=version("farline"),
    )
