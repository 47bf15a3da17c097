"""Why an infrastructure delivers what it does: causes by gain, sites by gain, what to measure.

The law of rates over RTT and what sites and paths add to it are searched (`bound_search`), what
may be said of it is decided (`diagnosis`), and put into words (`cause_text`). How, and how often
it is right on infrastructures whose faults are known, is in docs/design/explanation.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from farline.errors import SpecError
from farline.findings.bound_search import MOST_PATHS, MOST_SITES, search
from farline.findings.bound_terms import table_of
from farline.findings.cause_text import cause
from farline.findings.diagnosis import MATTERS, Diagnosis, Named
from farline.findings.drift import drift
from farline.findings.finding import counted, percent
from farline.findings.infrastructure_finding import Cause, Explanation
from farline.findings.next_measurement import more_of_everything, next_measurements
from farline.findings.pair_rows import Measured, measured_pairs, pooled_cv
from farline.findings.site_effects import site_ranks
from farline.findings.use_of_lines import full_lines
from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.profiles.cells import Cell
    from farline.spec.infrastructure import Infrastructure

MIN_ROWS, MIN_RUNS = 4, 12
"""Paths with their settings, and runs in all, below which nothing is explained."""

WIDE = 1.3
"""A site's interval from which on, upwards and downwards, it is not known what the site does."""


def explain(
    cells: Sequence[Cell],
    *,
    periods: Sequence[Cell] = (),
    infrastructure: Infrastructure | None = None,
    capacity_bps: float | None = None,
    confidence: float = 0.95,
    period_s: float | None = None,
) -> Explanation:
    """What holds the infrastructure back, as far as the measurements tell.

    `cells` are grouped by `from_site`, `to_site` and `modality`, and where it is known by
    `streams`, `buffer_bytes` and `congestion_control`; T and E are explained, F and H are what
    sites do without the network. `periods` are cells with the key `period` besides, a whole
    number in order of time: with three of them it is looked whether rates fell, and `period_s`,
    the length of one where number 0 begins with 1970, lets dates be said. `capacity_bps` is that
    of all lines, whatever cells and connections state. `confidence` is that with which all causes
    together are right if the measurements are as they are taken: independent, and paths alike.

    Raises:
        SpecError: cells lack one of the keys, or `confidence` is not between 0.5 and 1.
    """
    if not 0.5 <= confidence < 1.0:
        raise SpecError(f"confidence: {confidence} is out of range; allowed: 0.5 to below 1")
    if capacity_bps is not None and not (math.isfinite(capacity_bps) and capacity_bps > 0):
        raise SpecError(f"capacity_bps: {capacity_bps} is not a rate above 0")
    measured = measured_pairs(cells, infrastructure, capacity_bps)
    fallen = drift(periods, confidence, infrastructure, period_s)
    if len(measured.rows) < MIN_ROWS or measured.n < MIN_RUNS:
        return _too_few(measured, fallen, infrastructure)
    table = table_of(measured.rows, pooled_cv(measured.rows))
    diagnosis = Diagnosis(measured, search(table), confidence)
    causes = _causes(diagnosis, fallen)
    ranks = site_ranks(diagnosis, causes)
    wide = [
        rank.site
        for rank in ranks
        if not (rank.ratio_low and rank.ratio_high) or rank.ratio_high / rank.ratio_low > WIDE**2
    ]
    missing = _not_enough(diagnosis, causes, wide)
    return Explanation(
        _lead(measured, causes, missing),
        causes,
        ranks,
        next_measurements(diagnosis, causes, infrastructure),
        missing,
    )


def _causes(diagnosis: Diagnosis, fallen: Cause | None) -> tuple[Cause, ...]:
    """Everything that may be said, largest gain first."""
    full = full_lines(diagnosis)
    found = [cause(diagnosis, named) for named in diagnosis.sure]
    if full is not None and full.kind == "well-used":
        found = []
    elif full is not None:
        found = [one for one in found if full.site is None or one.site != full.site]
    extra = [one for one in (full, fallen) if one is not None]
    return tuple(sorted([*found, *extra], key=lambda one: -one.gain_bps))


def _not_enough(diagnosis: Diagnosis, causes: Sequence[Cause], wide: Sequence[str]) -> str | None:
    """What the measurements leave open, in one line; None where they leave nothing."""
    if any(one.kind == "well-used" for one in causes):
        return None
    doubts = [_doubt(diagnosis, named) for named in diagnosis.open if _costs(diagnosis, named)]
    if doubts:
        return doubts[0]
    if not causes and wide:
        return (
            f"not enough data to tell sites apart: the ratio of {', '.join(wide[:3])} is not known "
            f"to better than ± {100 * (WIDE - 1):.0f} %"
        )
    return None


