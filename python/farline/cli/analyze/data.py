"""What one page shows of an analysis: one query of the engine, the rest is adding up cells."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.cli.analyze.cells import (
    SETTINGS,
    by_site,
    ends_of,
    grouped,
    period_cells,
    value_text,
)
from farline.cli.analyze.text import count
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
KNOBS = ("concurrency", "parallelism")
_SITES = ("from_site", "to_site", "modality")
SITES_MAX = 60
"""More sites do not fit on a page, nor do profiles of each help."""


@dataclass(frozen=True)
class Measured:
    """Everything that was asked of the engine.

    `fine` are cells told apart by sites, modality, settings, knobs and file system; `periods` by
    sites, modality, settings and period, each of `period_s` seconds since 1970.
    """

    fine: tuple[Cell, ...]
    periods: tuple[Cell, ...]
    counts: Counts
    period_s: float | None = None

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
    return Measured(tuple(fine), tuple(periods), counts, period_s)


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
        period_s=found.period_s,
    )


def profile_groups(
    found: Measured, settings: Sequence[str] = SETTINGS
) -> tuple[list[Group], list[str]]:
    """All transfers; then by site; then by each setting that was varied.

    Besides a line for each kind of which there are too many.
    """
    whole = grouped(found.by(), ("modality",))
    groups = [Group("", "all sites", str(kind), cells) for (kind,), cells in whole.items()]
    too_many = []
    for (kind,), cells in grouped(found.of_sites(), ("modality",)).items():
        own, line = _most_measured("site", str(kind), [*by_site(cells).items()])
        groups += own
        too_many += line
    for setting in settings:
        for (kind,), cells in grouped(found.by(setting), ("modality",)).items():
            values = grouped(cells, (setting,)).items()
            named = [(value_text(setting, value), own) for (value,), own in values]
            own, line = _most_measured(setting, str(kind), named)
            groups += own
            too_many += line
    return groups, too_many


def _most_measured(
    by: str, modality: str, named: Sequence[tuple[str, list[Cell]]]
) -> tuple[list[Group], list[str]]:
    """A group for each name; if there are too many of those with most transfers, and a line."""
    if len(named) < 2:
        return [], []
    often = sorted(range(len(named)), key=lambda at: -sum(cell.n for cell in named[at][1]))
    groups = [Group(by, named[at][0], modality, named[at][1]) for at in sorted(often[:SITES_MAX])]
    further = len(named) - len(groups)
    if not further:
        return groups, []
    kind = "site" if by == "site" else f"value of {by}"
    many = "sites" if by == "site" else f"values of {by}"
    return groups, [
        f"No profile of {count(further, f'further {kind}', f'further {many}')}"
        f" ({MODALITY_TEXT[modality]}): only the {SITES_MAX} with most transfers have one."
    ]


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


def comparisons(
    source: Opened, wanted: Selection, made: Sequence[ProfileView]
) -> tuple[list[Comparison], list[str]]:
    """Memory to memory less files, and the file transfer method, where both were measured.

    Besides a line for what cannot be compared.
    """
    from farline.cli.analyze.compare_text import drawn_difference
    from farline.cli.analyze.limits import limits_from
    from farline.cli.analyze.method import drawn_method
    from farline.profiles.calculus import compare
    from farline.profiles.method_profile import method_profile

    whole = {view.profile.modality: view for view in made if not view.group}
    if not {"E", "T"} <= set(whole) or _common(whole["E"], whole["T"]) is None:
        return [], []
    files, network = (whole[kind].profile.relabelled(MODALITY_TEXT[kind]) for kind in ("E", "T"))
    limits = limits_from(source, wanted, (), ())
    method = method_profile(
        files, network, host_bps=limits.host_bps, file_bps=limits.file_bps, resamples=0
    )
    of_method = drawn_method(files, network, method)
    try:
        found = compare(network, files)
    except SpecError as error:
        return [of_method], [
            f"No difference of {network.name} and {files.name}: {error.message} (--capacity)."
        ]
    return [drawn_difference(network, files, found), of_method], []


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
    groups, too_many = profile_groups(found)
    made, left_out = views(groups, shape)
    compared, not_compared = comparisons(source, wanted, made)
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
        comparisons=tuple(compared),
        tallies=tuple(tallies(source)),
        confidence=shape.confidence,
        notes=(*notes(source, found, [*left_out, *too_many]), *not_compared),
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=version("farline"),
    )
