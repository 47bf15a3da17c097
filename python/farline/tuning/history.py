"""Past transfers as evidence about a transfer that is to come: groups on a grid, each by weight.

A group are transfers that differ in the setting alone; its contrasts tell the shape over settings.
How much a group counts falls with how unlike its kind of data and its path are, and with age. Three
tiers, each of which can only count so much in all, for many weak witnesses must not shout down a
near one: other paths, the same path, the same path with files of about the same size.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from farline.store.paths.choices import is_longer
from farline.tuning.belief import HISTORY_SD, Belief, Group, log_of
from farline.tuning.search import behind_cliff
from farline.tuning.situation import Setting, Situation, changes

if TYPE_CHECKING:
    from farline.store.paths.past_transfer import PastTransfer
    from farline.tuning.grids import Grid

SCALES = {
    "file_bytes": 2.0, "files": 2.0, "concurrency": 1.0, "pipelining": 2.0, "rtt_ms": 2.0,
    "bdp_buffer": 2.0,
}  # fmt: skip
"""Octaves of a feature after which a transfer counts e^-1/2 as much."""

UNKNOWN_DISTANCE = 1.0
"""How far apart two transfers count, in scales, where a feature of one is not known."""

OTHER, PATH, KIND = "other", "path", "kind"
TIER_CAPS = {OTHER: 1.0, PATH: 2.0, KIND: 5.0}
"""Summed weight that a tier can have."""
_PATH_WIDTH = 2.0
"""On the same path unlike data still says much: scales are so much wider."""

AGE_S = 30 * 86_400.0
"""Time after which a transfer counts 1/e as much: paths change from month to month."""

ABOVE_LINK = 4.0
"""Times its slowest link at which a transfer is none (`farline.estimating` has the same)."""

CLOCKS_APART_S = 3600.0
"""A transfer that ends later than this from now is none of the past."""

ROUTE_S = 900.0
"""Transfers of a path within such a time went the same way, unless their round trips say no."""

SAMPLE_ROUND_TRIPS = 10
"""Round trips after which a measurement that was judged behind its ramp says what a path gives."""

GROUP_S = 7 * 86_400.0
"""Transfers within such a time are of one group."""

_FIXED = (
    "concurrency", "pipelining", "transport", "congestion_control", "window_bytes", "block_bytes"
)  # fmt: skip
"""Knobs of which a group has one value, unless they are searched."""

Features = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What history says: groups by weight, and how many transfers of which tier they are."""

    groups: tuple[Group, ...] = ()
    transfers: dict[str, int] | None = None
    changed: tuple[str, ...] = ()
    """What has changed at hosts or on the route since the newest transfer of the same path."""
    levels: tuple[tuple[int, float, float], ...] = ()
    """Of the same path: place on the grid, ln throughput, weight; newest last."""
    collapsed: Setting | None = None
    """The least setting that collapsed on this path within a month."""

    def count(self, tier: str) -> int:
        """Transfers of a tier."""
        return (self.transfers or {}).get(tier, 0)

    @property
    def text(self) -> str:
        """What it stands on, for people."""
        fell = "" if self.collapsed is None else f" (the rate collapsed at {self.collapsed.text})"
        for tier, place in ((KIND, "like these on this path"), (PATH, "on this path")):
            if count := self.count(tier):
                return f"{count} past transfer{'' if count == 1 else 's'} {place}{fell}"
        if count := self.count(OTHER):
            return f"{count} past transfer{'' if count == 1 else 's'} on other paths"
        return "no past transfer"


def features_of(
    file_bytes: float | None,
    files: float | None,
    concurrency: float | None,
    pipelining: float | None,
    rtt_ms: float | None,
    capacity_bps: float | None,
    window_bytes: float | None,
) -> Features:
    """Features in octaves; None where not known.

    1e9 B, 100 files, concurrency 4, pipelining 4, 40 ms, 10 Gb/s, 32 MiB: 29.897353, 6.643856, 2,
    2, 5.323730, 0.576393.
    """  # fmt: skip
    known = rtt_ms is not None and capacity_bps is not None and window_bytes
    ratio = capacity_bps * rtt_ms / 8000 / window_bytes if known else None  # type: ignore[operator]
    return {
        "file_bytes": _octaves(file_bytes, 1.0),
        "files": _octaves(files, 1.0),
        "concurrency": _octaves(concurrency, 1.0),
        "pipelining": _octaves(pipelining, 1.0),
        "rtt_ms": None if rtt_ms is None else math.log2(rtt_ms + 0.05),
        "bdp_buffer": None if ratio is None else math.log2(ratio + 0.001),
    }


