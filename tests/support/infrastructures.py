"""Infrastructures that were never measured: cells with a planted cause, seeded.

Healthy rates follow the dedicated-channel model (ramp, then what hosts reach), so they fall with
RTT as real ones do. Sites are points on a map; some pairs and directions were never measured;
repeats are log-normal about what the path gives, and paths and sites differ a little by
themselves. `plant` puts one fault into that, `judge` says whether an explanation found it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from farline.findings.infrastructure_finding import Cause, Explanation
from farline.profiles.cells import Cell

MSS_BYTES = 1460
INITIAL_BYTES = 10 * 1448
LOOKS_LEVEL = 1.35
"""Healthy rates of a site that differ by no more than this do not tell a level from a factor."""

Outcome = Literal["named", "site only", "not enough", "wrong"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Floats = NDArray[np.float64]
Plant = Callable[["Made"], None]


@dataclass(frozen=True)
class Truth:
    """What is wrong: names that count as right (kind and site, or both sites of a path as
    `whose` joins them); none where nothing is wrong."""

    answers: frozenset[tuple[str, str | None]]
    drift: bool = False


@dataclass(frozen=True)
class Case:
    """What `explain` is given, and the truth."""

    cells: tuple[Cell, ...]
    periods: tuple[Cell, ...]
    capacity_bps: float | None
    """That of all lines; None where cells state their own."""
    truth: Truth


@dataclass
class Path:
    """One direction of a connection with one modality and setting, and what it gives."""

    sender: int
    receiver: int
    modality: str
    streams: int
    rtt_ms: float
    rate_bps: float
    n: int
    cv: float
    capacity_bps: float | None = None


class Made:
    """An infrastructure in the making: healthy paths, to be spoilt."""

    def __init__(
        self,
        fault: str,
        seed: int,
        modalities: str = "ET",
        streams: Sequence[int] = (),
        even: bool = False,
    ) -> None:
        """Sites, paths and healthy rates; `even` makes healthy rates fall with RTT by little."""
        self.random = np.random.default_rng([seed, zlib.crc32(fault.encode())])
        self.capacity_bps = float(self.random.choice([1e9, 10e9, 40e9, 100e9]))
        self.reach_bps = self.capacity_bps * self.random.uniform(0.55, 0.85)
        self.seconds = self.random.uniform(60, 120) if even else self.random.uniform(4, 10)
        self.sites = int(self.random.integers(5, 13))
        self.cv = 0.2
        self.extra: list[Cell] = []
        self.answers: set[tuple[str, str | None]] = set()
        self.drift = 0.0
        self.paths = self._paths(modalities, streams or [int(self.random.choice([1, 4, 8]))])
        self.victim = int(self.random.choice(self._known_sites()))

    def site(self, index: int) -> str:
        """Name of a site."""
        return f"site-{index}"

    def touches(self, path: Path, site: int) -> bool:
        """Whether a path begins or ends at a site."""
        return site in (path.sender, path.receiver)

    def _paths(self, modalities: str, streams: Sequence[int]) -> list[Path]:
        places = self.random.uniform(-1, 1, (self.sites, 2)) * self.random.choice(
            [0.5, 1.0], (self.sites, 1)
        )
        distance = np.linalg.norm(places[:, None] - places[None], axis=2)
        rtt_ms = np.maximum(1.0, distance / distance.max() * self.random.uniform(80, 200))
        missing, one_way = self.random.uniform(0, 0.3), self.random.random() < 0.3
        paths = []
        for one in range(self.sites):
            for other in range(self.sites):
                skipped = self.random.random() < missing or (one_way and one > other)
                if one == other or skipped:
                    continue
                n = int(self.random.integers(3, 21))
                rtt = float(rtt_ms[one, other])
                paths += [
                    Path(one, other, modality, count, rtt, self.healthy_bps(rtt, count), n, self.cv)
                    for modality in modalities
                    for count in streams
                ]
        self._unlike(paths)
        return paths

    def _unlike(self, paths: list[Path]) -> None:
        """Paths and sites differ by a few per cent without anybody's fault."""
        sites = self.random.normal(0, 0.03, self.sites)
        own: dict[tuple[int, int], float] = {}
        for path in paths:
            key = (min(path.sender, path.receiver), max(path.sender, path.receiver))
            own.setdefault(key, self.random.normal(0, 0.05))
            path.rate_bps *= math.exp(own[key] + sites[path.sender] + sites[path.receiver])

    def healthy_bps(self, rtt_ms: float, streams: int = 1) -> float:
        """Ramp-up that doubles each round trip, then all that the hosts can."""
        rtt_s, start = rtt_ms / 1e3, INITIAL_BYTES * 8.0 * streams
        window = max(self.reach_bps * rtt_s, start)
        ramp_s = rtt_s * math.log2(window / start)
        sent = (window - start) / math.log(2) + self.reach_bps * (self.seconds - ramp_s)
        return sent / self.seconds

    def _known_sites(self) -> list[int]:
        """Sites with enough paths that a fault of theirs shows."""
        pairs = {(min(p.sender, p.receiver), max(p.sender, p.receiver)) for p in self.paths}
        count = [sum(site in pair for pair in pairs) for site in range(self.sites)]
        return [site for site in range(self.sites) if count[site] >= min(3, max(count))]

    def case(self) -> Case:
        """Measures every path."""
        periods = self._periods() if self.drift else ()
        whole = [self._cell(path, self._rates(path, path.n)) for path in self.paths]
        cells = _added_up(periods) if periods else whole
        truth = Truth(frozenset(self.answers), self.drift > 0)
        own = any(path.capacity_bps is not None for path in self.paths)
        capacity_bps = None if own else self.capacity_bps
        return Case((*cells, *self.extra), tuple(periods), capacity_bps, truth)

    def _periods(self) -> tuple[Cell, ...]:
        count = int(self.random.integers(4, 13))
        cells = []
        for period in range(count):
            left = 1 - self.drift * period / (count - 1)
            for path in self.paths:
                n = int(self.random.integers(0, 8))
                if n:
                    slowed = replace(path, rate_bps=path.rate_bps * left)
                    cells.append(self._cell(slowed, self._rates(slowed, n), {"period": period}))
        return tuple(cells)

    def _rates(self, path: Path, n: int) -> Floats:
        sigma = math.sqrt(math.log(1 + path.cv**2))
        return np.asarray(path.rate_bps * self.random.lognormal(-(sigma**2) / 2, sigma, n))

    def _cell(self, path: Path, rates: Floats, more: dict[str, object] | None = None) -> Cell:
        keys: dict[str, object] = {
            "from_site": self.site(path.sender),
            "to_site": self.site(path.receiver),
            "modality": path.modality,
            "streams": path.streams,
        }
        return cell_of(keys | (more or {}), path.rtt_ms, rates, path.capacity_bps)


