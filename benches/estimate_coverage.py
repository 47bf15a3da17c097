"""Estimates against what happened: intervals must hold as often as they say, and be narrow.

Made-up histories (seeded; `_estimate/generator.py` has their statistics), every transfer estimated
from those of its path before it and then learnt: 24 paths of 600 transfers, and for what happens
once on a path (a month without any transfer, a change of a host) 160 paths of 120. New paths are
estimated from an empty store, and from a store of eight others.
A row's `ours` is the figure, `peer` the nearest bound that it must keep, and the ratio says how far
it is within: 1 is just there. `--short` (SHORT=1) goes through fewer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from statistics import mean

from _contract import Row, finish
from _estimate.generator import history
from _estimate.judge import Judged, coverage, half_width, judge, macro
from _program import program
from farline.estimating.like_paths import like_paths

PATHS, TRANSFERS = 24, 600
SHORT_PATHS, SHORT_TRANSFERS = 6, 240
BRIEF_PATHS, BRIEF_TRANSFERS = 160, 120
KNOWN_AFTER = 100
FIRST = 30
AFTER = 10
"""Transfers after a month, or a change, that are looked at."""

_COVERAGE = {0.5: (45.0, 58.0), 0.8: (77.0, 86.0), 0.95: (92.0, 98.0)}


def bounded(case: str, unit: str, value: float, low: float | None, high: float | None) -> Row:
    """A row that is reached if the figure lies between the bounds."""
    ratios = [(value / low, low)] if low else []
    ratios += [(high / value, high)] if high else []
    ratio, nearest = min(ratios)
    return Row(case, value, nearest, unit, ratio, ratio, ratio)


Paths = Sequence[Sequence[Judged]]


def rows(paths: Paths, brief: Paths, new_paths: Paths) -> Iterator[Row]:
    """Every figure that is asked for."""
    everything = list(chain.from_iterable(paths))
    for cover, (low, high) in _COVERAGE.items():
        name = f"all, {100 * cover:.0f} % interval holds"
        yield bounded(name, "%", macro(paths, cover), low, high)
    worst = min(coverage(one, 0.8) for one in paths)
    yield bounded("worst path, 80 % interval holds", "%", worst, 70.0, None)
    known = [one for one in everything if one.number >= KNOWN_AFTER and not one.is_new_kind]
    new = [one for one in everything if one.number >= KNOWN_AFTER and one.is_new_kind]
    yield bounded("known path and kind, half-width", "x", half_width(known, 0.8), None, 1.35)
    yield bounded("known path, new kind, half-width", "x", half_width(new, 0.8), None, 1.7)
    yield bounded("empty store, half-width", "x", half_width(_first(paths), 0.8), None, 3.2)
    kept = 100 * mean(mean(one.in_time for one in path) for path in paths)
    yield bounded("deadlines reserved at 90 % kept", "%", kept, 85.0, 96.0)
    yield from _situations(brief, new_paths)


def _first(paths: Paths) -> list[Judged]:
    return [path[0] for path in paths]


def _situations(paths: Paths, new_paths: Paths) -> Iterator[Row]:
    """What happens once on a path; the bounds are those of the worst path."""
    yield bounded(
        "path never seen, 80 % interval holds", "%", coverage(_first(new_paths), 0.8), 70, None
    )
    yield bounded("path never seen, half-width", "x", half_width(_first(new_paths), 0.8), None, 3.2)
    first = [path[:FIRST] for path in paths]
    yield bounded(f"first {FIRST} transfers, 80 % holds", "%", macro(first, 0.8), 75.0, None)
    for word, text in (("idle", "month idle"), ("change", "host changed")):
        at = [_after(path, word, 1) for path in paths]
        later = [_after(path, word, AFTER) for path in paths]
        yield bounded(f"{text}, next transfer, 80 % holds", "%", macro(at, 0.8), 70.0, None)
        yield bounded(f"{text}, next {AFTER}, 80 % holds", "%", macro(later, 0.8), 70.0, None)


def _after(path: Sequence[Judged], word: str, count: int) -> list[Judged]:
    """The transfers that come next after an event."""
    at = [place for place, one in enumerate(path) if one.after == word]
    return [one for place in at for one in path[place : place + count]]


def run(short: bool) -> list[Row]:
    """Goes through all histories."""
    count, transfers = (SHORT_PATHS, SHORT_TRANSFERS) if short else (PATHS, TRANSFERS)
    seeds = range(1, count + 1)
    paths = [judge(history(seed, transfers)) for seed in seeds]
    others = like_paths([one.done for one in history(1000 + seed, 60)] for seed in range(8))
    new_paths = [judge(history(seed, 1), others) for seed in range(2001, 2001 + 20 * count)]
    some = BRIEF_PATHS * count // PATHS
    brief = [judge(history(seed, BRIEF_TRANSFERS)) for seed in range(5001, 5001 + some)]
    return list(rows(paths, brief, new_paths))


def main() -> int:
    """The bench."""
    return finish("estimate-coverage", run("--short" in sys.argv or bool(os.environ.get("SHORT"))))


if __name__ == "__main__":
    program(main, any_build=True)
