"""The rest of a page: grids of knobs, file systems, logs that were read, notes on the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from farline.cli.analyze.cells import ends_of, grouped
from farline.cli.analyze.logs import format_of
from farline.cli.analyze.text import count, sentence
from farline.cli.analyze.views import Shape, profile_from
from farline.errors import SpecError
from farline.plots.analysis_values import MODALITY_TEXT

if TYPE_CHECKING:
    from farline.cli.analyze.data import Measured
    from farline.cli.analyze.sources import Opened
    from farline.plots.analysis_values import HeatGrid, IoCurve, LogTally
    from farline.profiles.cells import Cell
    from farline.store.transfers import Counts, KeptLog, Selection

KNOBS = ("concurrency", "parallelism")
UNKNOWN_SHOWN = 5
REASONS_SHOWN = 5


def heat_grids(found: Measured, shape: Shape) -> Iterator[HeatGrid]:
    """papers/5, Fig. 13: mean rate and C_UC over concurrency and parallelism, where both vary."""
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
    value_of: object,
    unit: str,
) -> HeatGrid:
    import numpy as np

    from farline.plots.analysis_values import HeatGrid

    assert callable(value_of)
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
    """papers/5, Fig. 5: what each host (H) and file system (F) does over processes."""
    import numpy as np

    from farline.plots.analysis_values import IoCurve
    from farline.profiles.cells import add_cells

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


def tallies(source: Opened) -> Iterator[LogTally]:
    """What was read of each log: of those read now with their odd lines, of kept ones counts."""
    from farline.plots.analysis_values import LogTally, OddLine

    for log in source.read:
        tally = log.tally
        odd = tuple(OddLine(one.line, one.reason, one.text) for one in tally.first_malformed)
        yield LogTally(
            log.path.name, log.kind, tally.records, tally.transfers, tally.failed,
            tally.malformed, dict(tally.skipped), odd,
        )  # fmt: skip
    for kept in source.kept:
        skipped = dict(_beginning(kept, "skipped: "))
        malformed = kept.counts.get("malformed", 0)
        yield LogTally(
            kept.log.name, format_of(kept),
            kept.rows + malformed + sum(skipped.values()), kept.rows - kept.failed, kept.failed,
            malformed, skipped,
        )  # fmt: skip


def notes(source: Opened, found: Measured, left_out: Sequence[str]) -> Iterator[str]:
    """Sentences on what counts and what does not."""
    counts = found.counts
    yield (
        f"{count(counts.rows, 'transfer')}, {counts.failed:,} of them failed:"
        " these are counted and are never a rate."
    )
    if counts.without_rtt:
        then = "between known sites it is that of their connection"
        if source.infrastructure is None:
            then = "they are in no profile"
        yield (
            f"Without a round-trip time of their own: {count(counts.without_rtt, 'transfer')};"
            f" {then}."
        )
    if source.infrastructure is None:
        yield "No infrastructure is described, so each host is a site of its own."
        unnamed = sum(cell.n + cell.failed for cell in found.fine if None in ends_of(cell))
        if unnamed:
            yield f"At no site, since a host is not named: {count(unnamed, 'transfer')}."
    yield from _strangers(source, counts)
    for kept in source.kept:
        reasons = sorted(_beginning(kept, "malformed: "), key=lambda one: -one[1])
        if reasons:
            shown = ", ".join(f"{why} ({many:,})" for why, many in reasons[:REASONS_SHOWN])
            more = len(reasons) - REASONS_SHOWN
            end = f" and {more} more" if more > 0 else ""
            yield f"Of {kept.log.name} could not be read: {shown}{end}."
    yield from map(sentence, left_out)


def stranger_notes(source: Opened, wanted: Selection) -> list[str]:
    """A sentence on hosts that belong to no site of the infrastructure, if there are any."""
    known = source.transfers.host_sites
    if known is None or not known.unknown:
        return []
    return list(_strangers(source, source.transfers.counts(wanted)))


def _strangers(source: Opened, counts: Counts) -> Iterator[str]:
    if source.infrastructure is not None and counts.of_unknown_hosts:
        shown = [f"{host} ({many:,})" for host, many in counts.unknown_hosts[:UNKNOWN_SHOWN]]
        yield (
            f"At no site of {source.infrastructure.name}: an end of"
            f" {count(counts.of_unknown_hosts, 'transfer')}, most often {', '.join(shown)}."
        )


def _beginning(kept: KeptLog, head: str) -> list[tuple[str, int]]:
    """What the counts of a kept log say under names that begin so."""
    return [
        (name.removeprefix(head), many)
        for name, many in kept.counts.items()
        if name.startswith(head)
    ]
