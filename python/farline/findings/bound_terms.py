"""The parts that an explanation is made of: bounds, of which the smallest holds, and shares.

The logarithm of a rate from site i to site j is taken as the smallest of some bounds, plus what
all rates of a site, a path or a modality have in common. Every term has one free number θ and is
a straight line in it, so that fits are linear once it is known which bound holds where:

    log rate = min over bounds (θ + offset) + Σ θ of the shares that touch the row

Bounds: `level` (what line or hosts do at most, falling gently with RTT where transfers are short
against their ramp), `window` (n W / RTT), `loss` (n A over a power of RTT below 1), `streams` (a
limit of each stream, or of each more stream, whatever the RTT). Shares: a factor on everything of
a site, a path, or of file transfers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from farline.findings.pair_rows import PairRow, same_rtt

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Role = Literal["any", "sender", "receiver"]
ROLES: tuple[Role, ...] = ("any", "sender", "receiver")

Law = Literal["level", "window", "buffer", "loss", "streams", "share"]

FULL = 0.95
"""Share of a line's capacity that payload can have."""


@dataclass(frozen=True)
class PairTable:
    """Rows as arrays; `spread` is the standard deviation of one measurement's logarithm."""

    rows: tuple[PairRow, ...]
    sites: tuple[str, ...]
    spread: float
    scale_ms: float

    @cached_property
    def sender(self) -> NDArray[np.int64]:
        """Index of the sending site of each row."""
        return np.array([self.sites.index(row.sender) for row in self.rows], dtype=np.int64)

    @cached_property
    def receiver(self) -> NDArray[np.int64]:
        """Index of the receiving site of each row."""
        return np.array([self.sites.index(row.receiver) for row in self.rows], dtype=np.int64)

    @cached_property
    def rtt_ms(self) -> Floats:
        """Round-trip time of each row."""
        return np.array([row.rtt_ms for row in self.rows])

    @cached_property
    def streams(self) -> Floats:
        """Streams of each row; 1 in all where any is unknown.

        A window is that of all streams together then, and no law of streams can be told.
        """
        if not self.streams_known:
            return np.ones(len(self))
        return np.array([row.streams or 1.0 for row in self.rows])

    @property
    def streams_known(self) -> bool:
        """Whether every row states its streams."""
        return all(row.streams for row in self.rows)

    @cached_property
    def buffer_bytes(self) -> Floats:
        """Socket buffer of each row, NaN where unknown."""
        return np.array([row.buffer_bytes or np.nan for row in self.rows])

    @cached_property
    def is_file(self) -> Bools:
        """Rows of file transfers."""
        return np.array([row.modality == "E" for row in self.rows])

    @cached_property
    def rate_bps(self) -> Floats:
        """Mean rate of each row."""
        return np.array([row.mean_bps for row in self.rows])

    @cached_property
    def log_rate(self) -> Floats:
        """Logarithm of the mean rate."""
        return np.log(self.rate_bps)

    @cached_property
    def capacity_bps(self) -> Floats:
        """Capacity of each row's path; infinite where unknown."""
        return np.array([row.capacity_bps or np.inf for row in self.rows])

    @cached_property
    def weight(self) -> Floats:
        """One over the variance of each row's logarithm.

        Rows of one path share what makes the path unlike others: together they tell no more than
        `UNLIKE` allows.
        """
        n = np.array([row.n for row in self.rows], dtype=np.float64)
        weight = n / self.spread**2
        order = {name: index for index, name in enumerate(sorted(set(self.lines)))}
        path = np.array([order[name] for name in self.lines], dtype=np.int64)
        of_path = np.bincount(path, weights=weight)
        return np.asarray(weight / (1.0 + UNLIKE**2 * of_path[path]))

    @cached_property
    def paths(self) -> tuple[tuple[str, str], ...]:
        """Both sites of each row, without a direction."""
        return tuple(row.pair for row in self.rows)

    @cached_property
    def lines(self) -> tuple[tuple[str, str, int], ...]:
        """As `paths`, with a number for each RTT of a pair: two hosts may be measured at many."""
        found: list[tuple[str, str, int]] = [("", "", 0)] * len(self)
        last: dict[tuple[str, str], tuple[float, int]] = {}
        for row in sorted(range(len(self)), key=lambda row: self.rows[row].rtt_ms):
            pair, rtt_ms = self.paths[row], self.rows[row].rtt_ms
            before_ms, number = last.get(pair, (rtt_ms, 0))
            if not same_rtt(before_ms, rtt_ms):
                number += 1
            last[pair] = (rtt_ms, number)
            found[row] = (*pair, number)
        return tuple(found)

    @cached_property
    def known(self) -> dict[Term, tuple[Bools, Floats]]:
        """Rows and offsets of terms that were asked for before: each is asked for many times."""
        return {}

    def __len__(self) -> int:
        return len(self.rows)

    def touches(self, site: int, role: Role = "any") -> Bools:
        """Rows that begin (`sender`), end (`receiver`) or do either at a site."""
        if role == "any":
            return np.asarray((self.sender == site) | (self.receiver == site))
        return np.asarray((self.sender if role == "sender" else self.receiver) == site)