def cell_of(
    keys: Mapping[str, object],
    rtt_ms: float | None,
    rates: Sequence[float] | Floats,
    capacity_bps: float | None = None,
) -> Cell:
    """A cell from rates."""
    values = np.asarray(rates, dtype=np.float64)
    return Cell(
        keys,
        rtt_ms,
        len(values),
        float(values.sum()),
        float((values**2).sum()),
        float(values.min()),
        float(values.max()),
        capacity_bps=capacity_bps,
    )


def _added_up(cells: Sequence[Cell]) -> list[Cell]:
    """Cells of all periods together."""
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        keys = tuple(value for key, value in cell.keys.items() if key != "period")
        groups.setdefault(keys, []).append(cell)
    return [
        Cell(
            {key: value for key, value in group[0].keys.items() if key != "period"},
            group[0].rtt_ms,
            sum(cell.n for cell in group),
            sum(cell.sum_bps for cell in group),
            sum(cell.sum_square for cell in group),
            min(cell.low_bps for cell in group),
            max(cell.high_bps for cell in group),
            capacity_bps=group[0].capacity_bps,
        )
        for group in groups.values()
    ]


def window_everywhere(seed: int) -> Case:
    """All hosts hold the same window: rates fall as 1/RTT beyond a knee."""
    made = Made("window_everywhere", seed)
    knee_ms = made.random.uniform(3, 0.3 * max(path.rtt_ms for path in made.paths))
    for path in made.paths:
        path.rate_bps = min(path.rate_bps, _beside(made, path) * knee_ms / path.rtt_ms)
    made.answers = {("window", None)}
    return made.case()


def _beside(made: Made, path: Path) -> float:
    """What paths are unlike in, on a bound of `reach_bps`."""
    return path.rate_bps / made.healthy_bps(path.rtt_ms, path.streams) * made.reach_bps


