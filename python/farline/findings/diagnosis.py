"""From explanations that were tried to what may be named: which causes, and how surely.

A cause is named only where every explanation without it is worse by the odds asked for. Where two
explanations that name different things fit alike, neither is named, and what would tell them
apart is measured next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from farline.findings.bound_fit import Fit
from farline.findings.bound_search import Search, Tried
from farline.findings.bound_terms import FULL, Bools, Floats, PairTable, Term
from farline.findings.infrastructure_finding import CauseKind
from farline.findings.pair_rows import Measured

MATTERS = 0.1
"""Share of a rate that a cause must cost before it is one."""

MOST_PICKS = 3.0
"""Score that an explanation with single sites is given back against one of all sites."""

AT_ONCE = 2
"""Causes that may be named at once."""

SURELY = 1.645
"""Standard errors by which a share must be below that: 95 %, one side."""

TOOL_BELOW, FILES_REACHED = 0.75, 0.8
"""Share of what hosts and file systems allow, below which the tool holds files back, and from
which they do."""

WINDOW_OF_BUFFER = (0.15, 0.3)
"""Share of a socket buffer that is seen under way: below the first it is not the buffer that
binds; from the second it is. A kernel gives half of a receive buffer or more to the window."""

USED = 0.9
"""Share of the capacity from which a line is full."""

STREAMS_MORE = 4
"""More streams than this times the most that were measured are not promised anything."""

Subject = str | tuple[str, str] | None
Name = tuple[CauseKind | Literal["files"], Subject]
"""A cause and whose it is: a site, a pair of sites, or None for all. `files`: file transfers are
slow everywhere, and whether tool or file systems is not known."""


@dataclass(frozen=True)
class Named:
    """A cause of the best explanation: its terms, and by how much explanations without it fall
    behind; `rival` is the best of these."""

    name: Name
    terms: tuple[Term, ...]
    margin: float
    rival: Tried | None
    kind_open: bool = False
    """Whether it is sure that it is this site, but not of which kind: `rival` fits as well."""

    @property
    def strength(self) -> float:
        """Odds for it against the best explanation without it, as a share of one."""
        return 1.0 / (1.0 + math.exp(-min(self.margin, 700.0) / 2))


@dataclass(frozen=True)
class Diagnosis:
    """The search with what is known of sites; causes of the best explanation, surest first."""

    measured: Measured
    found: Search
    confidence: float

    @property
    def table(self) -> PairTable:
        """The rows."""
        return self.found.table

    @property
    def needed(self) -> float:
        """Strength that a cause needs: several may be named, and all are to be right."""
        return 1 - (1 - self.confidence) / AT_ONCE

    @property
    def best(self) -> Fit:
        """The best explanation."""
        return self.found.best

    @cached_property
    def target(self) -> Bools:
        """Rows by which gains are counted: file transfers where there are any."""
        files = self.table.is_file
        return files if files.any() else np.ones(len(self.table), dtype=np.bool_)

    @cached_property
    def causes(self) -> tuple[Named, ...]:
        """Everything that the best explanation names, whether it may be said or not."""
        names = self.names_of(self.best)
        return tuple(
            sorted(
                (self._named(name, terms) for name, terms in names.items()),
                key=lambda named: -named.margin,
            )
        )

    @property
    def sure(self) -> tuple[Named, ...]:
        """Causes that may be said."""
        return tuple(
            named
            for named in self.causes
            if named.strength >= self.needed and named.name[0] != "files"
        )

    @property
    def open(self) -> tuple[Named, ...]:
        """Causes that another explanation does without nearly as well."""
        sure = set(self.sure)
        return tuple(named for named in self.causes if named not in sure)

    def _named(self, name: Name, terms: tuple[Term, ...]) -> Named:
        strict = self._beside(name, terms, {name})
        subject = name[1]
        if strict.strength >= self.needed or not isinstance(subject, str):
            return strict
        alike: set[Name] = {("site", subject), ("io", subject), ("window", subject)}
        of_site = self._beside(name, terms, alike)
        if of_site.strength < self.needed:
            return strict
        rival = strict.rival
        kind = (
            name
            if rival is not None and ("site", subject) not in self._named_by(rival)
            else ("site", subject)
        )
        return replace(of_site, name=kind, rival=rival, kind_open=True)

    def _beside(self, name: Name, terms: tuple[Term, ...], alike: set[Name]) -> Named:
        """A cause beside the best explanation that names none of `alike`.

        What is said of all sites must hold against single sites that were not picked, but known.
        """
        margin, rival = math.inf, None
        for tried in self.found.tried:
            behind = self.found.behind(tried)
            if behind - MOST_PICKS > margin:
                break
            behind -= min(tried.picks, MOST_PICKS) if name[1] is None else 0.0
            if behind < margin and not alike & self._named_by(tried):
                margin, rival = behind, tried
        return Named(name, terms, margin, rival)

    @cached_property
    def _names(self) -> dict[int, set[Name]]:
        """Names of explanations that were asked for them."""
        return {}

    def _named_by(self, tried: Tried) -> set[Name]:
        if id(tried) not in self._names:
            self._names[id(tried)] = set(self.names_of(tried.fit))
        return self._names[id(tried)]

    def names_of(self, fitted: Fit) -> dict[Name, tuple[Term, ...]]:
        """What an explanation would name, as far as it matters."""
        names: dict[Name, tuple[Term, ...]] = {}
        for term in fitted.terms:
            if term == fitted.terms[0] and term.law == "level":
                continue
            if self.matters(fitted, term):
                name = self._name(fitted, term)
                names[name] = (*names.get(name, ()), term)
        return names

    def matters(self, fitted: Fit, term: Term) -> bool:
        """Whether mending it would lift by `MATTERS`: a site or all on two paths at least."""
        if term.law == "share":
            known = float(self.table.weight[term.mask(self.table)].sum())
            doubt = SURELY * math.sqrt(self.found.dispersion / known)
            return fitted.number(term) + doubt < math.log1p(-MATTERS)
        lift = self.mended(fitted, [term]) - fitted.log_rate(self.table)
        lifted = (lift > -math.log1p(-MATTERS)).tolist()
        paths = self.table.lines if term.site is None else self.table.paths
        return len({path for path, up in zip(paths, lifted, strict=True) if up}) >= 2

    def _name(self, fitted: Fit, term: Term) -> Name:
        sites = self.table.sites
        if term.path is not None:
            return "path", (sites[term.path[0]], sites[term.path[1]])
        site = None if term.site is None else sites[term.site]
        if term.law == "window" and site is None:
            return self._window_or_loss(fitted, term), None
        if term.law in ("window", "buffer"):
            return "window", site
        if term.law == "loss" or term.law == "streams":
            return term.law, site
        if site is not None:
            return ("site", site) if term.law == "share" and not term.files_only else ("io", site)
        return self._of_files(term), None

    def _window_or_loss(self, fitted: Fit, term: Term) -> CauseKind:
        """Buffers that are known to be far larger than the window seen do not bind it."""
        buffers = self.table.buffer_bytes[fitted.holds(self.table, term)]
        known = buffers[np.isfinite(buffers)]
        if not len(known):
            return "window"
        many = len(np.unique(known)) > 1
        seen = window_bytes(fitted.number(term)) / float(np.median(known))
        return "loss" if many or seen < WINDOW_OF_BUFFER[0] else "window"

    def _of_files(self, term: Term) -> CauseKind | Literal["files"]:
        """Who holds all file transfers back: Rao et al. 2018, section 3.4."""
        share = self.share_of_file_limits
        if share is None:
            return "tool" if term.law == "share" else "files"
        if share < TOOL_BELOW:
            return "tool"
        return "io" if share >= FILES_REACHED else "files"

    @cached_property
    def share_of_file_limits(self) -> float | None:
        """Rates of file transfers over what hosts and file systems allow; None if unknown."""
        known = [
            (row.mean_bps, limit)
            for row in self.measured.rows
            if row.modality == "E" and (limit := self.measured.file_limit_bps(row)) is not None
        ]
        if 2 * len(known) < sum(row.modality == "E" for row in self.measured.rows) or not known:
            return None
        return float(np.exp(np.mean([math.log(rate / limit) for rate, limit in known])))

    def mended(self, fitted: Fit, terms: Sequence[Term]) -> Floats:
        """Logarithm of each row's rate if these terms were no more.

        It is never more than the line carries. Where no two paths show what lies above a bound of
        all sites, that is what the line carries, or the most that was seen if nobody knows it.
        """
        without = [term for term in terms if term.law != "streams"]
        rows = self.table
        for term in terms:
            if term.law == "streams":
                rows = _with_streams(rows, self.streams_wanted(fitted, term))
        rates = fitted.log_rate(rows, without)
        now = fitted.log_rate(self.table)
        most = np.log(FULL * self.table.capacity_bps)
        if not self._level_seen(fitted):
            most = np.where(np.isfinite(most), most, float(now.max()))
            bounds = [term for term in terms if term.is_bound and term.site is None]
            level = fitted.terms[0]
            if level.law == "level" and bounds:
                held = np.logical_or.reduce([fitted.holds(self.table, term) for term in bounds])
                rates = np.where(held, fitted.log_rate(rows, [*without, level]), rates)
        return np.maximum(np.minimum(rates, most), now)

    def _level_seen(self, fitted: Fit) -> bool:
        """Whether two paths at least run at the level of all: one row is no more than a guess."""
        level = fitted.terms[0]
        if level.law != "level":
            return False
        held = fitted.holds(self.table, level).tolist()
        return len({line for line, own in zip(self.table.lines, held, strict=True) if own}) >= 2

    def streams_wanted(self, fitted: Fit, term: Term) -> int:
        """Streams that fill the line, or nine tenths of it; at most some times those measured."""
        most = STREAMS_MORE * float(self.table.streams.max())
        if term.shape:
            return math.ceil(min(9 / term.shape, most))
        known = self.table.capacity_bps[np.isfinite(self.table.capacity_bps)]
        if self._level_seen(fitted):
            line = fitted.number(fitted.terms[0])
        elif len(known):
            line = math.log(FULL * float(known.max()))
        else:
            return math.ceil(most)
        return math.ceil(min(math.exp(line - fitted.number(term)), most))

    def gain(self, fitted: Fit, terms: Sequence[Term]) -> tuple[float, float]:
        """What the mean over the target rows would rise by if terms were mended: bit/s, share."""
        lift = self.mended(fitted, terms) - fitted.log_rate(self.table)
        rates = self.table.rate_bps[self.target]
        gain = float(np.mean(rates * np.expm1(lift[self.target])))
        return gain, gain / float(np.mean(rates))


def window_bytes(theta: float) -> float:
    """Bytes of a window from θ of `window`: rate in bit/s times RTT in ms, as a logarithm."""
    return math.exp(theta) / 8e3


def _with_streams(table: PairTable, streams: int) -> PairTable:
    rows = [replace(row, streams=max(row.streams or 1.0, float(streams))) for row in table.rows]
    return replace(table, rows=tuple(rows))
