"""Beds for a case alone, and runs in them: stamped, and repeated while they are invalid."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from _emulator.figures import Seen
from _emulator.ledger import FORWARD_LINK, of_pipe
from farline.testbeds import Testbed

if TYPE_CHECKING:
    from farline.spec._types import Topology

T = TypeVar("T")
# How often an invalid run is tried again before its figure is reported, as invalid.
RETRIES = 3


@dataclass(frozen=True)
class Run(Generic[T]):
    """What a run gave, and the emulator's word for it."""

    value: T
    stamp: Mapping[str, Any]


@contextmanager
def up(topology: Topology) -> Iterator[Testbed]:
    """A bed of this process's own, down afterwards."""
    with Testbed.up(topology) as bed:
        yield bed


def run(bed: Testbed, measure: Callable[[], T], settle_s: float = 0.0) -> Run[T]:
    """One run with its stamp, which leaves out the first `settle_s` seconds if it lasts longer."""
    mark, done = bed.mark(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(lambda: bed.mark() if settle_s and not done.wait(settle_s) else mark)
        try:
            value = measure()
        finally:
            done.set()
    return Run(value, bed.stamp(later.result()))


def nothing(_value: object) -> str:
    """No obstacle to using a run."""
    return ""


def valid_run(
    bed: Testbed,
    measure: Callable[[], T],
    obstacle: Callable[[T], str] = nothing,
    settle_s: float = 0.0,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Run[T]:
    """The first run that is valid, and has no obstacle; the last if none of the tries is.

    An obstacle is something that a host did, and that leaves nothing to be said of the emulator.
    `around` has what a try needs and is no part of it.
    """
    for attempt in range(RETRIES + 1):
        with around():
            done = run(bed, measure, settle_s)
        reasons = "; ".join([*done.stamp["reasons"], obstacle(done.value)]).strip("; ")
        if not reasons:
            break
        print(f"#   try {attempt + 1} is of no use: {reasons}", file=sys.stderr, flush=True)
    return done


def valid_runs(
    bed: Testbed,
    measure: Callable[[], T],
    count: int,
    obstacle: Callable[[T], str] = nothing,
    settle_s: float = 0.0,
) -> list[Run[T]]:
    """So many runs, each as `valid_run` gives it."""
    return [valid_run(bed, measure, obstacle, settle_s) for _ in range(count)]


def overrun(dropped: int) -> str:
    """The obstacle of a receiver that did not keep up."""
    return f"the receiver's buffer overflowed {dropped} times" if dropped else ""


def seen(runs: Sequence[Run[T]], value: Callable[[T], float]) -> Seen:
    """One value of each run, for a row."""
    return Seen([value(done.value) for done in runs], [done.stamp for done in runs])


def seen_all(runs: Sequence[Run[T]], values: Callable[[T], Sequence[float]]) -> Seen:
    """Several values of each run, for a row."""
    pooled = [one for done in runs for one in values(done.value)]
    return Seen(pooled, [done.stamp for done in runs])


def forget_samples(bed: Testbed) -> None:
    """Leaves out what the links did before."""
    bed.link_samples()


def forward_samples(bed: Testbed) -> dict[str, NDArray[np.int64]]:
    """Samples of the first link's way from `a` to `b` since the last call."""
    return of_pipe(bed.link_samples(), *FORWARD_LINK)
