"""The page of an analysis: profiles of everything, sites, pairs, knobs, file systems, logs.

One query of the engine (`measured`); the rest is adding up cells.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np

from farline.analysis.cells import SETTINGS, by_site, grouped, value_text
from farline.analysis.comparison import Compared, ComparedMethod, limits_from
from farline.analysis.measured import (
    KNOBS,
    Measured,
    explanation_of,
    measure,
    notes,
    reasons_of,
)
from farline.analysis.reading import format_of
from farline.analysis.sources import Measurements
from farline.analysis.views import DEFAULT_SHAPE, NONE, Group, Shape, profile_from, views
from farline.errors import SpecError
from farline.findings.infrastructure_finding import SiteRank
from farline.plots.analysis import FORMATS, write_analysis_page
from farline.plots.analysis_values import (
    MODALITY_TEXT,
    AnalysisData,
    Comparison,
    HeatGrid,
    IoCurve,
    LogTally,
    OddLine,
    PairRow,
    ProfileView,
    UseBar,
)
from farline.profiles.calculus import common_interval, compare
from farline.profiles.cells import Cell, add_cells
from farline.profiles.method_profile import method_profile
from farline.spec.units import counted
from farline.store.transfers import Selection

PAGE = "analysis.html"
SITES_MAX = 60
"""More sites do not fit on a page, nor do profiles of each help."""


@dataclass(frozen=True)
class Sites:
    """Sites beside each other: pairs, profiles of each and of all, their ranks, notes."""

    pairs: tuple[PairRow, ...]
    profiles: tuple[ProfileView, ...]
    ranks: tuple[SiteRank, ...]
    notes: tuple[str, ...]


def sites(source: Measurements, wanted: Selection, shape: Shape = DEFAULT_SHAPE) -> Sites:
    """What was measured between each two sites, and each site's profile beside that of all.

    Without an infrastructure each host is a site. No model is chosen.

    Raises:
        SpecError: when nothing fits.
    """
    found = measure(source, wanted, None)
    groups, too_many = profile_groups(found, ())
    made, left_out = views(groups, replace(shape, model=NONE))
    return Sites(
        pairs=tuple(pair_rows(found, shape)),
        profiles=tuple(made),
        ranks=tuple(explanation_of(source, found, shape).sites),
        notes=tuple(notes(source, found, [*left_out, *too_many])),
    )


def report(
    source: Measurements,
    wanted: Selection,
    folder: Path,
    shape: Shape = DEFAULT_SHAPE,
    *,
    period_s: float | None = None,
    title: str | None = None,
    command: str = "",
    log_rtt: bool = False,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Writes everything as one HTML page into `folder`, and figures in these `formats` below it.

    `command` is what the page says makes it again. Returns the files, the page first.

    Raises:
        SpecError: when nothing fits.
        SystemFailure: when the folder cannot be written.
    """
    data = page_data(source, wanted, shape, period_s, title)
    data = replace(data, command=command, log_rtt=log_rtt)
    return write_analysis_page(data, folder / PAGE, formats)


def page_data(
    source: Measurements, wanted: Selection, shape: Shape, period_s: float | None, title: str | None
) -> AnalysisData:
    """Everything that the page shows.

    Raises:
        SpecError: when nothing fits.
    """
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
        pairs=tuple(pair_rows(found, shape)),
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
        f"No profile of {counted(further, f'further {kind}', f'further {many}')}"
        f" ({MODALITY_TEXT[modality]}): only the {SITES_MAX} with most transfers have one."
    ]


def pair_rows(found: Measured, shape: Shape) -> list[PairRow]:
    """What was measured between each two sites, each way."""
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
    """C_UC of files and memory to memory, for all and each site (Rao et al. 2018, Fig. 2)."""
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
    if first.coefficients is None or second.coefficients is None:
        return None
    try:
        left, right = common_interval(first.profile, second.profile)
    except SpecError:
        return None
    return (left, right) if left < right else None


def comparisons(
    source: Measurements, wanted: Selection, made: Sequence[ProfileView]
) -> tuple[list[Comparison], list[str]]:
    """Memory to memory less files, and the file transfer method, where both were measured.

    Besides a line for what cannot be compared.
    """
    whole = {view.profile.modality: view for view in made if not view.group}
    if not {"E", "T"} <= set(whole) or _common(whole["E"], whole["T"]) is None:
        return [], []
    files, network = (whole[kind].profile.relabelled(MODALITY_TEXT[kind]) for kind in ("E", "T"))
    limits = limits_from(source, wanted, (), ())
    method = method_profile(
        files, network, host_bps=limits.host_bps, file_bps=limits.file_bps, resamples=0
    )
    of_method = ComparedMethod(files, network, limits, method).figure
    try:
        found = Compared(network, files, compare(network, files))
    except SpecError as error:
        return [of_method], [
            f"No difference of {network.name} and {files.name}: {error.message} (--capacity)."
        ]
    return [found.figure, of_method], []


