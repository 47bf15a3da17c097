"""Which bounds and shares explain the measurements best, and how far the others fall behind.

Every law for all sites is tried; to each, what single sites and paths add is put term by term, as
long as it pays for itself (Bayesian information criterion, with the number of things that could
have been named added: looking at many sites finds a slow one by chance). What was tried is kept:
a cause counts for as much as the best explanation without it is worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from farline.findings.bound_fit import Fit, fit
from farline.findings.bound_terms import ROLES, Floats, Law, PairTable, Term

RAMPS = (0.0, 0.2, 0.4, 0.6, 0.75)
ALPHAS = (0.25, 0.5)
SATURATIONS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.0)
"""Shapes that are tried: fall of a level; power of a loss (CUBIC's is 1/4 by RFC 9438, other
controls lie between it and Reno's 1, which looks like a window); κ of streams that share a line."""

MAX_RAMP = 0.9

_FINER = (0.5, 0.25, 0.125)
"""Steps in which shapes are made finer: of 1 − ramp and of κ, as a share of a factor of two."""

_KNEES = (0.0, 0.25, 0.5, 0.75, 1.0)
_GRID = 24
_REFITTED = 6
_MOST_ADDED = 6
_EXCHANGES = 4

MOST_SITES, MOST_PATHS = 60, 300
"""Sites and paths, those with most measurements, among which single ones are looked for."""


@dataclass(frozen=True)
class Tried:
    """A fit and what its terms cost: the score is misfit over `dispersion`, plus the costs."""

    fit: Fit
    numbers: float
    picks: float
    """What its numbers cost, and that single sites and paths were picked among many."""

    def score(self, dispersion: float) -> float:
        """Smaller is better; a difference of d is e^(d/2) in odds."""
        return self.fit.misfit / dispersion + self.numbers + self.picks


@dataclass(frozen=True)
class Search:
    """What was tried, best first; `dispersion` is how much rows differ beyond their repeats."""

    table: PairTable
    tried: tuple[Tried, ...]
    dispersion: float

    @property
    def best(self) -> Fit:
        """The explanation with the smallest score."""
        return self.tried[0].fit

    def behind(self, tried: Tried) -> float:
        """By how much a score is worse than the best."""
        return tried.score(self.dispersion) - self.tried[0].score(self.dispersion)


def search(table: PairTable) -> Search:
    """Tries every law with what sites and paths add to it."""
    found: list[Tried] = []
    ends: list[Tried] = []
    candidates = Candidates(table)
    for law in laws(table):
        start = _best_start(table, law)
        ends.append(_add_terms(table, candidates, start, found))
    dispersion = min(_dispersion(table, end) for end in ends)
    known = {one.fit.terms for one in found}
    for _ in range(_EXCHANGES):
        best = min(found, key=lambda one: one.score(dispersion))
        new = [terms for terms in _exchanges(table, candidates, best.fit) if terms not in known]
        if not new:
            break
        known.update(new)
        found += [
            _tried(table, fit(table, terms, _guesses(table, terms, best.fit))) for terms in new
        ]
    dispersion = min(dispersion, _dispersion(table, best))
    ordered = sorted(found, key=lambda one: one.score(dispersion))
    return Search(table, tuple(ordered), dispersion)


def laws(table: PairTable) -> Iterator[list[tuple[Term, ...]]]:
    """Laws for all sites; each as the shapes that it may have."""
    levels = [Term("level", ramp=ramp) for ramp in RAMPS]
    yield [(level,) for level in levels]
    yield [(level, Term("window")) for level in levels]
    if _varies_within_pairs(table, table.buffer_bytes):
        yield [(level, Term("buffer")) for level in levels]
    yield [(Term("level"), Term("loss", shape=alpha)) for alpha in ALPHAS]
    if len(np.unique(table.streams)) > 1:
        yield [(level, Term("streams", ramp=level.ramp)) for level in levels]
        yield [
            (Term("streams", ramp=ramp, shape=kappa),) for ramp in RAMPS for kappa in SATURATIONS
        ]


def _varies_within_pairs(table: PairTable, values: Floats) -> bool:
    """Whether some paths were measured with several values, and none is unknown."""
    if not np.all(np.isfinite(values)):
        return False
    seen: dict[tuple[tuple[str, str, int], int, bool], set[float]] = {}
    for row, value in enumerate(values.tolist()):
        key = (table.lines[row], int(table.sender[row]), bool(table.is_file[row]))
        seen.setdefault(key, set()).add(value)
    return sum(len(found) > 1 for found in seen.values()) >= 2


def _numbers(table: PairTable, terms: Iterable[Term]) -> float:
    """What the numbers of terms have to earn: log N for each."""
    each = math.log(len(table))
    return sum(
        each * (1 + (term.shape != 0.0) + (term.ramp != 0.0 and term.law == "level"))
        for term in terms
    )


def _picks(table: PairTable, terms: Iterable[Term]) -> float:
    """What terms have to earn since one of many sites, roles or paths was picked."""
    sites = len(table.sites)
    total = 0.0
    for term in terms:
        if term.site is not None:
            total += 2 * math.log(sites * (1 if term.role == "any" else len(ROLES)))
        elif term.path is not None:
            total += 2 * math.log(sites * (sites - 1) / 2)
    return total


def _tried(table: PairTable, fitted: Fit) -> Tried:
    return Tried(fitted, _numbers(table, fitted.terms), _picks(table, fitted.terms))


def _dispersion(table: PairTable, tried: Tried) -> float:
    """Misfit for each degree of freedom: 1 where rows differ as their repeats say."""
    left = len(table) - len(tried.fit.terms)
    return max(1.0, tried.fit.misfit / left) if left > 0 else math.inf


def _best_start(table: PairTable, law: Sequence[tuple[Term, ...]]) -> Tried:
    fits = [_tried(table, fit(table, terms, _starts(table, terms))) for terms in law]
    return _finer(table, min(fits, key=lambda one: one.score(1.0)))


def _finer(table: PairTable, tried: Tried) -> Tried:
    """Shapes between those of the grid, where they fit better."""
    best = tried
    for step in _FINER:
        for factor in (2**step, 2**-step):
            terms = tuple(_reshaped(term, factor) for term in best.fit.terms)
            if terms != best.fit.terms:
                near = _tried(table, fit(table, terms, [best.fit.theta]))
                best = min(best, near, key=lambda one: one.score(1.0))
    return best


def _reshaped(term: Term, factor: float) -> Term:
    """A term with its shape somewhat larger or smaller."""
    if not _is_general(term):
        return term
    if term.law == "streams" and term.shape:
        return replace(term, shape=term.shape * factor)
    if term.law == "level":
        return replace(term, ramp=min(max(1 - (1 - term.ramp) * factor, 0.0), MAX_RAMP))
    return term


def _starts(table: PairTable, terms: Sequence[Term]) -> Iterator[tuple[float, ...]]:
    """First guesses of one or two bounds for all rows: where on the way the second takes over."""
    offsets = [term.offset(table) for term in terms]
    above = [table.log_rate - offset for offset in offsets]
    if len(terms) == 1:
        yield (float(np.average(above[0], weights=table.weight)),)
        return
    order = offsets[1] - offsets[0]
    for share in _KNEES:
        second = order <= np.quantile(order, share) if share else np.zeros(len(table), np.bool_)
        yield tuple(
            float(np.mean(values[held])) if held.any() else float(np.max(values)) + 0.5
            for values, held in zip(above, (~second, second), strict=True)
        )


class Candidates:
    """Terms that may be added for one site, one path or all file transfers."""

    def __init__(self, table: PairTable) -> None:
        """Lists the terms that touch enough rows, and leave enough untouched, to be told apart."""
        self.terms = [term for term in _all_candidates(table) if _can_be_told(table, term)]
        masks = [term.mask(table) for term in self.terms]
        self.masks = np.array(masks, dtype=np.float64).reshape(len(masks), len(table))
        self.costs = np.array(
            [_numbers(table, [term]) + _picks(table, [term]) for term in self.terms]
        )

    def promising(
        self, table: PairTable, current: Fit, dispersion: float
    ) -> list[tuple[Term, float]]:
        """Terms that would mend most of the misfit, each with a first guess of its number."""
        if not self.terms:
            return []
        gains, guesses = self._gains(table, current)
        scores = gains / dispersion - self.costs
        picked: list[tuple[Term, float]] = []
        seen: set[object] = set()
        for index in np.argsort(-scores).tolist():
            term = self.terms[index]
            key = (term.law, term.site, term.path, term.files_only)
            if scores[index] <= 0 or len(picked) == _REFITTED:
                break
            if key not in seen and term not in current.terms:
                seen.add(key)
                picked.append((term, float(guesses[index])))
        return picked

    def _gains(self, table: PairTable, current: Fit) -> tuple[Floats, Floats]:
        """Misfit that each candidate takes away with all other numbers as they are."""
        shares = [term for term in current.terms if not term.is_bound]
        bounds = current.log_rate(table, without=shares)
        whole = current.log_rate(table)
        left, weight = table.log_rate - whole, table.weight
        gains, guesses = np.zeros(len(self.terms)), np.zeros(len(self.terms))
        laws = np.array([term.law for term in self.terms])
        pull, touched = self.masks @ (weight * left), self.masks @ weight
        share = laws == "share"
        gains[share] = (pull**2 / touched)[share]
        guesses[share] = (pull / touched)[share]
        for law in ("level", "window", "streams"):
            chosen = laws == law
            if not chosen.any():
                continue
            offset = Term(law).offset(table)
            target = table.log_rate - (whole - bounds)
            grid = np.quantile(target - offset, np.linspace(0.0, 0.9, _GRID))
            bound = np.minimum(bounds, grid[:, None] + offset)
            change = (weight * (left**2 - (target - bound) ** 2)) @ self.masks[chosen].T
            gains[chosen] = change.max(axis=0)
            guesses[chosen] = grid[change.argmax(axis=0)]
        return gains, guesses


def _all_candidates(table: PairTable) -> Iterator[Term]:
    modalities = (False, True) if 0 < table.is_file.sum() < len(table) else (False,)
    if len(modalities) == 2:
        yield Term("share", files_only=True)
        yield Term("level", files_only=True)
        if len(np.unique(table.streams)) > 1:
            yield Term("streams", files_only=True)
    site_laws: tuple[Law, ...] = ("share", "level", "window")
    count = np.array([row.n for row in table.rows], dtype=np.float64)
    of_site = [float(count[table.touches(site)].sum()) for site in range(len(table.sites))]
    for site in sorted(np.argsort(of_site)[::-1][:MOST_SITES].tolist()):
        for role in ROLES:
            for law in site_laws:
                yield Term(law, site, role)
            if len(modalities) == 2:
                yield Term("share", site, role, files_only=True)
                yield Term("level", site, role, files_only=True)
    yield from (Term("share", path=path) for path in _paths(table))


def _paths(table: PairTable) -> list[tuple[int, int]]:
    """Both sites of each path, of those with most measurements."""
    count: dict[tuple[int, int], int] = {}
    for row, one, other in zip(
        table.rows, table.sender.tolist(), table.receiver.tolist(), strict=True
    ):
        path = (min(one, other), max(one, other))
        count[path] = count.get(path, 0) + row.n
    return sorted(sorted(count, key=lambda path: -count[path])[:MOST_PATHS])


def _can_be_told(table: PairTable, term: Term) -> bool:
    """A site needs two other sites, two paths and two paths without it; a path three others."""
    mask = term.mask(table)
    if term.site is None and term.path is None:
        return bool(mask.sum() >= 2)
    inside = {path for path, held in zip(table.paths, mask.tolist(), strict=True) if held}
    outside = {path for path, held in zip(table.paths, mask.tolist(), strict=True) if not held}
    if term.path is not None:
        return len(outside) >= 3 and len(inside) == 1
    return len(inside) >= 2 and len(outside) >= 2


def _add_terms(table: PairTable, candidates: Candidates, start: Tried, found: list[Tried]) -> Tried:
    """Adds the term that pays most, until none pays; everything tried goes to `found`."""
    current = start
    found.append(start)
    for _ in range(_MOST_ADDED):
        if len(table) - len(current.fit.terms) < 3:
            break
        refits = [
            _tried(
                table,
                fit(table, (*current.fit.terms, term), [(*current.fit.theta, guess)]),
            )
            for term, guess in candidates.promising(table, current.fit, 1.0)
        ]
        found.extend(refits)
        if not refits:
            break
        best = min(refits, key=lambda one: one.score(1.0))
        dispersion = _dispersion(table, best)
        if best.score(dispersion) >= current.score(dispersion):
            break
        current = _finer(table, best)
        found.append(current)
    return current


def _exchanges(table: PairTable, candidates: Candidates, best: Fit) -> Iterator[tuple[Term, ...]]:
    """The best explanation with one of its terms left out or put for another."""
    general = tuple(term for term in best.terms if _is_general(term))
    added = tuple(term for term in best.terms if not _is_general(term))
    for law in laws(table):
        for terms in law:
            if terms != general:
                yield (*terms, *added)
    for term in added:
        others = tuple(one for one in best.terms if one != term)
        yield others
        for other in _alternatives(candidates, term):
            if other not in best.terms:
                yield (*others, other)


def _is_general(term: Term) -> bool:
    return term.site is None and term.path is None and not term.files_only


def _alternatives(candidates: Candidates, term: Term) -> Iterator[Term]:
    """Other laws for the same site, path or file transfers."""
    for other in candidates.terms:
        same = (other.site, other.path) == (term.site, term.path)
        if other != term and same and (other.role == term.role or other.role == "any"):
            yield other


def _guesses(table: PairTable, terms: Sequence[Term], near: Fit) -> list[tuple[float, ...]]:
    """First guesses for exchanged terms: what is known stays, the rest from the rows."""
    known = dict(zip(near.terms, near.theta, strict=True))
    general = [term for term in terms if _is_general(term)]
    rest = [term for term in terms if not _is_general(term)]
    starts = (
        [tuple(known[term] for term in general)]
        if all(term in known for term in general)
        else list(_starts(table, general))
    )
    guesses = []
    for start in starts:
        for high in (0.25, 0.75) if any(t not in known and t.is_bound for t in rest) else (0.5,):
            guesses.append((*start, *(known.get(t, _guess(table, t, high)) for t in rest)))
    return guesses


def _guess(table: PairTable, term: Term, quantile: float) -> float:
    if not term.is_bound:
        return 0.0
    mask = term.mask(table)
    return float(np.quantile((table.log_rate - term.offset(table))[mask], quantile))
