"""What every bench does alike: interleaved pairs, ratios, a table, results as JSON, an exit code.

`ratio` always means that at least `must` is good. A row's ratio is the median of its pairs' ratios,
`low` and `high` are their quartiles.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

RESULTS = Path(__file__).resolve().parent / "results"
FEWEST_PAIRS = 5

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class Row:
    """One case: medians of both sides, and the ratio that is asked for."""

    case: str
    ours: float
    peer: float
    unit: str
    ratio: float
    low: float
    high: float
    must: float = 1.0

    @property
    def reached(self) -> bool:
        """Whether the ratio is what it must be."""
        return self.ratio >= self.must


def interleave(
    ours: Callable[[], A], peer: Callable[[], B], pairs: int = FEWEST_PAIRS
) -> list[tuple[A, B]]:
    """Measures A B A B ...: figures of both sides in pairs."""
    return [(ours(), peer()) for _ in range(max(pairs, FEWEST_PAIRS))]


def row(
    case: str,
    unit: str,
    pairs: Sequence[tuple[float, float]],
    *,
    less_is_better: bool = False,
    must: float = 1.0,
) -> Row:
    """A row from pairs (ours, peer); with `less_is_better` the ratio is peer / ours."""
    ratios = [peer / ours if less_is_better else ours / peer for ours, peer in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    ours, peers = zip(*pairs, strict=True)
    medians = statistics.median(ours), statistics.median(peers)
    return Row(case, *medians, unit, middle, low, high, must)


def finish(name: str, rows: Iterable[Row]) -> int:
    """Prints the table, writes `benches/results/NAME.json`; 1 if a row fell short, else 0."""
    from farline.tools.native import host_facts

    rows = print_table(name, rows)
    RESULTS.mkdir(exist_ok=True)
    document = {"name": name, "host": host_facts(), "rows": [asdict(one) for one in rows]}
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if all(one.reached for one in rows) else 1


HEADER = f"{'case':38} {'ours':>8} {'peer':>8} {'unit':6} {'ratio':>6} {'low':>5} {'high':>5}"


def line(one: Row) -> str:
    """A row within 80 columns, with what it must be if it fell short."""
    mark = "" if one.reached else f"  must be {one.must:g}"
    figures = f"{one.ours:8.3g} {one.peer:8.3g} {one.unit:6}"
    return f"{one.case:38} {figures} {one.ratio:6.2f} {one.low:5.2f} {one.high:5.2f}{mark}"


def print_table(name: str, rows: Iterable[Row]) -> list[Row]:
    """Prints each row as it comes; gives them all."""
    print(name)
    print(HEADER)
    done = []
    for one in rows:
        print(line(one), flush=True)
        done.append(one)
    return done
