"""What is lost by the streams that `farline tune` chooses, on emulated paths: beside every setting.

Paths are drawn at random (`_tuning/emulated.py`). On each, every number of streams is measured,
then `farline tune` searches, once with nothing known and once with what that search has left, then
every number is measured again; regret is what the chosen one lost of the best mean. Beside it what
the default of a copy, a constant and the textbook rule would have lost. The best mean of noisy runs
is chosen by its luck too, so that no policy reaches 0.

Needs root and iperf3. `--count N` (60), `--seed N`, `--jobs N` paths at a time; `--resume` goes on
with the rows of `results/tune-emulated-rows.jsonl`, `--table` prints what is there. `--short` takes
two paths. Rates are wall-clock figures of this machine, its load included.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _contract import RESULTS, Row, finish
from _program import program
from _tuning.emulated import CONSTANT, Outcome, draw_paths, measure, work

ROWS = RESULTS / "tune-emulated-rows.jsonl"
COUNT, SHORT_COUNT = 60, 2
SEED = 28

Policy = Callable[[Outcome], tuple[int, int]]
"""From a path to the streams that are taken, and the samples that they took."""


def textbook(one: Outcome) -> tuple[int, int]:
    """Streams by the published rule, of those that were measured the nearest."""
    from farline.models.transfer_knobs import textbook_knobs

    path = one.path
    knobs = textbook_knobs(path.rate_bps, path.rtt_ms / 1000, 1e9, 64, path.buffer_bytes)
    return min(one.rates, key=lambda count: abs(count - knobs.parallelism)), 0


POLICIES: dict[str, Policy] = {
    "farline tune, cold": lambda one: one.chosen["cold"][:2],
    "farline tune, warm": lambda one: one.chosen["warm"][:2],
    "default of a copy": lambda one: (one.default, 0),
    f"constant {CONSTANT}": lambda one: (CONSTANT, 0),
    "textbook rule": textbook,
    "one stream": lambda one: (1, 0),
}


def main() -> int:
    """Measures what is asked for, prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--short", action="store_true", default=bool(os.environ.get("SHORT")))
    asked = parser.parse_args()
    count = SHORT_COUNT if asked.short else asked.count
    known = kept(asked.seed) if asked.resume or asked.table else {}
    if not asked.table:
        known |= measured(asked.seed, count, set(known), asked.jobs, fresh=not asked.resume)
    if not known:
        print("tune-emulated: no path was measured", file=sys.stderr)
        return 1
    outcomes = [known[number] for number in sorted(known)]
    print_table(outcomes, asked.seed)
    return finish("tune-emulated", rows(outcomes))


def kept(seed: int) -> dict[int, Outcome]:
    """Paths that earlier runs with this seed have measured."""
    if not ROWS.exists():
        return {}
    lines = map(json.loads, ROWS.read_text("utf-8").splitlines())
    outcomes = (Outcome.of_document(one["outcome"]) for one in lines if one["seed"] == seed)
    return {one.number: one for one in outcomes}


def measured(seed: int, count: int, done: set[int], jobs: int, fresh: bool) -> dict[int, Outcome]:
    """Measures the paths that are missing; each is kept as soon as it is there."""
    RESULTS.mkdir(exist_ok=True)
    if fresh:
        ROWS.unlink(missing_ok=True)
    lock, found = threading.Lock(), {}
    paths = [(n, path) for n, path in enumerate(draw_paths(count, seed)) if n not in done]
    pool = ThreadPoolExecutor(jobs)
    try:
        futures = {pool.submit(measure, n, path, Path(__file__)): n for n, path in paths}
        for future in as_completed(futures):
            if (error := future.exception()) is not None:
                print(f"path {futures[future]}: {error}", file=sys.stderr, flush=True)
                continue
            one = future.result()
            found[one.number] = one
            with lock, ROWS.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"seed": seed, "outcome": one.document()}) + "\n")
            print(path_line(one), flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
    return found


def path_line(one: Outcome) -> str:
    """One path: its best count, and what the search took."""
    best = max(one.rates, key=one.mean)
    streams, samples, reason = one.chosen["cold"]
    return (
        f"{one.number:3} {one.path.text}: best {best} ({one.mean(best) / 1e6:.0f} Mbit/s), chosen "
        f"{streams} after {samples} ({reason}), {one.regret(streams):.1f} % less; warm "
        f"{one.chosen['warm'][0]} after {one.chosen['warm'][1]}, default {one.default}"
    )


def figures(outcomes: list[Outcome], policy: Policy) -> tuple[float, float, float]:
    """Mean samples, mean regret and its 90th percentile."""
    import numpy as np

    taken = [policy(one) for one in outcomes]
    lost = [one.regret(streams) for one, (streams, _) in zip(outcomes, taken, strict=True)]
    return (
        float(np.mean([samples for _, samples in taken])),
        float(np.mean(lost)),
        float(np.quantile(lost, 0.9)),
    )


def print_table(outcomes: list[Outcome], seed: int) -> None:
    """Every policy."""
    print(f"\n{len(outcomes)} paths, seed {seed}")
    print(f"{'policy':22} {'samples':>8} {'regret %':>9} {'90th pct':>9}")
    for name, policy in POLICIES.items():
        samples, mean, high = figures(outcomes, policy)
        print(f"{name:22} {samples:8.1f} {mean:9.1f} {high:9.1f}")
    print()


def rows(outcomes: list[Outcome]) -> Iterator[Row]:
    """What is asked for."""
    cold = figures(outcomes, POLICIES["farline tune, cold"])
    warm = figures(outcomes, POLICIES["farline tune, warm"])
    constant = figures(outcomes, POLICIES[f"constant {CONSTANT}"])
    yield bound("mean regret", cold[1], 5.0, "%")
    yield bound("90th percentile", cold[2], 12.0, "%")
    yield bound("samples, nothing known", cold[0], 5.0, "")
    yield bound("mean regret, path known", warm[1], 5.0, "%")
    yield bound("samples, path known", warm[0], 2.0, "")
    yield bound(f"against constant {CONSTANT}", cold[1], constant[1], "%")


def bound(case: str, ours: float, allowed: float, unit: str) -> Row:
    """A figure that may be at most so much."""
    ratio = allowed / max(ours, 1e-9)
    return Row(case, ours, allowed, unit, ratio, ratio, ratio)


if __name__ == "__main__":
    if "--worker" in sys.argv:
        print(json.dumps(work(*sys.argv[sys.argv.index("--worker") + 1 :]).document()))
    else:
        program(main, any_build=True)