def likeness(one: Features, other: Features, width: float = 1.0, skip: Sequence[str] = ()) -> float:
    """exp(−Σ(Δ/scale)²/2): 1 for transfers alike, towards 0 for unlike ones."""
    squares = 0.0
    for name, scale in SCALES.items():
        a, b = one[name], other[name]
        if name in skip or (a is None and b is None):
            continue
        apart = UNKNOWN_DISTANCE if a is None or b is None else (a - b) / scale
        squares += (apart / width) ** 2
    return math.exp(-squares / 2)


def evidence_for(rows: Iterable[PastTransfer], now: Situation, grid: Grid) -> Evidence:
    """What past transfers say of the settings of a grid for the transfer `now`.

    Rows of the same path from before a change of kernel, interface or route count as of another
    path. Rows that were capped or too short, of another transport, beside the grid, or with figures
    that cannot be true are left out.
    """
    several = any(axis.startswith("transport=") for axis in grid.axes)
    usable = [
        row
        for row in rows
        if _says_what_the_path_gives(row)
        and (several or row.transport in (None, now.transport))
        and _is_possible(row, now.now_s)
    ]
    routes = _routes(usable, now)
    cliffs = [_cliffs(route, grid) for route in routes]
    fallen = _collapsed(routes, cliffs, now, grid)
    usable = _with_routes(usable, routes, cliffs, grid)
    own = [row for row in usable if now.ends.fit(row)]
    changed = changes(own[-1], now) if own else ()
    gathered: dict[tuple[object, ...], list[tuple[PastTransfer, int]]] = defaultdict(list)
    for row in usable:
        if (at := _place(row, grid)) is not None:
            gathered[_group_key(row, now, grid)].append((row, at))
    weighed = [_weighed(members, now, grid) for members in gathered.values()]
    counts: dict[str, int] = defaultdict(int)
    for tier, _, members in weighed:
        counts[tier] += len(members)
    groups = [*_capped(weighed, grid)]
    return Evidence(tuple(groups), dict(counts), changed, _levels(weighed, now), fallen)


def _says_what_the_path_gives(row: PastTransfer) -> bool:
    """Whether a row counts: also a measurement that is short, if it is judged behind its ramp."""
    if row.kind != "probe" or row.steady_bps is None or row.duration_s is None:
        return row.sound
    lasted = row.duration_s * 1000 >= SAMPLE_ROUND_TRIPS * (row.rtt_ms or 0.0)
    return row.sound or (lasted and not row.capped)


def _routes(rows: Sequence[PastTransfer], now: Situation) -> list[list[PastTransfer]]:
    """Rows of the same path by the route that they took, in order of time: a search's are one's.

    A round trip that is longer than under any load before it, or shorter under load than before
    without, begins another, as does a quarter of an hour.
    """
    known = [row for row in rows if row.ended_s is not None and row.rtt_ms and now.ends.fit(row)]
    known.sort(key=lambda row: row.ended_s or 0.0)
    routes: list[list[PastTransfer]] = []
    for row in known:
        if routes and _is_along(routes[-1], row):
            routes[-1].append(row)
        else:
            routes.append([row])
    return routes


def _is_along(route: Sequence[PastTransfer], row: PastTransfer) -> bool:
    least_ms, most_ms = _round_trips_ms(route)
    low_ms, high_ms = _round_trips_ms([row])
    is_other = is_longer(low_ms, most_ms) or is_longer(least_ms, high_ms)
    return (row.ended_s or 0.0) - (route[0].ended_s or 0.0) < ROUTE_S and not is_other


def _round_trips_ms(rows: Sequence[PastTransfer]) -> tuple[float, float]:
    """The shortest round trip of rows and the longest under load."""
    least_ms = min(row.rtt_ms or 0.0 for row in rows)
    return least_ms, max(max(row.rtt_ms or 0.0, row.loaded_rtt_ms or 0.0) for row in rows)


_Cliffs = dict[tuple[object, ...], Setting]
"""Where streams collapse, by the knobs that are not searched."""


