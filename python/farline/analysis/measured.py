"""Everything that a page asks of the engine at once, what it explains, and notes on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farline.analysis.cells import SETTINGS, ends_of, fine_cells, period_cells
from farline.analysis.sources import Measurements
from farline.analysis.views import DEFAULT_SHAPE, Shape
from farline.errors import SpecError
from farline.findings import infrastructure as causes
from farline.findings.infrastructure_finding import Explanation
from farline.profiles.cells import Cell, merge_cells
from farline.spec.units import counted, sentence
from farline.store.transfers import Counts, KeptLog, Selection

NETWORK = ("T", "E")
"""Modalities that have round-trip times; H and F are of one site."""
KNOBS = ("concurrency", "parallelism")
UNKNOWN_SHOWN = 5
REASONS_SHOWN = 5


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
        wanted = [cell for cell in self.fine if cell.keys["modality"] in modalities]
        return merge_cells(wanted, by=tuple(dict.fromkeys(("modality", *keys))))

    def of_sites(self, *keys: str) -> list[Cell]:
        """The same by the sites at both ends too; without those whose sites are not known."""
        found = self.by("from_site", "to_site", *keys)
        return [cell for cell in found if None not in ends_of(cell)]


def measure(source: Measurements, wanted: Selection, period_s: float | None) -> Measured:
    """Asks the engine: once for all cells, once by period, once for counts.

    Raises:
        SpecError: when nothing fits.
    """
    keys = (*SETTINGS, *KNOBS, "file_system")
    counts = source.transfers.counts(wanted)
    if not counts.rows:
        raise SpecError("no transfer matches: nothing to analyse")
    fine = fine_cells(source, wanted, keys)
    periods = period_cells(source, wanted, period_s) if period_s is not None else []
    return Measured(tuple(fine), tuple(periods), counts, period_s)


def explanation_of(source: Measurements, found: Measured, shape: Shape) -> Explanation:
    """What costs throughput, from cells by sites and settings."""
    own = [
        cell
        for cell in found.by("from_site", "to_site", *SETTINGS, modalities=("H", "F"))
        if None not in ends_of(cell)
    ]
    return causes.explain(
        [*found.of_sites(*SETTINGS), *own],
        periods=[cell for cell in found.periods if cell.keys["modality"] in NETWORK],
        infrastructure=source.infrastructure,
        capacity_bps=shape.capacity_bps,
        confidence=shape.confidence,
        period_s=found.period_s,
    )


@dataclass(frozen=True)
class Explained:
    """What throughput is lost to, and sentences on what counts and what does not."""

    explanation: Explanation
    notes: tuple[str, ...]


def explain(
    source: Measurements,
    wanted: Selection,
    shape: Shape = DEFAULT_SHAPE,
    period_s: float | None = None,
) -> Explained:
    """What costs throughput at which site, how sure that is, and what to measure next.

    Rates of periods of `period_s` seconds are compared to find drift; of none without.

    Raises:
        SpecError: when nothing fits.
    """
    found = measure(source, wanted, period_s)
    return Explained(explanation_of(source, found, shape), tuple(notes(source, found)))


def notes(source: Measurements, found: Measured, left_out: Sequence[str] = ()) -> Iterator[str]:
    """Sentences on what counts and what does not."""
    counts = found.counts
    yield (
        f"{counted(counts.rows, 'transfer')}, of which {counts.failed:,} failed: failures are "
        "counted but have no rate."
    )
    if counts.without_rtt:
        then = "between known sites the connection's value is used"
        if source.infrastructure is None:
            then = "they are left out of the profiles"
        yield (
            f"Without a round-trip time of their own: {counted(counts.without_rtt, 'transfer')};"
            f" {then}."
        )
    if source.infrastructure is None:
        yield "No infrastructure file was given, so each host counts as its own site."
        unnamed = sum(cell.n + cell.failed for cell in found.fine if None in ends_of(cell))
        if unnamed:
            yield f"Without a site because a host name is missing: {counted(unnamed, 'transfer')}."
    yield from _strangers(source, counts)
    for kept in source.kept:
        reasons = sorted(reasons_of(kept, "malformed: "), key=lambda one: -one[1])
        if reasons:
            shown = ", ".join(f"{why} ({many:,})" for why, many in reasons[:REASONS_SHOWN])
            more = len(reasons) - REASONS_SHOWN
            end = f" and {more} more" if more > 0 else ""
            yield f"Of {kept.log.name} could not be read: {shown}{end}."
    yield from map(sentence, left_out)


def stranger_notes(source: Measurements, wanted: Selection) -> list[str]:
    """A sentence on hosts that belong to no site of the infrastructure, if there are any."""
    known = source.transfers.host_sites
    if known is None or not known.unknown:
        return []
    return list(_strangers(source, source.transfers.counts(wanted)))


def _strangers(source: Measurements, counts: Counts) -> Iterator[str]:
    if source.infrastructure is not None and counts.of_unknown_hosts:
        shown = [f"{host} ({many:,})" for host, many in counts.unknown_hosts[:UNKNOWN_SHOWN]]
        yield (
            f"Without a site in {source.infrastructure.name}: an end of"
            f" {counted(counts.of_unknown_hosts, 'transfer')}, most often {', '.join(shown)}."
        )


def reasons_of(kept: KeptLog, head: str) -> list[tuple[str, int]]:
    """What the counts of a kept log say under names that begin so."""
    return [
        (name.removeprefix(head), many)
        for name, many in kept.counts.items()
        if name.startswith(head)
    ]