def window_of_a_site(seed: int) -> Case:
    """One site's hosts hold a small window."""
    made = Made("window_of_a_site", seed)
    own = [path.rtt_ms for path in made.paths if made.touches(path, made.victim)]
    knee_ms = made.random.uniform(0.1, 0.4) * float(np.median(own))
    for path in made.paths:
        if made.touches(path, made.victim):
            path.rate_bps = min(path.rate_bps, _beside(made, path) * knee_ms / path.rtt_ms)
    made.answers = {("window", made.site(made.victim))}
    return made.case()


def slow_file_system(seed: int) -> Case:
    """One site's file system holds file transfers at a level; memory to memory is fine."""
    made = Made("slow_file_system", seed)
    level = made.reach_bps * made.random.uniform(0.25, 0.6)
    for path in made.paths:
        if path.modality == "E" and made.touches(path, made.victim):
            path.rate_bps = min(path.rate_bps, level)
    made.answers = {("io", made.site(made.victim))}
    return made.case()


def slow_host(seed: int) -> Case:
    """One site's host holds everything at a level.

    Where healthy rates hardly differ over the site's RTTs, a level is a factor: both are right.
    """
    made = Made("slow_host", seed, modalities=["ET", "E", "T"][seed % 3])
    own = [path.rate_bps for path in made.paths if made.touches(path, made.victim)]
    level = float(np.quantile(own, 0.5)) * made.random.uniform(0.4, 0.7)
    for path in made.paths:
        if made.touches(path, made.victim):
            path.rate_bps = min(path.rate_bps, level)
    made.answers = {("io", made.site(made.victim))}
    if max(own) < LOOKS_LEVEL * min(own):
        made.answers |= {("site", made.site(made.victim))}
    return made.case()


def bad_site(seed: int) -> Case:
    """Everything to and from one site is slower by a factor, whatever the RTT."""
    made = Made("bad_site", seed, modalities=["ET", "E", "T"][seed % 3], even=seed % 2 == 0)
    _slow_down(made)
    return made.case()


def _slow_down(made: Made) -> None:
    factor = made.random.uniform(0.3, 0.7)
    for path in made.paths:
        if made.touches(path, made.victim):
            path.rate_bps *= factor
    own = [path.rate_bps for path in made.paths if made.touches(path, made.victim)]
    made.answers |= {("site", made.site(made.victim))}
    if max(own) < LOOKS_LEVEL * min(own):
        made.answers |= {("io", made.site(made.victim))}


def drifting(seed: int) -> Case:
    """Rates fall over the periods by 20 to 60 %."""
    made = Made("drifting", seed, modalities=["ET", "E"][seed % 2])
    made.drift = made.random.uniform(0.2, 0.6)
    made.answers = {("drift", None)}
    return made.case()


def drifting_bad_site(seed: int) -> Case:
    """Rates fall over the periods, and one site is slow all the time."""
    made = Made("drifting_bad_site", seed, modalities="E")
    made.drift = made.random.uniform(0.2, 0.6)
    _slow_down(made)
    made.answers |= {("drift", None)}
    return made.case()


def poor_tool(seed: int) -> Case:
    """File transfers reach a part of what memory to memory does; file systems were measured."""
    made = Made("poor_tool", seed)
    share = made.random.uniform(0.3, 0.7)
    for path in made.paths:
        if path.modality == "E":
            path.rate_bps *= share
    for site in range(made.sites):
        for modality in "FH":
            level = made.reach_bps * made.random.uniform(1.2, 2.0)
            keys: dict[str, object] = {"modality": modality, "from_site": made.site(site)}
            keys["to_site"] = made.site(site)
            made.extra.append(cell_of(keys, 0.0, made.random.normal(level, 0.02 * level, 5)))
    made.answers = {("tool", None)}
    return made.case()


def few_streams(seed: int) -> Case:
    """Rates grow with streams: each stream has a limit of its own, or they share a line."""
    made = Made("few_streams", seed, modalities=["T", "E"][seed % 2], streams=(1, 4, 10))
    hard, each = made.random.random() < 0.5, made.random.uniform(8, 30)
    kappa = made.random.uniform(0.1, 0.8)
    for path in made.paths:
        if hard:
            path.rate_bps = min(path.rate_bps, _beside(made, path) * path.streams / each)
        else:
            path.rate_bps *= 1 - 1 / (1 + kappa * path.streams)
    made.answers = {("streams", None)}
    return made.case()


def full_lines(seed: int) -> Case:
    """Lines are used to more than nine tenths: there is nothing to mend."""
    made = Made("full_lines", seed)
    for path in made.paths:
        path.rate_bps = made.capacity_bps * made.random.uniform(0.93, 0.97)
        path.cv = 0.02
    made.answers = {("well-used", None)}
    return made.case()