def _with_routes(
    rows: Sequence[PastTransfer], routes: Sequence[Sequence[PastTransfer]],
    cliffs: Sequence[_Cliffs], grid: Grid,
) -> list[PastTransfer]:  # fmt: skip
    """Rows with the round trips of their route, without what lies behind a cliff there.

    What one of them met is the path's round trip and what others had queued on it just then.
    """
    found: dict[int, PastTransfer | None] = {}
    for route, known in zip(routes, cliffs, strict=True):
        least_ms, most_ms = _round_trips_ms(route)
        for row in route:
            cliff = known.get(_fixed(row, grid))
            at = _place(row, grid)
            behind = cliff is not None and at is not None and grid.settings[at].is_more_of(cliff)
            found[id(row)] = (
                None if behind else replace(row, rtt_ms=least_ms, loaded_rtt_ms=most_ms)
            )
    kept = (found.get(id(row), row) for row in rows)
    return [row for row in kept if row is not None]


def _cliffs(route: Sequence[PastTransfer], grid: Grid) -> _Cliffs:
    """Where streams collapse, of the rows of one route that differ in nothing else."""
    reached: dict[tuple[object, ...], list[tuple[Setting, float]]] = defaultdict(list)
    for row in route if grid.axes == ("streams",) else ():
        if (at := _place(row, grid)) is not None:
            reached[_fixed(row, grid)].append((grid.settings[at], reached_bps(row)))
    cliffs = ((key, behind_cliff(those)) for key, those in reached.items())
    return {key: cliff for key, cliff in cliffs if cliff is not None}


def _collapsed(
    routes: Sequence[Sequence[PastTransfer]], cliffs: Sequence[_Cliffs], now: Situation, grid: Grid
) -> Setting | None:
    """The least setting that collapsed within a month and has not done better since."""
    found: Setting | None = None
    for route, known in zip(routes, cliffs, strict=True):
        if now.now_s and now.now_s - (route[-1].ended_s or 0.0) > AGE_S:
            continue
        if known:
            found = min(known.values())
        elif found is not None:
            places = (_place(row, grid) for row in route)
            tried = (grid.settings[at] for at in places if at is not None)
            found = None if any(one.is_more_of(found) for one in tried) else found
    return found


def _is_possible(row: PastTransfer, now_s: float) -> bool:
    """Whether a row can be true: logs may be in other units, and clocks may be ahead."""
    most_bps = ABOVE_LINK * row.capacity_bps if row.capacity_bps else math.inf
    is_past = not now_s or (row.ended_s or 0.0) <= now_s + CLOCKS_APART_S
    return is_past and 0 < reached_bps(row) < most_bps


def belief_after(prior: Belief, evidence: Evidence) -> Belief:
    """The prior after what history says of the shape, and of the level of this path if it does."""
    belief = prior.with_groups(evidence.groups)
    if not evidence.levels:
        return belief
    weights = np.array([weight for _, _, weight in evidence.levels])
    seen = np.array([rate - belief.mean[at] for at, rate, _ in evidence.levels])
    # However many there are, today's load is not that of their days.
    sd = math.sqrt(HISTORY_SD**2 / weights.sum() + LOAD_SD**2)
    return belief.with_level(float(np.average(seen, weights=weights)), sd)


LOAD_SD = 0.4
"""How far a path's level of today is from that of other days."""


def knob_streams(row: PastTransfer) -> int | None:
    """What a tool's own knob for streams says: farline's is in all, others' for a file."""
    return row.streams if row.tool == "farline" else row.parallelism or row.streams


def _octaves(value: float | None, least: float) -> float | None:
    return None if value is None else math.log2(max(value, least))


def _place(row: PastTransfer, grid: Grid) -> int | None:
    streams, concurrency = knob_streams(row), row.concurrency or 1
    values: dict[str, float | None] = {
        "streams": streams,
        "concurrency": concurrency,
        "parallelism": row.parallelism or streams,
        "pipelining": min(row.pipelining or 1, 32),
    }
    place = [values[name] if name in values else _own_value(row, name) for name in grid.axes]
    if any(not value for value in place):
        return None
    if "pipelining" in grid.axes and not np.ptp(grid.points[:, grid.axes.index("pipelining")]):
        place[grid.axes.index("pipelining")] = 1
    return grid.nearest([math.log2(value) for value in place if value])


def _own_value(row: PastTransfer, axis: str) -> float | None:
    """Of a size its bytes; of a name, `field=name`, 2 where the row has it and 1 where not."""
    name, _, word = axis.partition("=")
    value = getattr(row, name)
    if not word or value is None:
        return None if value is None else float(value)
    return 2.0 if value == word else 1.0


