"""How often an explanation of an infrastructure is right, where its fault is known.

    .venv/bin/python -m scripts.explanation_trials [FIRST [COUNT]]

plants every fault of tests/support/infrastructures.py in COUNT infrastructures (100), seeds from
FIRST (1000) on, prints a table and puts it into docs/design/explanation.md between its two marks.
Seeds below 1000 are for development.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from farline.findings.infrastructure import explain
from farline.findings.infrastructure_finding import Explanation
from scripts.page_tables import markdown, put_in
from tests.support.infrastructures import FAULTS, HARMLESS, OUTCOMES, Case, judge

PAGE = Path(__file__).resolve().parents[1] / "docs" / "design" / "explanation.md"
FIRST, COUNT = 1000, 100
MARK = "explanation-trials"


def outcomes(make: Callable[[int], Case], seeds: range) -> Counter[str]:
    """What explanations of the cases of these seeds were worth."""
    found: Counter[str] = Counter()
    for seed in seeds:
        case = make(seed)
        found[judge(case, explained(case))] += 1
    return found


def explained(case: Case) -> Explanation:
    """What is said of a case."""
    return explain(case.cells, periods=case.periods, capacity_bps=case.capacity_bps)


def main(arguments: list[str]) -> int | str:
    """A table of all faults; what it exits with."""
    if len(arguments) > 3 or not all(word.isdigit() for word in arguments[1:]):
        return f"usage: {arguments[0]} [FIRST [COUNT]]"
    numbers = [int(word) for word in arguments[1:]]
    first, count = (*numbers, *(FIRST, COUNT)[len(numbers) :])
    rows = []
    for name, make in {**FAULTS, **HARMLESS}.items():
        begun = time.process_time()
        found = outcomes(make, range(first, first + count))
        each_ms = 1000 * (time.process_time() - begun) / count
        rows.append([name, *(str(found[outcome]) for outcome in OUTCOMES), f"{each_ms:.0f}"])
        print(*rows[-1], sep="\t", flush=True)
    table = markdown(["planted", *OUTCOMES, "CPU ms a case"], rows)
    note = f"Seeds {first} to {first + count - 1}."
    page = put_in(PAGE.read_text(encoding="utf-8"), MARK, f"{table}\n\n{note}")
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
