"""A copy as a fluid: reading, network and writing with a buffer between each two.

A stage with n threads carries `min(n t, C) / (1 + k max(0, n t / C - 1))`: t is the rate of one
thread, C the cap of all, k how much too many disturb each other. On the network the others' flows
take their share. A rate rises in `ramp_s` (to 63 %) and falls at once; each stage has noise of its
own that changes slowly (autoregressive, 60 s). Rates are Gbit/s, amounts Gbit.

It is a model: it shows a controller's rules, not a network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from farline.tuning.online import Tick

TICK_S = 0.5
BUFFER = 16.0
"""2 GB."""
MOST = 64
NOISE_S = 60.0


@dataclass(frozen=True, slots=True)
class Stage:
    """What n threads of one stage carry."""

    thread: float = 1.0
    cap: float = 10.0
    hurt: float = 0.15
    others: int = 0
    """Flows of others, which want all that they can get."""

    def rate(self, count: float) -> float:
        """Without noise."""
        demand = count * self.thread / self.cap
        share = self.cap * count / (count + self.others) if self.others else self.cap
        return min(count * self.thread, share) / (1 + self.hurt * max(0.0, demand - 1))

    def loss(self, count: float) -> float:
        """Share of packets lost: a thousandth for each cap that is wanted beyond the one there."""
        demand = (count + self.others) * self.thread / self.cap
        return 0.001 * max(0.0, demand - 1)


WIDE = Stage(10.0, 1000.0, 0.0)
"""A stage that limits nothing."""


@dataclass(frozen=True, slots=True)
class Plant:
    """The three stages at one moment."""

    read: Stage = WIDE
    network: Stage = WIDE
    write: Stage = WIDE

    def rate(self, counts: tuple[int, int, int]) -> float:
        """What gets through in the long run, without noise."""
        stages = zip((self.read, self.network, self.write), counts, strict=True)
        return min(stage.rate(count) for stage, count in stages)

    def best(self, most: int = MOST) -> int:
        """The smallest count, the same for all stages, within 0.1 % of the best rate."""
        rates = [self.rate((n, n, n)) for n in range(1, most + 1)]
        return next(n for n, one in enumerate(rates, 1) if one >= 0.999 * max(rates))


Plan = Sequence[tuple[float, Plant]]
"""From which part of the planned time on which plant is there."""


@dataclass(frozen=True)
class Scenario:
    """A copy of a planned length, and what happens in it."""

    name: str
    plan: Plan
    first: int = 8

    @property
    def changes(self) -> bool:
        """Whether anything does."""
        return len(self.plan) > 1

    def at(self, part: float) -> Plant:
        """What is there at this part of the planned time."""
        return [plant for begins, plant in self.plan if begins <= part][-1]


@dataclass(frozen=True, slots=True)
class Noise:
    """Factors for the three stages over time, the same for every controller."""

    factors: Sequence[Sequence[float]]

    @classmethod
    def draw(cls, sd: float, ticks: int, seed: int) -> Noise:
        """Autoregressive noise with this standard deviation of its logs."""
        rng = np.random.default_rng(seed)
        keep = math.exp(-TICK_S / NOISE_S)
        steps = rng.normal(0, sd * math.sqrt(1 - keep**2), (ticks, 3))
        steps[0] = rng.normal(0, sd, 3)
        found = np.empty_like(steps)
        found[0] = steps[0]
        for at in range(1, ticks):
            found[at] = keep * found[at - 1] + steps[at]
        return cls(np.exp(found - sd * sd / 2).tolist())


Counts = tuple[int, int, int]
"""Readers, streams, writers."""

Fills = tuple[float, float]
"""Of both buffers, 0 to 1."""

Control = Callable[[Tick, Counts, Fills, Plant], Counts]
"""A tick, the counts, fills of both buffers and the plant (for who knows it): counts from now."""


@dataclass(slots=True)
class Outcome:
    """How one copy went."""

    seconds: float
    rates: list[float]
    counts: list[tuple[int, int, int]]


def run(
    scenario: Scenario, planned_s: float, ramp_s: float, noise: Noise, control: Control,
    amount: float,
) -> Outcome:  # fmt: skip
    """One copy of `amount`, to its end or to six times the plan."""
    counts = (scenario.first,) * 3
    flows = [0.0, 0.0, 0.0]
    fills, left, at_s = [0.0, 0.0], amount, 0.0
    rise = 1 - math.exp(-TICK_S / ramp_s)
    rates: list[float] = []
    taken: list[tuple[int, int, int]] = []
    factors = noise.factors
    while left > 0 and at_s < 6 * planned_s:
        plant = scenario.at(at_s / planned_s)
        factor = factors[min(len(factors) - 1, len(rates))]
        for number, stage in enumerate((plant.read, plant.network, plant.write)):
            wanted = stage.rate(counts[number]) * factor[number]
            # Threads begin at once; a network has to get up to speed.
            gap = wanted - flows[number]
            flows[number] += gap * (rise if gap > 0 and number == 1 else 1.0)
        read = min(flows[0], (BUFFER - fills[0]) / TICK_S + flows[1])
        sent = min(flows[1], fills[0] / TICK_S + read, (BUFFER - fills[1]) / TICK_S + flows[2])
        written = min(flows[2], fills[1] / TICK_S + sent)
        read = min(read, (BUFFER - fills[0]) / TICK_S + sent)
        fills[0] += (read - sent) * TICK_S
        fills[1] += (sent - written) * TICK_S
        left -= written * TICK_S
        at_s += TICK_S
        rates.append(written)
        taken.append(counts)
        loss = plant.network.loss(counts[1])
        tick = Tick(at_s, 1e9 * read, 1e9 * sent, 1e9 * written, loss, max(0.0, left) * 1e9 / 8)
        counts = control(tick, counts, (fills[0] / BUFFER, fills[1] / BUFFER), plant)
    return Outcome(at_s, rates, taken)


def amount_of(scenario: Scenario, planned_s: float, separate: bool = False) -> float:
    """What who knows the best count at every moment brings in the planned time.

    With `separate` the three stages have counts of their own.
    """
    ticks = round(planned_s / TICK_S)
    plants = (scenario.at((at + 1) * TICK_S / planned_s) for at in range(ticks))
    known: dict[Plant, float] = {}
    total = 0.0
    for plant in plants:
        if plant not in known:
            counts = best_counts(plant) if separate else (plant.best(),) * 3
            known[plant] = plant.rate(counts)
        total += known[plant] * TICK_S
    return total


def _net(**change: float) -> Plant:
    return Plant(network=replace(Stage(), **change))  # type: ignore[arg-type]


_KNEE_10, _KNEE_40 = _net(), _net(thread=0.25)
_SLOW_DISK = Plant(network=Stage(), write=Stage(0.4, 3.3, 0.15))
_CAPPED_DISK = Plant(network=Stage(), write=Stage(1.2, 3.3, 0.15))
_DISK = Plant(network=Stage(), write=Stage(1.2, 10.0, 0.15))

STILL = (
    Scenario("knee 10", ((0, _KNEE_10),)),
    Scenario("knee 40", ((0, _KNEE_40),)),
    Scenario("one thread fills", ((0, _net(thread=12.0, hurt=0.3)),)),
    Scenario("write-bound", ((0, Plant(network=Stage(), write=Stage(1.0, 4.0, 0.3))),)),
    Scenario("read-bound", ((0, Plant(read=Stage(0.5, 8.0, 0.1), network=Stage())),)),
    Scenario("plateau", ((0, _net(hurt=0.0)),)),
    Scenario("100 Gbit/s", ((0, _net(thread=4.0, cap=100.0)),)),
)
CHANGES = (
    Scenario("loss step", ((0, _KNEE_10), (0.33, _KNEE_40))),
    Scenario("link halved, restored", ((0, _KNEE_10), (0.32, _net(cap=5.0)), (0.65, _KNEE_10))),
    Scenario("competitor comes, goes", ((0, _KNEE_10), (0.33, _net(others=10)), (0.65, _KNEE_10))),
    Scenario("20 flows come", ((0, _KNEE_10), (0.33, _net(others=20)))),
    Scenario("disk to a third", ((0, _DISK), (0.33, _SLOW_DISK))),
    Scenario("disk's cap to a third", ((0, _DISK), (0.33, _CAPPED_DISK))),
    Scenario("stream rate x4", ((0, _KNEE_40), (0.33, _KNEE_10))),
    Scenario("stream rate x0.4, back", ((0, _KNEE_10), (0.33, _net(thread=0.4)), (0.65, _KNEE_10))),
    Scenario(
        "reader slows",
        (
            (0, Plant(read=Stage(1.2, 12.0, 0.1), network=Stage())),
            (0.33, Plant(read=Stage(0.4, 12.0, 0.1), network=Stage())),
        ),
    ),
    Scenario("arrivals", tuple((0.1 * step, _net(others=2 * step)) for step in range(9))),
)
NOISES = (0.05, 0.1, 0.2, 0.3)
RAMPS_S = (0.5, 1.0, 2.0, 4.0, 7.0, 10.0)


_KNOBS = {
    "reader seeks, network 40": Plant(Stage(6.0, 12.0, 0.3), Stage(0.25), Stage(1.0, 14.0, 0.0)),
    "network 30, writer seeks": Plant(Stage(1.0, 14.0, 0.0), Stage(10 / 30), Stage(6.0, 12.0, 0.3)),
    "reader 20, network 4": Plant(Stage(0.5, 10.0, 0.1), Stage(2.5, 10.0, 0.3), WIDE),
    "all at 10": Plant(Stage(1.0, 11.0, 0.1), Stage(), Stage(1.0, 11.0, 0.1)),
}
KNOBS = (
    *(Scenario(name, ((0, plant),)) for name, plant in _KNOBS.items()),
    Scenario("writers slow down", (
        (0, Plant(WIDE, Stage(), Stage(1.2, 14.0, 0.1))),
        (0.33, Plant(WIDE, Stage(), Stage(0.3, 14.0, 0.1))),
    )),
)  # fmt: skip
"""Stages whose best counts differ, but for the fourth."""


def best_counts(plant: Plant, most: int = MOST) -> tuple[int, int, int]:
    """The smallest count of each stage that gets the most through it."""
    found = []
    for stage in (plant.read, plant.network, plant.write):
        rates = [stage.rate(n) for n in range(1, most + 1)]
        found.append(next(n for n, one in enumerate(rates, 1) if one >= 0.999 * max(rates)))
    return found[0], found[1], found[2]