def _group_key(row: PastTransfer, now: Situation, grid: Grid) -> tuple[object, ...]:
    """What is the same within a group: path, data, hosts, week, and knobs that are not searched."""
    own = now.ends.fit(row)
    # Memory has no files: what a measurement moved is its rate. And what an own path's round trip
    # is above that of an empty path is others' doing, unless it is another route.
    data = () if row.modality == "T" else (_octave(row.file_bytes), _octave(row.files))
    route = bool(changes(row, now)) if own else _octave(row.rtt_ms)
    return (
        row.tool, row.path, own, row.modality, data, _fixed(row, grid),
        row.from_kernel, row.to_kernel, row.nic_bps, route,
        None if row.ended_s is None else int(row.ended_s // GROUP_S),
    )  # fmt: skip


def _fixed(row: PastTransfer, grid: Grid) -> tuple[object, ...]:
    """Knobs that are not searched."""
    searched = {axis.partition("=")[0] for axis in grid.axes}
    return tuple(getattr(row, name) for name in _FIXED if name not in searched)


def _octave(value: float | None) -> int | None:
    return None if not value else round(math.log2(value))


_Weighed = tuple[str, float, list[tuple["PastTransfer", int]]]


def _weighed(members: list[tuple[PastTransfer, int]], now: Situation, grid: Grid) -> _Weighed:
    """The tier and weight of a group, by its newest member."""
    row = members[-1][0]
    skip: list[str] = [name for name in ("concurrency", "pipelining") if name in grid.axes]
    skip += ["bdp_buffer"] if "window_bytes" in grid.axes else []
    tier = _tier(row, now)
    # Over the same route a round trip is longer only for those who queue on it.
    rtt_ms = row.rtt_ms if tier != OTHER and row.rtt_ms else now.rtt_ms
    one = features_of(
        now.file_bytes, now.files, now.concurrency, now.pipelining, rtt_ms, now.capacity_bps,
        now.window_bytes,
    )  # fmt: skip
    other = features_of(
        row.file_bytes, row.files, row.concurrency, row.pipelining, row.rtt_ms, row.capacity_bps,
        row.window_bytes,
    )  # fmt: skip
    if row.modality == now.modality == "T":
        # Memory has no files: how long a measurement lasted says nothing of its kind.
        skip += ["file_bytes", "files"]
    weight = likeness(one, other, _PATH_WIDTH if tier == PATH else 1.0, skip)
    if row.ended_s is not None and now.now_s:
        weight *= math.exp(-max(0.0, now.now_s - row.ended_s) / AGE_S)
    return tier, weight, members


def _tier(row: PastTransfer, now: Situation) -> str:
    if not now.ends.fit(row) or changes(row, now):
        return OTHER
    same = row.modality == now.modality
    alike = now.modality == "T" or _octave(row.file_bytes) == _octave(now.file_bytes)
    return KIND if same and alike else PATH


def _capped(weighed: Sequence[_Weighed], grid: Grid) -> Iterable[Group]:
    """Groups with weights such that no tier counts more than it may, and other paths once each."""
    sharers: dict[object, int] = defaultdict(int)
    for tier, _, members in weighed:
        sharers[_sharer(tier, members)] += 1
    owned = [
        (tier, weight / (sharers[_sharer(tier, members)] if tier == OTHER else 1), members)
        for tier, weight, members in weighed
    ]
    totals: dict[str, float] = defaultdict(float)
    for tier, weight, _ in owned:
        totals[tier] += weight
    for tier, weight, members in owned:
        if weight > 1e-6:
            factor = min(1.0, TIER_CAPS[tier] / totals[tier])
            yield _group(members, weight * factor, len(grid.settings))


def _sharer(tier: str, members: list[tuple[PastTransfer, int]]) -> object:
    row = members[0][0]
    return (tier, row.source if row.kind == "ingested" else row.path)


def _group(members: list[tuple[PastTransfer, int]], weight: float, size: int) -> Group:
    counts, sums = np.zeros(size), np.zeros(size)
    for row, at in members:
        counts[at] += 1
        sums[at] += log_of(reached_bps(row))
    return Group(counts, sums, weight)


def reached_bps(row: PastTransfer) -> float:
    """What a past transfer reached: of measurements behind their ramp, as samples are taken."""
    return row.steady_bps or row.rate_bps if row.kind == "probe" else row.rate_bps


def _levels(weighed: Sequence[_Weighed], now: Situation) -> tuple[tuple[int, float, float], ...]:
    """Rows of the same kind on this path, by their age."""
    found = [
        (row.ended_s or 0.0, at, log_of(reached_bps(row)), weight)
        for tier, weight, members in weighed
        if tier == KIND
        for row, at in members
    ]
    return tuple((at, rate, weight) for _, at, rate, weight in sorted(found)[-40:] if weight > 1e-3)