def slow_line(seed: int) -> Case:
    """One site's line is a tenth as fast as those of the others, and it is full."""
    made = Made("slow_line", seed)
    for path in made.paths:
        path.capacity_bps = made.capacity_bps
        if made.touches(path, made.victim):
            path.capacity_bps = made.capacity_bps / 10
            path.rate_bps = path.capacity_bps * made.random.uniform(0.93, 0.97)
            path.cv = 0.02
    made.answers = {("capacity", made.site(made.victim))}
    return made.case()


def lossy(seed: int) -> Case:
    """Losses make TCP fall as 1/RTT (Mathis), which buffers do too: either name is right."""
    return _lossy("lossy", seed, 1.0, {("loss", None), ("window", None)})


def lossy_cubic(seed: int) -> Case:
    """Losses make CUBIC fall by the fourth root of RTT (RFC 9438)."""
    return _lossy("lossy_cubic", seed, 0.25, {("loss", None)})


def _lossy(fault: str, seed: int, power: float, answers: set[tuple[str, str | None]]) -> Case:
    made = Made(fault, seed, even=True)
    knee_ms = made.random.uniform(2, 10)
    for path in made.paths:
        law = (knee_ms / path.rtt_ms) ** power
        path.rate_bps = min(path.rate_bps, _beside(made, path) * law)
        path.cv = 0.2 * min(2.0, max(1.0, (path.rtt_ms / 50) ** 0.5))
    made.answers = answers
    return made.case()


def bad_path(seed: int) -> Case:
    """One connection is slow, both its sites are fine."""
    made = Made("bad_path", seed)
    chosen = made.paths[int(made.random.integers(len(made.paths)))]
    ends, factor = {chosen.sender, chosen.receiver}, made.random.uniform(0.2, 0.5)
    for path in made.paths:
        if {path.sender, path.receiver} == ends:
            path.rate_bps *= factor
    made.answers = {("path", " and ".join(sorted(made.site(end) for end in ends)))}
    return made.case()


def no_fault(seed: int) -> Case:
    """Nothing is wrong: whoever is named is named wrongly."""
    made = Made("no_fault", seed, modalities=["ET", "E", "T"][seed % 3], even=seed % 2 == 0)
    return made.case()


def too_small(seed: int) -> Case:
    """Two sites, two runs."""
    made = Made("too_small", seed)
    first = made.paths[0]
    made.paths = [replace(first, n=2)]
    return made.case()


FAULTS: dict[str, Callable[[int], Case]] = {
    "window, all sites": window_everywhere,
    "window, one site": window_of_a_site,
    "file system of one site": slow_file_system,
    "host of one site": slow_host,
    "one bad site": bad_site,
    "drift": drifting,
    "drift and a bad site": drifting_bad_site,
    "tool": poor_tool,
    "streams": few_streams,
    "lines in full use": full_lines,
    "slow line of one site": slow_line,
    "losses, 1/RTT": lossy,
    "losses, CUBIC": lossy_cubic,
    "one bad path": bad_path,
}
"""Every fault that has to be found."""

HARMLESS: dict[str, Callable[[int], Case]] = {"no fault": no_fault, "two runs": too_small}
"""Nothing to be named."""


def whose(cause: Cause) -> str | None:
    """The site that a cause names, or both of a path; None for all."""
    return " and ".join(sorted(cause.sites)) or cause.site


def judge(case: Case, explanation: Explanation) -> Outcome:
    """What an explanation of a case is worth.

    `named`: what is wrong is said and nothing else is. `site only`: the right site with its kind
    left open. `wrong`: something else is said. `not enough`: less than what is wrong. Where
    nothing is wrong, saying nothing is right, and counts as named.
    """
    answers = case.truth.answers
    surely = {(one.kind, whose(one)) for one in explanation.causes if not one.kind_open}
    openly = {one.site for one in explanation.causes if one.kind_open}
    told_alike = {site for kind, site in answers if kind == "io" and ("site", site) in answers}
    if surely - answers or openly - {site for _, site in answers}:
        return "wrong"
    if not answers:
        return "named"
    kinds = answers - {("drift", None)}
    found = bool(surely & kinds) or bool(openly & told_alike) or not kinds
    drift_found = ("drift", None) in surely or ("drift", None) not in answers
    if found and drift_found:
        return "named"
    return "site only" if openly and drift_found else "not enough"
