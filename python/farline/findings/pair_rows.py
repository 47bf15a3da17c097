"""What was measured between pairs of sites, as the explanation of an infrastructure needs it.

Cells come in as they were grouped; here they become one row per pair of sites, modality and
setting, and what is known of each site's own limits is put beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farline.errors import SpecError
from farline.spec.transfers import MODALITIES

if TYPE_CHECKING:
    from farline.profiles.cells import Cell
    from farline.spec.infrastructure import Infrastructure

NEEDED_KEYS = ("from_site", "to_site", "modality")
"""What cells must have been grouped by."""

SAME_RTT_SHARE, SAME_RTT_MS = 0.1, 0.5
"""RTTs of one pair that are so near are those of one path."""

MIN_RTT_MS = 0.01
"""Smaller RTTs, and 0 as emulators state it, count as this: nothing is bound by RTT there."""

PRIOR_CV, PRIOR_DEGREES = 0.2, 4
"""Spread of repeats before any was seen, and how many degrees of freedom it is worth."""

Setting = tuple[float | None, float | None, str | None]


@dataclass(frozen=True, slots=True)
class PairRow:
    """Complete measurements from one site to another with one setting.

    `modality` is T (memory to memory) or E (file to file). `cv` is the coefficient of variation
    of repeats, None where n is 1. `streams` and `buffer_bytes` are None where they are unknown.
    """

    sender: str
    receiver: str
    modality: str
    rtt_ms: float
    n: int
    mean_bps: float
    cv: float | None = None
    streams: float | None = None
    buffer_bytes: float | None = None
    congestion_control: str | None = None
    capacity_bps: float | None = None

    @property
    def pair(self) -> tuple[str, str]:
        """Both sites without a direction."""
        return min(self.sender, self.receiver), max(self.sender, self.receiver)

    @property
    def setting(self) -> Setting:
        """Streams, buffers and congestion control."""
        return self.streams, self.buffer_bytes, self.congestion_control


@dataclass(frozen=True, slots=True)
class SiteLimits:
    """What a site's host and file systems were stated or measured to do, in bit/s."""

    host_bps: float | None = None
    read_bps: float | None = None
    write_bps: float | None = None


@dataclass(frozen=True)
class Measured:
    """Rows of all pairs; `left_out` counts measurements without site or RTT."""

    rows: tuple[PairRow, ...]
    limits: Mapping[str, SiteLimits] = field(default_factory=dict)
    left_out: int = 0
    failed: int = 0

    @property
    def sites(self) -> tuple[str, ...]:
        """Every site that a row names, in order."""
        return tuple(sorted({site for row in self.rows for site in row.pair}))

    @property
    def n(self) -> int:
        """Measurements behind all rows."""
        return sum(row.n for row in self.rows)

    def file_limit_bps(self, row: PairRow) -> float | None:
        """What hosts and file systems at both ends allow a file transfer; None if one is unknown.

        Rao et al. 2018, section 3.4: min{Θ_H, Θ_F}, over both sites.
        """
        known = []
        for site, is_sender in ((row.sender, True), (row.receiver, False)):
            limits = self.limits.get(site, SiteLimits())
            files = limits.read_bps if is_sender else limits.write_bps
            if files is None:
                return None
            known += [files] if limits.host_bps is None else [files, limits.host_bps]
        return min(known)


def measured_pairs(
    cells: Sequence[Cell],
    infrastructure: Infrastructure | None = None,
    capacity_bps: float | None = None,
) -> Measured:
    """Rows from cells with the keys `NEEDED_KEYS`; `streams` and others are used where they are.

    `capacity_bps` is that of all lines and goes before what cells and connections state; without
    it a cell's own capacity goes before that of the connection. A cell without RTT takes that of
    the connection.

    Raises:
        SpecError: where cells were not grouped by sites and modality.
    """
    rows: list[PairRow] = []
    own: dict[str, list[Cell]] = {}
    left_out = 0
    for cell in cells:
        _check_keys(cell)
        modality, sender, receiver = (cell.keys[key] for key in ("modality", *NEEDED_KEYS[:2]))
        if cell.n == 0:
            continue
        if modality in ("F", "H"):
            own.setdefault(f"{modality}{sender}", []).append(cell)
            continue
        rtt_ms, capacity = _path_of(cell, infrastructure, capacity_bps)
        if sender is None or receiver is None or rtt_ms is None or cell.mean_bps <= 0:
            left_out += cell.n
            continue
        rows.append(_row(cell, rtt_ms, capacity))
    return Measured(
        tuple(_merged(rows)),
        _limits(own, infrastructure),
        left_out,
        sum(cell.failed for cell in cells),
    )


def pooled_cv(rows: Iterable[PairRow]) -> float:
    """Spread of repeats over their mean, over all rows together, shrunk to a usual one for few."""
    degrees, squares = float(PRIOR_DEGREES), PRIOR_DEGREES * PRIOR_CV**2
    for row in rows:
        if row.cv is not None:
            degrees += row.n - 1
            squares += (row.n - 1) * row.cv**2
    return math.sqrt(squares / degrees)


