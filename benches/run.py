"""`make bench`: one bench by its name with its table, or all of them with a line each.

A bench is `benches/name_of_it.py`; run as a program it measures, prints its table, writes
`benches/results/name-of-it.json` and exits with 1 if a row fell short. What one prints
in a run of all is kept beside its results.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

from _program import program, run_until

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
LIMIT_S = 3600


def names() -> list[str]:
    """Every bench there is."""
    programs = (path.stem for path in HERE.glob("[a-z]*.py") if path.stem != "run")
    return sorted(stem.replace("_", "-") for stem in programs)


def command(name: str) -> list[str]:
    """How to run a bench."""
    return [sys.executable, str(HERE / f"{name.replace('-', '_')}.py")]


def run_one(name: str) -> int:
    """Runs a bench on the caller's terminal."""
    return run_until(command(name), LIMIT_S)


def run_all() -> int:
    """Runs every bench, a line each."""
    RESULTS.mkdir(exist_ok=True)
    failed = 0
    for name in names():
        with (RESULTS / f"{name}.txt").open("w", encoding="utf-8") as table:
            code = run_until(command(name), LIMIT_S, table)
        print(f"{name:20} {'ok' if code == 0 else 'SHORT':6} {lowest(name)}", flush=True)
        failed += code != 0
    return 1 if failed else 0


def lowest(name: str) -> str:
    """The row of a bench's results with the lowest ratio, in words."""
    try:
        rows = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, KeyError):
        return f"no results: see benches/results/{name}.txt"
    if not rows:
        return "no rows"
    row = min(rows, key=lambda one: float(one["ratio"]))
    return f"{len(rows)} rows; lowest ratio {row['ratio']:.2f} ({row['case']})"


def main(arguments: list[str]) -> int:
    """Runs what `arguments` name: nothing for all, else one bench."""
    if not arguments:
        return run_all()
    if len(arguments) == 1 and arguments[0] in names():
        return run_one(arguments[0])
    print(
        f"bench: {' '.join(arguments)!r} is none; there are {', '.join(names())}", file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    program(partial(main, sys.argv[1:]), any_build=True)
