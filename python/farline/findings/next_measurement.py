"""Which measurement would tell most next.

First what tells two explanations apart that fit alike: the path on which they differ most against
the noise. Then what a cause leaves open by its nature. Then paths and repeats that are missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from farline.findings.diagnosis import Diagnosis, Named
from farline.findings.finding import STREAMS_MAX, percent
from farline.findings.infrastructure_finding import Cause, NextMeasurement
from farline.findings.pair_rows import PRIOR_DEGREES, Measured, PairRow, pooled_cv
from farline.models.buffer_need import buffer_bytes, window_bytes
from farline.spec.units import rate_human, size_text

if TYPE_CHECKING:
    from farline.spec.infrastructure import Infrastructure

MOST = 4
REPEATS = 5
"""Repeats that a proposed measurement is thought to have."""

GOOD_WIDTH = 0.1
"""Half of the 95 % interval of a mean, over the mean, with which one can be content."""

RUN_S = 30
_BUFFER_MAX = 2**31 - 1


def next_measurements(
    diagnosis: Diagnosis,
    causes: Sequence[Cause],
    infrastructure: Infrastructure | None = None,
) -> tuple[NextMeasurement, ...]:
    """What to measure, most telling first; at most `MOST`."""
    seen: dict[tuple[str, tuple[str, ...]], NextMeasurement] = {}
    for one in _proposals(diagnosis, causes, infrastructure):
        seen.setdefault((one.what, one.sites), one)
        if len(seen) == MOST:
            break
    return tuple(seen.values())


def more_of_everything(
    measured: Measured, infrastructure: Infrastructure | None = None
) -> tuple[NextMeasurement, ...]:
    """What to measure where there is too little for any explanation."""
    proposals = [*_repeats(measured, infrastructure), *_missing(measured, infrastructure)]
    return tuple(proposals[:MOST])


def repeats_wanted(cv: float, half_width: float = GOOD_WIDTH) -> int:
    """Runs for which half of the 95 % interval by Student's t is within a share of the mean."""
    from scipy.special import stdtrit

    n = 2
    while stdtrit(n - 1, 0.975) * cv / math.sqrt(n) > half_width and n < 10_000:
        n += 1
    return n


def probe(
    to_site: str,
    infrastructure: Infrastructure | None,
    streams: float | None = None,
    more: str = "",
) -> str:
    """The command of a run towards a site, by a host's name where one is known."""
    hosts = [
        host
        for site in (infrastructure.sites if infrastructure else ())
        if site.name == to_site
        for host in site.hosts
        if not set(host) & set("*?[/ ")
    ]
    count = f" -P {streams:g}" if streams else ""
    return f"farline probe {hosts[0] if hosts else 'HOST'}{count}{more} -t {RUN_S}"


def _proposals(
    diagnosis: Diagnosis, causes: Sequence[Cause], infrastructure: Infrastructure | None
) -> Iterator[NextMeasurement]:
    undecided = [*(one for one in diagnosis.sure if one.kind_open), *diagnosis.open]
    for named in undecided[:2]:
        yield from _between(diagnosis, named, infrastructure)
    for cause in causes:
        yield from _after(diagnosis, cause, infrastructure)
    yield from _missing(diagnosis.measured, infrastructure)
    yield from _repeats(diagnosis.measured, infrastructure)


def _between(
    diagnosis: Diagnosis, named: Named, infrastructure: Infrastructure | None
) -> Iterator[NextMeasurement]:
    """The path on which the best explanation and its rival differ most."""
    if named.name[0] in ("files", "tool"):
        yield from _file_systems(diagnosis)
        return
    if named.rival is None:
        return
    rows = _possible(diagnosis.measured, infrastructure)
    table = replace(diagnosis.table, rows=tuple(rows))
    one, other = diagnosis.best.log_rate(table), named.rival.fit.log_rate(table)
    gap = np.abs(one - other)
    index = int(np.argmax(gap))
    row = rows[index]
    if gap[index] < GOOD_WIDTH:
        return
    low, high = sorted((math.exp(one[index]), math.exp(other[index])))
    why = (
        f"distinguishes two explanations that fit equally well: they predict {rate_human(low)} "
        f"and {rate_human(high)}"
    )
    yield _measure(row, why, infrastructure)


def _measure(
    row: PairRow, why: str, infrastructure: Infrastructure | None, more: str = ""
) -> NextMeasurement:
    kind = "files" if row.modality == "E" else "memory to memory"
    streams = f", {row.streams:g} stream{'s' if row.streams > 1 else ''}" if row.streams else ""
    what = (
        f"{kind} from {row.sender} to {row.receiver} "
        f"(RTT {row.rtt_ms:g} ms{streams}), {REPEATS} runs"
    )
    runs = kind != "files" and (row.streams or 1) <= STREAMS_MAX
    command = probe(row.receiver, infrastructure, row.streams, more) if runs else None
    return NextMeasurement(what, (row.sender, row.receiver), why, command)


