"""Copies that are tuned while they run, in a model, beside one that knows the best number.

Each scenario of `_tuning/plant.py` is run with every pair of a noise and a ramp, the same noise for
all. `ours` is by how much farline's controller is behind the copy that knows the best number at
every moment, in percent; `peer` what it may be behind, or how far a constant number is. Needs no
network. `SHORT=1` leaves most pairs out and takes a minute, else it is an hour of one core;
`--seed N` draws other noise, `--long` adds copies of an hour.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from statistics import mean, quantiles

from _contract import Row, finish
from _program import program
from _tuning.plant import (
    CHANGES,
    KNOBS,
    MOST,
    NOISES,
    RAMPS_S,
    STILL,
    TICK_S,
    Control,
    Counts,
    Fills,
    Noise,
    Outcome,
    Plant,
    Scenario,
    amount_of,
    best_counts,
    run,
)
from farline.tuning.online import OnlineController, OnlineSettings, Tick
from farline.tuning.online.sides import SideRule, ThreeCounts

LENGTHS_S = {"2 min": 120.0, "15 min": 900.0, "1 h": 3600.0}
ALLOWED = {"2 min": 15.0, "15 min": 8.0, "1 h": 8.0}
GUARD = 3.5
MOST_CHANGES = 4.0
ANSWERED = 85.0
NEAR = 0.92
"""Of the new optimum: then a change is answered."""


@dataclass(frozen=True)
class Case:
    """One copy."""

    scenario: Scenario
    length_s: float
    noise_sd: float
    ramp_s: float
    seed: int
    policy: str


@dataclass(frozen=True)
class Told:
    """How one copy went, beside the one that knows."""

    behind: float
    changes_per_minute: float
    answered: tuple[bool, ...]


def online(case: Case, is_known: bool = False) -> Control:
    """farline's controller."""
    first = case.scenario.first
    made = OnlineController(OnlineSettings(first, MOST, case.ramp_s, is_known))

    def control(tick: Tick, _counts: Counts, _fills: Fills, _plant: Plant) -> Counts:
        made.tick(tick)
        return made.setting, made.setting, made.setting

    return control


def three(case: Case) -> Control:
    """The same for the network, and the buffers' rule for both sides."""
    first = case.scenario.first
    streams = OnlineController(OnlineSettings(first, MOST, case.ramp_s))
    made = ThreeCounts(SideRule(first, MOST), streams, SideRule(first, MOST))

    def control(tick: Tick, _counts: Counts, fills: Fills, _plant: Plant) -> Counts:
        made.tick(tick, *fills)
        return made.counts

    return control


def knowing(separate: bool = False) -> Control:
    """Knows the best counts, though not the noise."""
    known: dict[Plant, Counts] = {}

    def control(_tick: Tick, _counts: Counts, _fills: Fills, plant: Plant) -> Counts:
        if plant not in known:
            known[plant] = best_counts(plant) if separate else (plant.best(),) * 3
        return known[plant]

    return control


def constant(count: int) -> Control:
    """Never changes."""
    return lambda *_: (count, count, count)


POLICIES: dict[str, Callable[[Case], Control]] = {
    "online": online,
    "guard": lambda case: online(case, is_known=True),
    "fixed 8": lambda case: constant(8),
    "fixed 16": lambda case: constant(16),
    "three": three,
    "one": online,
}


def told(case: Case) -> Told:
    """Runs the case, and the copy that knows."""
    separate = case.policy in ("three", "one")
    ticks = round(6 * case.length_s / TICK_S) + 1
    noise = Noise.draw(case.noise_sd, ticks, case.seed)
    plant = case.scenario.plan[0][1]
    best = replace(case.scenario, first=plant.best())
    begun = best if case.policy == "guard" else case.scenario
    begun = replace(begun, first=16) if case.policy == "fixed 16" else begun
    amount = amount_of(case.scenario, case.length_s, separate)
    reference = run(best, case.length_s, case.ramp_s, noise, knowing(separate), amount)
    if case.policy == "guard":
        reference = run(best, case.length_s, case.ramp_s, noise, constant(best.first), amount)
    control = POLICIES[case.policy](replace(case, scenario=begun))
    done = run(begun, case.length_s, case.ramp_s, noise, control, amount)
    steps = sum(a != b for a, b in zip(done.counts, done.counts[1:], strict=False))
    behind = 100 * (done.seconds / reference.seconds - 1)
    return Told(behind, 60 * steps / done.seconds, tuple(answers(case, done)))