def _costs(diagnosis: Diagnosis, named: Named) -> bool:
    return _lost(diagnosis, named) >= MATTERS


def _lost(diagnosis: Diagnosis, named: Named) -> float:
    """Share of what rates could be that is missing, 0 to 1: a gain is over what they are."""
    gain = diagnosis.gain(diagnosis.best, named.terms)[1]
    return gain / (1.0 + gain)


def _doubt(diagnosis: Diagnosis, named: Named) -> str:
    kind, subject = named.name
    share = percent(_lost(diagnosis, named))
    if kind in ("files", "tool"):
        return (
            f"file transfers are {share} slower than memory to memory at all sites; these "
            "measurements do not show whether the tool or the file systems are the cause"
        )
    whose = " at all sites" if subject is None else ""
    other = "no particular cause"
    if named.rival is not None:
        rivals = [name for name in diagnosis.names_of(named.rival.fit) if name != named.name]
        words = [
            _in_words(*name) for name in rivals if name not in diagnosis.names_of(diagnosis.best)
        ]
        other = " and ".join(words[:2]) or "chance"
    return (
        f"not enough data: {_in_words(kind, subject)} may cost {share}{whose}, but {other} "
        "would explain the measurements nearly as well"
    )


def _in_words(kind: str, subject: object) -> str:
    words = {
        "site": "one factor for all transfers",
        "io": "a ceiling at one rate",
        "window": "a small window",
        "loss": "losses",
        "streams": "too few streams",
        "path": "a slow path",
        "tool": "the transfer tool",
        "files": "slow files",
    }[kind]
    if subject is None:
        return words
    who = " to ".join(subject) if isinstance(subject, tuple) else str(subject)
    return f"{words} at {who}"


def _too_few(
    measured: Measured, fallen: Cause | None, infrastructure: Infrastructure | None
) -> Explanation:
    have = "no measurement between sites with a known RTT"
    if measured.rows:
        have = (
            f"{counted(measured.n, 'measurement')} of {_rows_in_words(len(measured.rows))} "
            f"between {counted(len(measured.sites), 'site')}"
        )
    missing = (
        f"not enough data: {have}; an explanation needs {MIN_RUNS} measurements or more, of "
        f"{_rows_in_words(MIN_ROWS)} or more"
    )
    if measured.left_out:
        missing += f" ({measured.left_out:,} more without a known site or RTT)"
    causes = () if fallen is None else (fallen,)
    lead = missing if fallen is None else fallen.line
    return Explanation(lead, causes, (), more_of_everything(measured, infrastructure), missing)


def _rows_in_words(count: int) -> str:
    """Rows are paths, each with its settings apart."""
    return f"{counted(count, 'path')} or setting{'' if count == 1 else 's'}"


def _lead(measured: Measured, causes: Sequence[Cause], missing: str | None) -> str:
    """The first sentence: what costs most, or that nothing does."""
    paths = len({(row.sender, row.receiver) for row in measured.rows})
    nameless = sum(row.n for row in measured.rows if not row.streams)
    basis = (
        f"{counted(measured.n, 'measurement')} of {counted(paths, 'path')} between "
        f"{counted(len(measured.sites), 'site')}"
        + (
            f"; {nameless} do not state their number of streams, so streams are ignored"
            if 0 < nameless < measured.n
            else ""
        )
        + (
            (f"; {measured.left_out} without a known site or RTT were left out")
            if measured.left_out
            else ""
        )
        + (f"; {measured.failed} failed" if measured.failed else "")
        + (
            f"; only the {MOST_SITES} sites and {MOST_PATHS} paths with most measurements were "
            "examined one by one"
            if len(measured.sites) > MOST_SITES
            or len({row.pair for row in measured.rows}) > MOST_PATHS
            else ""
        )
    )
    if causes:
        first = causes[0]
        if first.kind == "well-used":
            return f"{first.line} ({basis})"
        gain = f"{rate_human(first.gain_bps)} per path ({percent(first.gain_share)})"
        return f"{first.line}; fixing it would gain {gain} on average; based on {basis}"
    if missing:
        return f"{missing}; based on {basis}"
    return f"no cause stands out: sites and paths differ no more than usual; based on {basis}"