def _possible(measured: Measured, infrastructure: Infrastructure | None) -> list[PairRow]:
    """Paths that were measured, and those that are known but were not, with usual settings."""
    rows = [replace(row, n=REPEATS) for row in measured.rows]
    usual = max(measured.rows, key=lambda row: row.n)
    for sender, receiver, rtt_ms, capacity in _unmeasured(measured, infrastructure):
        rows.append(
            replace(
                usual,
                sender=sender,
                receiver=receiver,
                rtt_ms=rtt_ms,
                n=REPEATS,
                capacity_bps=capacity or usual.capacity_bps,
            )
        )
    return rows


def _unmeasured(
    measured: Measured, infrastructure: Infrastructure | None
) -> Iterator[tuple[str, str, float, float | None]]:
    """Connections between measured sites that nobody measured, with their RTT where known."""
    pairs = {row.pair for row in measured.rows}
    for one in infrastructure.connections if infrastructure else ():
        first, second = sorted(one.sites)
        if first != second and (first, second) not in pairs and {*one.sites} <= {*measured.sites}:
            yield first, second, one.rtt_ms, one.capacity_bps


def _after(
    diagnosis: Diagnosis, cause: Cause, infrastructure: Infrastructure | None
) -> Iterator[NextMeasurement]:
    """What would settle a cause, or show the way to its remedy."""
    table = diagnosis.table
    rows = [row for row in table.rows if cause.site is None or cause.site in row.pair]
    if not rows:
        return
    longest = max(rows, key=lambda row: row.rtt_ms)
    memory = replace(longest, modality="T")
    if cause.kind in ("window", "loss"):
        most_bps = math.exp(float(np.max(table.log_rate)))
        window = window_bytes(most_bps, longest.rtt_ms / 1e3, longest.streams or 1.0)
        buffer = min(max(1 << 20, buffer_bytes(window)), _BUFFER_MAX & ~0xFFFFF)
        why = (
            "larger buffers help if buffers are the limit, not if losses are; retransmissions are "
            "counted"
        )
        yield _measure(memory, why, infrastructure, f" -w {size_text(buffer)}")
    elif cause.kind == "streams":
        most = float(np.max(table.streams))
        count = min(2 * most, STREAMS_MAX)
        why = "shows whether even more streams help"
        if count > most:
            yield _measure(replace(memory, streams=count), why, infrastructure)
    elif cause.kind in ("io", "site") and not any(row.modality == "T" for row in rows):
        why = (
            f"separates the network and hosts of {cause.site or 'the sites'} from their file "
            "systems"
        )
        yield _measure(memory, why, infrastructure)
    elif cause.kind == "io" and cause.site is not None:
        yield from _file_systems(diagnosis, (cause.site,))


def _file_systems(
    diagnosis: Diagnosis, sites: tuple[str, ...] | None = None
) -> Iterator[NextMeasurement]:
    """The file system by itself: the modality F of Rao et al. 2018."""
    unknown = [
        site
        for site in sites or diagnosis.table.sites
        if (known := diagnosis.measured.limits.get(site)) is None or known.write_bps is None
    ]
    if unknown:
        what = (
            f"read and write rates of the file systems of {', '.join(unknown)}, without the network"
        )
        why = (
            "separates file systems from the transfer tool: files are slower than the network here"
        )
        yield NextMeasurement(what, tuple(unknown), why)


def _missing(
    measured: Measured, infrastructure: Infrastructure | None
) -> Iterator[NextMeasurement]:
    """The unmeasured path between the two sites that have fewest measured ones."""
    count = {site: sum(site in row.pair for row in measured.rows) for site in measured.sites}
    known = list(_unmeasured(measured, infrastructure))
    if known:
        sender, receiver = min(known, key=lambda one: count[one[0]] + count[one[1]])[:2]
    else:
        pairs = {row.pair for row in measured.rows}
        sites = measured.sites
        free = [(a, b) for a in sites for b in sites if a < b and (a, b) not in pairs]
        if not free:
            return
        sender, receiver = min(free, key=lambda one: count[one[0]] + count[one[1]])
    why = f"this path was never measured, and {sender} and {receiver} have few measured paths"
    what = f"memory to memory from {sender} to {receiver}, {REPEATS} runs"
    yield NextMeasurement(what, (sender, receiver), why, probe(receiver, infrastructure))


def _repeats(
    measured: Measured, infrastructure: Infrastructure | None
) -> Iterator[NextMeasurement]:
    """More runs on the path whose mean is known worst."""
    usual = pooled_cv(measured.rows)
    wanted = repeats_wanted(usual)
    row = min(measured.rows, key=lambda one: one.n, default=None)
    if row is None or row.n >= wanted:
        return
    kind = "files" if row.modality == "E" else "memory to memory"
    what = f"{wanted - row.n} more runs from {row.sender} to {row.receiver} ({kind})"
    repeated = sum(one.n - 1 for one in measured.rows if one.cv is not None)
    known = repeated >= PRIOR_DEGREES
    why = (
        f"runs {'differ' if known else 'are taken to differ'} by {percent(usual)}: {wanted} runs "
        f"give a mean to ± {percent(GOOD_WIDTH)}, and there {'is' if row.n == 1 else 'are'} {row.n}"
    )
    runs = row.modality != "E" and (row.streams or 1) <= STREAMS_MAX
    command = probe(row.receiver, infrastructure, row.streams) if runs else None
    yield NextMeasurement(what, (row.sender, row.receiver), why, command)
