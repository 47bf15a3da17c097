"""`farline copy` under random faults: every case ends with the right files or the right reasons.

Cases are drawn from a seed: trees with odd names, pushes and pulls over each transport, and one to
three faults each: either end killed or stopped, the link cut, the disk full, packets corrupted
behind their checksums, source files changed, grown, shrunk, emptied, written anew, edited with the
time put back, removed, replaced, or turned into something else. In half of the cases some files
are at the destination already, older, and may be replaced. `_copy/faults` says what must hold. A
row is a kind of fault: cases that ended right / cases. `--runs` (RUNS=200), `--seed` (SEED=1),
`--only N` for one case of a seed, `--short` (SHORT=1) for small trees and short cuts. What went
wrong is kept in `benches/results/copy-faults-wrong.json`. Needs root; the whole takes about an
hour.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from _contract import RESULTS, Row, finish
from _copy.faults.case import Outcome, run
from _copy.faults.ground import ground
from _copy.faults.plan import KINDS, SHORT, TRANSPORTS, WHOLE, Case, cases
from _program import program


def main() -> int:
    """Runs the cases; prints and keeps what came of them."""
    options = _parse()
    scale = SHORT if options.short else WHOLE
    chosen = cases(options.seed, options.runs, scale)
    if options.only is not None:
        chosen = [case for case in cases(options.seed, options.only + 1, scale)][-1:]
    outcomes = []
    with ground() as here:
        for case in chosen:
            outcomes.append(outcome := run(here, case, scale))
            print(told(outcome), file=sys.stderr, flush=True)
    RESULTS.mkdir(exist_ok=True)
    wrong = [_document(one) for one in outcomes if not one.is_right]
    kept = {"seed": options.seed, "wrong": wrong}
    (RESULTS / "copy-faults-wrong.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")
    return finish("copy-faults", rows(outcomes))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    env = os.environ.get
    parser.add_argument("--runs", type=int, default=int(env("RUNS", "200")), help="[$RUNS]")
    parser.add_argument("--seed", type=int, default=int(env("SEED", "1")), help="[$SEED]")
    parser.add_argument("--only", type=int, help="number of the one case to run")
    parser.add_argument("--short", action="store_true", default=bool(env("SHORT")), help="[$SHORT]")
    return parser.parse_args()


def told(outcome: Outcome) -> str:
    """A line about a case, and one about each thing that went wrong."""
    word = "right" if outcome.is_right else "WRONG"
    met = "+".join(outcome.met) or "none met"
    head = (
        f"{word} {outcome.case.name}: {outcome.attempts} commands, {outcome.seconds:.1f} s,"
        f" {outcome.failed} failed by name, {outcome.looks} looks; {met}"
    )
    return "\n      ".join([head, *outcome.problems])


def rows(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """A row for all, one for each kind of fault that met a copy, one for each transport and way."""
    yield _row("all", outcomes)
    for kind in KINDS:
        yield from _some(kind, (one for one in outcomes if kind in one.met))
    for transport in TRANSPORTS:
        of_it = (one for one in outcomes if one.case.option("--transport") == transport)
        yield from _some(transport, of_it)
    for way in ("push", "pull"):
        yield from _some(way, (one for one in outcomes if one.case.way == way))


def _some(name: str, outcomes: Iterable[Outcome]) -> Iterator[Row]:
    found = list(outcomes)
    if found:
        yield _row(name, found)


def _row(name: str, outcomes: Sequence[Outcome]) -> Row:
    right = sum(one.is_right for one in outcomes)
    ratio = right / len(outcomes)
    return Row(name, right, len(outcomes), "cases", ratio, ratio, ratio)


def _document(outcome: Outcome) -> dict[str, object]:
    case: Case = outcome.case
    return {**asdict(case), "met": list(outcome.met), "problems": list(outcome.problems)}


if __name__ == "__main__":
    program(main, any_build=True)