def _check_keys(cell: Cell) -> None:
    missing = [key for key in NEEDED_KEYS if key not in cell.keys]
    if missing:
        raise SpecError(
            f"an explanation needs cells by {', '.join(NEEDED_KEYS)}: "
            f"{', '.join(missing)} is missing in cells by {', '.join(cell.keys) or 'nothing'}"
        )
    if cell.keys["modality"] not in MODALITIES:
        raise SpecError(
            f"modality: {cell.keys['modality']!r} is not one of {', '.join(MODALITIES)}"
        )


def _path_of(
    cell: Cell, infrastructure: Infrastructure | None, capacity_bps: float | None
) -> tuple[float | None, float | None]:
    """RTT and capacity of the path that a cell was measured on."""
    rtt_ms, capacity = cell.rtt_ms, cell.capacity_bps
    if infrastructure is not None:
        ends = {cell.keys["from_site"], cell.keys["to_site"]}
        for connection in infrastructure.connections:
            if set(connection.sites) == ends:
                rtt_ms = connection.rtt_ms if rtt_ms is None else rtt_ms
                capacity = capacity or connection.capacity_bps
        capacity = capacity or infrastructure.capacity_bps
    return rtt_ms, capacity_bps or capacity


def _row(cell: Cell, rtt_ms: float, capacity_bps: float | None) -> PairRow:
    keys = cell.keys
    return PairRow(
        str(keys["from_site"]),
        str(keys["to_site"]),
        str(keys["modality"]),
        max(rtt_ms, MIN_RTT_MS),
        cell.n,
        cell.mean_bps,
        _cv(cell.n, cell.sum_bps, cell.sum_square),
        _positive(keys.get("streams")),
        _positive(keys.get("buffer_bytes")),
        None if keys.get("congestion_control") is None else str(keys["congestion_control"]),
        capacity_bps,
    )


def _cv(n: int, total: float, squares: float) -> float | None:
    if n < 2:
        return None
    mean = total / n
    return math.sqrt(max(squares - n * mean**2, 0.0) / (n - 1)) / mean


def _positive(value: object) -> float | None:
    """A number above zero; None for everything else, NaN included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value > 0 else None


def _merged(rows: Iterable[PairRow]) -> list[PairRow]:
    """Rows of one pair and setting with nearly one RTT become one."""
    found: dict[tuple[str, str, str, Setting], list[PairRow]] = {}
    for row in sorted(rows, key=lambda row: row.rtt_ms):
        group = found.setdefault((row.sender, row.receiver, row.modality, row.setting), [])
        if group and same_rtt(group[-1].rtt_ms, row.rtt_ms):
            group[-1] = _sum(group[-1], row)
        else:
            group.append(row)
    return [row for group in found.values() for row in group]


def same_rtt(one_ms: float, other_ms: float) -> bool:
    """Whether two RTTs of one pair, the smaller one first, are those of one path."""
    return other_ms - one_ms <= max(SAME_RTT_MS, SAME_RTT_SHARE * one_ms)


def _sum(one: PairRow, other: PairRow) -> PairRow:
    n = one.n + other.n
    total = one.n * one.mean_bps + other.n * other.mean_bps
    squares = sum(
        row.n * row.mean_bps**2 + (row.n - 1) * ((row.cv or 0.0) * row.mean_bps) ** 2
        for row in (one, other)
    )
    return PairRow(
        one.sender,
        one.receiver,
        one.modality,
        (one.n * one.rtt_ms + other.n * other.rtt_ms) / n,
        n,
        total / n,
        _cv(n, total, squares),
        one.streams,
        one.buffer_bytes,
        one.congestion_control,
        max((known for known in (one.capacity_bps, other.capacity_bps) if known), default=None),
    )


def _limits(
    own: Mapping[str, Sequence[Cell]], infrastructure: Infrastructure | None
) -> dict[str, SiteLimits]:
    """Limits of each site: what was measured goes before what was stated."""
    stated = {} if infrastructure is None else {site.name: site for site in infrastructure.sites}
    limits = {}
    for name in {*stated, *(key[1:] for key in own)}:
        site = stated.get(name)
        systems = () if site is None else site.file_systems
        files = _mean(own.get(f"F{name}", ()))
        limits[name] = SiteLimits(
            _mean(own.get(f"H{name}", ())) or (None if site is None else site.host_bps),
            files or max((one.read_bps for one in systems if one.read_bps), default=None),
            files or max((one.write_bps for one in systems if one.write_bps), default=None),
        )
    return limits


def _mean(cells: Sequence[Cell]) -> float | None:
    n = sum(cell.n for cell in cells)
    return sum(cell.sum_bps for cell in cells) / n if n else None
