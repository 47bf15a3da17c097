"""The tables of an analysis' page: coefficients, knots, models, sites, pairs, logs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from farline.findings.infrastructure_finding import SiteRank
from farline.models.model_choice import Candidate
from farline.plots.analysis_values import (
    MODALITY_TEXT,
    AnalysisData,
    LogTally,
    PairRow,
    ProfileView,
)
from farline.plots.analysis_words import coefficient_text, interval_text
from farline.plots.labels import NOTHING, digits, plural
from farline.plots.tables import Cell, Column, Table, TableRow
from farline.profiles.coefficients import Interval
from farline.spec.units import rate_human

_MIDDLE = 0.5
_MODEL_COLUMNS = (
    Column("Profile"),
    Column("What"),
    Column("Model"),
    Column("What was fitted"),
    Column("Parameters", True),
    Column("Error on held-out RTTs", True),
)


def coefficients_table(data: AnalysisData) -> Table:
    """One row per profile: C_UC with mean, ends and C_CC beside it, which it may hide."""
    columns = [
        Column("Profile"),
        Column("What"),
        Column("RTT (ms)", True),
        Column("Knots", True),
        Column("Capacity", True),
        Column("Mean m", True),
        Column("At the left", True),
        Column("At the right", True),
        Column("C_U", True),
        Column("C_CC", True),
        Column("C_UC", True),
        Column("Interval of C_UC", True),
    ]
    return Table(columns, [_coefficients_row(view) for view in data.profiles])


def knots_table(data: AnalysisData) -> Table:
    """One row per profile and round-trip time: what was measured there."""
    columns = [
        Column("Profile"),
        Column("What"),
        Column("RTT (ms)", True),
        Column("n", True),
        Column("Mean", True),
        Column("Standard deviation", True),
        Column("Lowest", True),
        Column("Median", True),
        Column("Highest", True),
        Column("Share of capacity", True),
    ]
    rows = [
        _knot_row(view, index) for view in data.profiles for index in range(len(view.profile.n))
    ]
    return Table(columns, rows)


def models_table(data: AnalysisData) -> Table:
    """One row per profile that has a model: the chosen one, how far off it is, and why it."""
    rows = []
    for view in data.profiles:
        if view.choice is None:
            continue
        for candidate in view.choice.candidates:
            if candidate.model.name == view.choice.chosen.name:
                row, rule = _candidate_row(view, candidate), view.choice.rule
                rows.append(replace(row, cells=[*row.cells, Cell(rule, rule)]))
    return Table([*_MODEL_COLUMNS, Column("Reason")], rows)


def candidates_table(data: AnalysisData) -> Table:
    """Every model of every profile, best first, with its error or why it could not be fitted."""
    rows = []
    for view in data.profiles:
        if view.choice is None:
            continue
        for candidate in view.choice.candidates:
            row = _candidate_row(view, candidate)
            rows.append(replace(row, best=candidate.model.name == view.choice.chosen.name))
    return Table(_MODEL_COLUMNS, rows)


def pairs_table(data: AnalysisData) -> Table:
    """One row per pair of sites and direction."""
    columns = [
        Column("From"),
        Column("To"),
        Column("What"),
        Column("RTT (ms)", True),
        Column("n", True),
        Column("Mean", True),
        Column("Standard deviation", True),
        Column("Capacity", True),
        Column("Share", True),
    ]
    return Table(columns, [_pair_row(pair) for pair in data.pairs])


def ranks_table(ranks: Sequence[SiteRank]) -> Table:
    """Sites by what bringing them up to the others would gain."""
    columns = [
        Column("Site"),
        Column("Measurements", True),
        Column("Compared with the others at the same RTTs", True),
        Column("Interval", True),
        Column("Gain in the mean", True),
    ]
    rows = []
    for rank in ranks:
        span = interval_text(Interval(rank.ratio, rank.ratio_low, rank.ratio_high), NOTHING)
        gain = f"+{rate_human(rank.gain_bps)}" if rank.gain_bps > 0 else "none"
        cells = [
            Cell(rank.site, rank.site),
            Cell(str(rank.n), str(rank.n)),
            Cell(f"{digits(rank.ratio)} \N{MULTIPLICATION SIGN}", f"{rank.ratio:.6g}"),
            Cell(span),
            Cell(gain, f"{rank.gain_bps:.6g}"),
        ]
        rows.append(TableRow(cells))
    return Table(columns, rows)


def tallies_table(tallies: Sequence[LogTally]) -> Table:
    """One row per log: what was seen in it and what became of it."""
    columns = [
        Column("Source"),
        Column("Format"),
        Column("Records", True),
        Column("Transfers", True),
        Column("Failed", True),
        Column("Left out, with reasons"),
        Column("Not records", True),
    ]
    rows = []
    for tally in tallies:
        why = ", ".join(f"{count} {reason}" for reason, count in tally.skipped.items())
        counts = [_count(tally.records), _count(tally.transfers), _count(tally.failed)]
        odd = _count(tally.malformed, bad=tally.malformed > 0)
        cells = [Cell(tally.source, tally.source), Cell(tally.tool, tally.tool), *counts]
        rows.append(TableRow([*cells, Cell(why or NOTHING, why), odd]))
    return Table(columns, rows)


def warnings(data: AnalysisData) -> dict[str, list[str]]:
    """What misleads in the coefficients, and of which profiles that is said."""
    found: dict[str, list[str]] = {}
    for view in data.profiles:
        what = MODALITY_TEXT.get(view.profile.modality, view.profile.modality)
        for warning in view.coefficients.warnings if view.coefficients is not None else ():
            found.setdefault(warning, []).append(f"{view.name} ({what})")
    return found


def _coefficients_row(view: ProfileView) -> TableRow:
    profile, found = view.profile, view.coefficients
    ends = (
        [profile.rtt_ms[0], profile.rtt_ms[-1]]
        if found is None
        else [found.left_ms, found.right_ms]
    )
    span = f"{ends[0]:.4g} to {ends[1]:.4g}" if ends[0] != ends[1] else f"{ends[0]:.4g}"
    what = MODALITY_TEXT.get(profile.modality, profile.modality)
    head = [
        Cell(view.name, view.name),
        Cell(what, what),
        Cell(span, f"{ends[0]:.6g}"),
        _count(len(profile.n)),
        _rate(profile.capacity_bps),
    ]
    if found is None:
        return TableRow([*head, *[Cell(NOTHING)] * 7])
    numbers = [found.mean.value, found.left, found.right, found.c_u.value, found.c_cc.value]
    if found.warnings:
        head[0] = Cell(view.name, view.name, badge=plural(len(found.warnings), "warning"))
    c_uc = _plain(found.c_uc.value)
    interval = Cell(interval_text(found.c_uc, NOTHING))
    return TableRow([*head, *map(_plain, numbers), c_uc, interval])


def _knot_row(view: ProfileView, index: int) -> TableRow:
    profile = view.profile
    what = MODALITY_TEXT.get(profile.modality, profile.modality)
    mean = float(profile.mean_bps[index])
    share = mean / profile.capacity_bps if profile.capacity_bps else math.nan
    middle = profile.quantiles.get(_MIDDLE)
    rates = [
        None if values is None else float(values[index])
        for values in (profile.sd_bps, profile.low_bps, middle, profile.high_bps)
    ]
    time = float(profile.rtt_ms[index])
    return TableRow(
        [Cell(view.name, view.name), Cell(what, what), Cell(f"{time:.5g}", f"{time:.9g}"),
         _count(int(profile.n[index])), _rate(mean), *map(_rate, rates),
         _percent(100 * share)]
    )  # fmt: skip


def _candidate_row(view: ProfileView, candidate: Candidate) -> TableRow:
    what = MODALITY_TEXT.get(view.profile.modality, view.profile.modality)
    name = candidate.model.name
    said = candidate.why_not or candidate.model.in_words()
    count = str(candidate.parameters)
    none = Cell("none", bad=True)
    error = none if candidate.error is None else _percent(100 * candidate.error)
    cells = [Cell(view.name, view.name), Cell(what, what), Cell(name, name), Cell(said, said)]
    return TableRow([*cells, Cell(count, count), error])


def _pair_row(pair: PairRow) -> TableRow:
    what = MODALITY_TEXT.get(pair.modality, pair.modality)
    time = (
        Cell(NOTHING) if pair.rtt_ms is None else Cell(f"{pair.rtt_ms:.5g}", f"{pair.rtt_ms:.9g}")
    )
    badge = f"{pair.failed} failed" if pair.failed else ""
    lost = pair.mean_bps is None and pair.failed > 0
    mean = Cell("no transfer completed", bad=True) if lost else _rate(pair.mean_bps)
    share = pair.share
    return TableRow(
        [
            Cell(pair.from_site, pair.from_site),
            Cell(pair.to_site, pair.to_site),
            Cell(what, what),
            time,
            Cell(str(pair.n), str(pair.n), badge=badge),
            mean,
            _rate(pair.sd_bps),
            _rate(pair.capacity_bps),
            Cell(NOTHING) if share is None else _percent(100 * share),
        ]
    )


def _rate(rate_bps: float | None) -> Cell:
    if rate_bps is None or not math.isfinite(rate_bps):
        return Cell(NOTHING)
    return Cell(rate_human(rate_bps), f"{rate_bps:.9g}")


def _count(count: int, bad: bool = False) -> Cell:
    return Cell(f"{count:,}".replace(",", "\u202f"), str(count), bad=bad)


def _plain(value: float) -> Cell:
    return Cell(coefficient_text(value), f"{value:.9g}" if math.isfinite(value) else "")


def _percent(value: float) -> Cell:
    if not math.isfinite(value):
        return Cell(NOTHING)
    return Cell(f"{digits(value)}\u202f%", f"{value:.9g}")
