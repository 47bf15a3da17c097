"""What is measured: settings of reads and writes, and the order in which they are tried. Pure.

Without a wish, one thing at a time is varied around a base, as storage profilers do that have named
grids, and the number of processes more often than the rest: the caps are fitted to it. A wish for
values of anything makes the full grid of what was wished, and the base of everything else.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from farline.errors import UsageError
from farline.spec.units import counted, size_human

Action = Literal["read", "write"]
Access = Literal["sequential", "strided"]
Mode = Literal["direct", "buffered"]
Layout = Literal["own", "shared"]
Sync = Literal["none", "end", "each"]

ACTIONS: tuple[Action, ...] = get_args(Action)
ACCESSES: tuple[Access, ...] = get_args(Access)
MODES: tuple[Mode, ...] = get_args(Mode)
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
SYNCS: tuple[Sync, ...] = get_args(Sync)

STRIDE = 4
"""Strided, one request in so many is made of a file of one's own: the others are gaps."""

BASE_REQUEST_BYTES = 4 << 20
BASE_DEPTH = 4
REQUESTS_BYTES = (64 << 10, 1 << 20, 16 << 20)
DEPTHS = (1, 16)
PROCESSES = (1, 2, 4, 8)
CAP_REPEATS = 3
"""How often each number of processes is measured, for the interval of the caps."""
MOST_LANES = 256
MOST_SETTINGS = 1000


@dataclass(frozen=True, slots=True, order=True)
class StorageSetting:
    """One way to read or write: so many processes with so many threads, each with its requests."""

    action: Action
    processes: int = 1
    threads: int = 1
    request_bytes: int = BASE_REQUEST_BYTES
    depth: int = BASE_DEPTH
    mode: Mode = "direct"
    access: Access = "sequential"
    layout: Layout = "own"
    sync: Sync = "end"

    @property
    def lanes(self) -> int:
        """Threads in all: each goes through a part of a file."""
        return self.processes * self.threads

    @property
    def text(self) -> str:
        """`read, 4 processes, 4 MiB, depth 4, direct`; what is usual is left out."""
        words = [self.action, counted(self.processes, "process", "processes")]
        if self.threads > 1:
            words.append(f"{self.threads} threads each")
        words += [size_human(self.request_bytes), f"depth {self.depth}", self.mode]
        words += [word for word in (self.access, self.layout) if word in ("strided", "shared")]
        if self.action == "write" and self.sync != "end":
            words.append({"none": "no sync", "each": "sync each"}[self.sync])
        return ", ".join(words)

    def document(self) -> dict[str, Any]:
        """For JSON: a field for each knob."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, slots=True)
class StorageWishes:
    """Values to try; nothing means: as the default plan has it."""

    actions: tuple[Action, ...] = ACTIONS
    processes: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()
    requests_bytes: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()
    modes: tuple[Mode, ...] = ()
    accesses: tuple[Access, ...] = ()
    layouts: tuple[Layout, ...] = ()
    sync: Sync = "end"
    repeats: int | None = None

    @property
    def is_default(self) -> bool:
        """Whether nothing was wished that makes a grid."""
        return not any(
            (self.processes, self.threads, self.requests_bytes, self.depths, self.modes,
             self.accesses, self.layouts)
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoragePlan:
    """Settings in the order in which they are measured, repeats among them."""

    settings: tuple[StorageSetting, ...]
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Refuses what no machine is meant to do.

        Raises:
            UsageError: for too many settings or threads.
        """
        if len(self.settings) > MOST_SETTINGS:
            raise UsageError(
                f"{len(self.settings):,} measurements: no more than {MOST_SETTINGS:,} are made; "
                "name fewer values"
            )
        most = max((one.lanes for one in self.settings), default=1)
        if most > MOST_LANES:
            raise UsageError(
                f"{most} threads at once: allowed: {MOST_LANES}; name fewer processes or threads"
            )

    @property
    def most_lanes(self) -> int:
        """Threads in all, of the setting that has most."""
        return max(one.lanes for one in self.settings)

    @property
    def most_processes(self) -> int:
        """Processes, of the setting that has most."""
        return max(one.processes for one in self.settings)

    @property
    def most_request_bytes(self) -> int:
        """The largest request."""
        return max(one.request_bytes for one in self.settings)

    @property
    def reads(self) -> bool:
        """Whether anything is read."""
        return any(one.action == "read" for one in self.settings)

    @property
    def shares(self) -> bool:
        """Whether a file is shared."""
        return any(one.layout == "shared" for one in self.settings)

    def only(self, keep: Sequence[bool], note: str) -> StoragePlan:
        """The plan with only those settings, and why."""
        kept = tuple(one for one, yes in zip(self.settings, keep, strict=True) if yes)
        return StoragePlan(kept, (*self.notes, note))


def plan_of(wishes: StorageWishes) -> StoragePlan:
    """The measurements for some wishes, interleaved: every round tries every setting once.

    Raises:
        UsageError: for more than can be meant.
    """
    if not wishes.actions:
        raise UsageError("nothing to measure: read, write or both")
    rounds = list(_default_rounds(wishes) if wishes.is_default else _grid_rounds(wishes))
    return StoragePlan(tuple(itertools.chain.from_iterable(rounds)))


def _grid_rounds(wishes: StorageWishes) -> Iterator[list[StorageSetting]]:
    grid = [
        StorageSetting(
            action, processes, threads, request, depth, mode, access, layout,
            wishes.sync if action == "write" else "end",
        )
        for action, processes, threads, request, depth, mode, access, layout in itertools.product(
            wishes.actions, wishes.processes or (1,), wishes.threads or (1,),
            wishes.requests_bytes or (BASE_REQUEST_BYTES,), wishes.depths or (BASE_DEPTH,),
            wishes.modes or ("direct",), wishes.accesses or ("sequential",),
            wishes.layouts or ("own",),
        )
    ]  # fmt: skip
    for _ in range(wishes.repeats or 1):
        yield grid


def _default_rounds(wishes: StorageWishes) -> Iterator[list[StorageSetting]]:
    """Processes, three times; between them requests, depth, cache, gaps and a shared file, once."""
    caps, rest = [], []
    for action in wishes.actions:
        base = StorageSetting(action, sync=wishes.sync if action == "write" else "end")
        caps += [replace(base, processes=count) for count in PROCESSES]
        rest += [replace(base, request_bytes=size) for size in REQUESTS_BYTES]
        rest += [replace(base, depth=depth) for depth in DEPTHS]
        rest += [replace(base, threads=4), replace(base, access="strided")]
        rest += [
            replace(base, mode="buffered", depth=1),
            replace(base, processes=4, layout="shared"),
        ]
    repeats = wishes.repeats or CAP_REPEATS
    for number in range(repeats):
        yield caps
        if number == 0:
            yield rest
