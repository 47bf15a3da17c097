"""A hundred million transfers to a profile: in 15 s and 4 GiB, on whatever this machine has.

The rows are zstd Parquet, made once under /tmp/farline-bench (2.5 GB). What is measured is a whole
process each time, start of Python included: the profile of the infrastructure with quantiles and
coefficients, a profile per connection, and interleaved with them the bare aggregation (means at
each round-trip time) as one would type it for DuckDB, and for polars where that is installed. All
must come to the same count and the same mean. `--short` (SHORT=1) takes 2 million rows.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from _analytics.data import ROWS, SHORT_ROWS, made
from _contract import FEWEST_PAIRS, Row, finish, row
from _program import program

CONTENDER = Path(__file__).resolve().parent / "_analytics" / "contender.py"
BUDGET_S = 15.0
BUDGET_GIB = 4.0
# Means alone take two columns and a sum, a profile takes seven and a logarithm of every rate. Of
# few rows the start of Python is most.
OF_BARE = 0.1


@dataclass(frozen=True)
class Done:
    """What one process took and came to."""

    seconds: float
    peak_gib: float
    n: int
    mean_bps: float


def measure(contender: str, folder: Path) -> Done:
    """One analysis in a process of its own."""
    started_at = time.perf_counter()
    said = subprocess.run(
        [sys.executable, str(CONTENDER), contender, str(folder)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    seconds = time.perf_counter() - started_at
    found = json.loads(said)
    return Done(seconds, found["peak_bytes"] / 2**30, found["n"], found["mean_bps"])


def contenders() -> list[str]:
    """Ours and the peers that are installed."""
    polars = ["polars"] if importlib.util.find_spec("polars") else []
    return ["ours", "by-connection", "duckdb", *polars]


def rows(count: int) -> Iterator[Row]:
    """Measures all contenders in turn, and compares."""
    folder = made(count)
    rounds = [{name: measure(name, folder) for name in contenders()} for _ in range(FEWEST_PAIRS)]
    for one in rounds:
        check(list(one.values()))
    millions = f"{count // 1_000_000}M"
    for name, case in (("ours", "profile"), ("by-connection", "28 profiles")):
        done = [one[name] for one in rounds]
        walls = [(each.seconds, BUDGET_S) for each in done]
        yield row(f"{millions} {case}, wall", "s", walls, less_is_better=True)
        peaks = [(each.peak_gib, BUDGET_GIB) for each in done]
        yield row(f"{millions} {case}, peak memory", "GiB", peaks, less_is_better=True)
    for peer in contenders()[2:]:
        pairs = [(one["ours"].seconds, one[peer].seconds) for one in rounds]
        case = f"{millions} profile / means by {peer}"
        must = OF_BARE if count == ROWS else 0.0
        yield row(case, "s", pairs, less_is_better=True, must=must)


def check(done: list[Done]) -> None:
    """All came to the same transfers and the same mean.

    Raises:
        RuntimeError: when they did not: then the times mean nothing.
    """
    first = done[0]
    for other in done[1:]:
        if first.n != other.n or not math.isclose(first.mean_bps, other.mean_bps, rel_tol=1e-9):
            raise RuntimeError(f"the answers differ: {first} and {other}")


def main() -> int:
    """Measures, prints, writes."""
    short = "--short" in sys.argv or bool(os.environ.get("SHORT"))
    return finish("analyze-scale", rows(SHORT_ROWS if short else ROWS))


if __name__ == "__main__":
    program(main)