def heat_grids(found: Measured, shape: Shape) -> Iterator[HeatGrid]:
    """Mean rate and C_UC over concurrency and parallelism (Rao et al. 2018, Fig. 13)."""
    for (modality,), cells in grouped(found.by(*KNOBS), ("modality",)).items():
        known = [cell for cell in cells if all(_is_count(cell.keys[knob]) for knob in KNOBS)]
        values = [sorted({int(str(cell.keys[knob])) for cell in known}) for knob in KNOBS]
        if min(map(len, values)) < 2:
            continue
        groups = grouped(known, KNOBS)
        text = MODALITY_TEXT[str(modality)]
        yield _grid(f"Mean rate, {text}", values, groups, _mean_bps, "bit/s")
        scores = _grid(f"C_UC, {text}", values, groups, lambda own: _c_uc(own, shape), "")
        if any(math.isfinite(value) for value in scores.values.flat):
            yield scores


def _is_count(value: object) -> bool:
    return isinstance(value, int)


def _grid(
    title: str,
    values: Sequence[Sequence[int]],
    groups: dict[tuple[object, ...], list[Cell]],
    value_of: Callable[[Sequence[Cell]], float],
    unit: str,
) -> HeatGrid:

    rows, columns = values
    cells = np.full((len(rows), len(columns)), np.nan)
    n = np.zeros(cells.shape, dtype=np.int64)
    failed = set()
    for (row, column), own in groups.items():
        place = (rows.index(int(str(row))), columns.index(int(str(column))))
        n[place] = sum(cell.n for cell in own)
        if n[place]:
            cells[place] = value_of(own)
        else:
            failed.add(place)
    return HeatGrid(
        title=title,
        row_label="concurrency",
        column_label="parallelism",
        rows=tuple(map(str, rows)),
        columns=tuple(map(str, columns)),
        values=cells,
        unit=unit,
        failed=frozenset(failed),
        n=n,
    )


def _mean_bps(cells: Sequence[Cell]) -> float:
    return sum(cell.sum_bps for cell in cells) / sum(cell.n for cell in cells)


def _c_uc(cells: Sequence[Cell], shape: Shape) -> float:
    """C_UC of a knob setting; NaN where it has no profile, no capacity or a single RTT."""
    try:
        profile = profile_from(cells, shape)
        return profile.coefficients(shape.confidence).c_uc.value
    except SpecError:
        return math.nan


def io_curves(found: Measured) -> Iterator[IoCurve]:
    """Rao et al. 2018, Fig. 5: what each host (H) and file system (F) does over processes."""
    keys = ("from_site", "file_system")
    cells = found.by(*keys, "concurrency", modalities=("H", "F"))
    for (modality, *place), own in grouped(cells, ("modality", *keys)).items():
        by_count = {
            int(str(value)): add_cells(group, {}, None)
            for (value,), group in grouped(own, ("concurrency",)).items()
            if _is_count(value)
        }
        filled = sorted((x, cell) for x, cell in by_count.items() if cell.n)
        if filled:
            yield IoCurve(
                name=" ".join(str(part) for part in place if part is not None) or "host",
                x_label="processes",
                x=np.array([float(x) for x, _ in filled]),
                mean_bps=np.array([cell.mean_bps for _, cell in filled]),
                sd_bps=np.array([cell.sd_bps for _, cell in filled]),
                n=np.array([float(cell.n) for _, cell in filled]),
                modality=str(modality),
            )


def tallies(source: Measurements) -> Iterator[LogTally]:
    """What was read of each log: of those read now with their odd lines, of kept ones counts."""
    for log in source.read:
        tally = log.tally
        odd = tuple(OddLine(one.line, one.reason, one.text) for one in tally.first_malformed)
        yield LogTally(
            log.path.name, log.kind, tally.records, tally.transfers, tally.failed,
            tally.malformed, dict(tally.skipped), odd,
        )  # fmt: skip
    for kept in source.kept:
        skipped = dict(reasons_of(kept, "skipped: "))
        malformed = kept.counts.get("malformed", 0)
        yield LogTally(
            kept.log.name, format_of(kept.reader),
            kept.rows + malformed + sum(skipped.values()), kept.rows - kept.failed, kept.failed,
            malformed, skipped,
        )  # fmt: skip