UNLIKE = 0.06
"""Paths are never more alike than this share, however often they were measured."""


@dataclass(frozen=True, slots=True)
class Term:
    """One bound or share. `site` (with `role`) or `path` (two sites) say which rows it is about.

    `shape` is a number that the law has beside its θ: how far a level falls up to the longest RTT
    (0 to 1), the power of a loss, how fast streams saturate (0: never).
    """

    law: Law
    site: int | None = None
    role: Role = "any"
    path: tuple[int, int] | None = None
    files_only: bool = False
    ramp: float = 0.0
    shape: float = 0.0

    @property
    def is_bound(self) -> bool:
        """Whether it is one of the bounds of which the smallest holds."""
        return self.law != "share"

    def mask(self, table: PairTable) -> Bools:
        """Rows that it is about."""
        return self._on(table)[0]

    def offset(self, table: PairTable) -> Floats:
        """What is added to θ for each row; infinite where the term is not about the row."""
        return self._on(table)[1]

    def _on(self, table: PairTable) -> tuple[Bools, Floats]:
        if self not in table.known:
            mask = self._rows(table)
            table.known[self] = mask, np.where(mask, self._law(table), np.inf)
        return table.known[self]

    def _rows(self, table: PairTable) -> Bools:
        mask = np.ones(len(table), dtype=np.bool_)
        if self.site is not None:
            mask = table.touches(self.site, self.role)
        elif self.path is not None:
            one, other = self.path
            mask = table.touches(one) & table.touches(other)
            mask &= (table.sender == table.receiver) == (one == other)
        return mask & table.is_file if self.files_only else mask

    def _law(self, table: PairTable) -> Floats:
        rtt, streams = np.log(table.rtt_ms), np.log(table.streams)
        ramp = np.log1p(-self.ramp * np.minimum(table.rtt_ms / table.scale_ms, 1.0))
        match self.law:
            case "level":
                value = ramp
            case "window":
                value = streams - rtt
            case "buffer":
                value = streams - rtt + np.log(table.buffer_bytes)
            case "loss":
                value = streams - self.shape * rtt
            case "streams":
                value = ramp + _of_streams(table.streams, self.shape)
            case "share":
                value = np.zeros(len(table))
        return np.asarray(value)


def _of_streams(streams: Floats, shape: float) -> Floats:
    """Log of what n streams reach: n times one, or 1 − 1/(1 + κ n) (Altman et al. 2006)."""
    if shape == 0.0:
        return np.log(streams)
    return np.asarray(np.log1p(-1.0 / (1.0 + shape * streams)))


def table_of(rows: Sequence[PairRow], spread: float, sites: Sequence[str] = ()) -> PairTable:
    """Arrays from rows; sites in the order given, or else sorted."""
    names = tuple(sites) or tuple(sorted({site for row in rows for site in row.pair}))
    return PairTable(tuple(rows), names, spread, max(row.rtt_ms for row in rows))