def answers(case: Case, done: Outcome) -> Iterator[bool]:
    """Of each change of the plant: whether the count was near the best in time."""
    within_s = max(15.0, 5 * case.ramp_s)
    for part, plant in case.scenario.plan[1:]:
        at = round(part * case.length_s / TICK_S)
        until = at + round(within_s / TICK_S)
        if until + round(within_s / TICK_S) > len(done.counts):
            continue
        best = max(plant.rate((n, n, n)) for n in range(1, MOST + 1))
        seen = (plant.rate(counts) for counts in done.counts[at : until + 1])
        yield any(rate >= NEAR * best for rate in seen)


def cases(
    scenarios: Sequence[Scenario], length_s: float, policy: str, seed: int, every: int
) -> list[Case]:
    """Every pair of a noise and a ramp, or every few of them."""
    pairs = list(enumerate(product(NOISES, RAMPS_S)))[::every]
    return [
        Case(scenario, length_s, sd, ramp_s, 1000 * seed + number, policy)
        for scenario in scenarios
        for number, (sd, ramp_s) in pairs
    ]


def bound(case: str, ours: float, allowed: float) -> Row:
    """A figure that may be at most so much."""
    ratio = allowed / max(ours, 0.01)
    return Row(case, ours, allowed, "%", ratio, ratio, ratio)


class Bench:
    """Runs cases over all cores, and remembers nothing."""

    def __init__(self, pool: ProcessPoolExecutor, seed: int, every: int) -> None:
        """Over `pool`."""
        self._pool, self._seed, self._every = pool, seed, every

    def by_scenario(
        self, scenarios: Sequence[Scenario], length_s: float, policy: str
    ) -> dict[str, list[Told]]:
        """What came of each scenario's runs."""
        found: dict[str, list[Told]] = {}
        made = cases(scenarios, length_s, policy, self._seed, self._every)
        for case, one in zip(made, self._pool.map(told, made, chunksize=8), strict=True):
            found.setdefault(case.scenario.name, []).append(one)
        return found

    def rows(self, length: str) -> Iterator[Row]:
        """The rows of copies of one length."""
        length_s, allowed = LENGTHS_S[length], ALLOWED[length]
        still = self.by_scenario(STILL, length_s, "online")
        moving = self.by_scenario(CHANGES, length_s, "online")
        fixed = self.by_scenario(CHANGES, length_s, "fixed 16")
        yield bound(f"{length}: nothing changes", behind(still), allowed)
        yield bound(f"{length}: changes", behind(moving), allowed)
        yield bound(f"{length}: changes, fixed 16", behind(moving), behind(fixed))
        for name, runs in moving.items():
            yield bound(f"{length}: {name}"[:38], behind({name: runs}), 1.5 * allowed)
        guard = self.by_scenario(STILL, length_s, "guard")
        worst = max(behind({name: runs}) for name, runs in guard.items())
        yield bound(f"{length}: starts best, worst mean", worst, GUARD)
        everything = [one for runs in moving.values() for one in runs]
        if length != "2 min":
            steps = mean(one.changes_per_minute for one in everything)
            yield bound(f"{length}: changes a minute", steps, MOST_CHANGES)
            quick = ("loss step", "20 flows come", "disk to a third")
            kept = [yes for name in quick for one in moving[name] for yes in one.answered]
            share = 100 * mean(kept)
            yield Row(f"{length}: answered in time", share, ANSWERED, "%", share / ANSWERED,
                      share / ANSWERED, share / ANSWERED)  # fmt: skip
        tenth = quantiles((one.behind for one in everything), n=10)[-1]
        print(f"  {length}: 90th percentile of runs with changes {tenth:.1f} % behind")


def behind(found: dict[str, list[Told]]) -> float:
    """The mean over scenarios of the mean over runs."""
    return mean(mean(one.behind for one in runs) for runs in found.values())


def main() -> int:
    """The bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--long", action="store_true")
    asked = parser.parse_args()
    every = 8 if os.environ.get("SHORT") else 1
    lengths = ["2 min", "15 min", *(["1 h"] if asked.long else [])]
    with ProcessPoolExecutor() as pool:
        bench = Bench(pool, asked.seed, every)

        def rows() -> Iterator[Row]:
            for length in lengths:
                yield from bench.rows(length)
            for name, runs in bench.by_scenario(KNOBS, 900.0, "three").items():
                yield bound(f"separate counts: {name}"[:38], behind({name: runs}), 10.0)

        return finish("tune-online", rows())


if __name__ == "__main__":
    # No speed is measured, so a debug build of the extension does as well.
    program(main, any_build=True)
