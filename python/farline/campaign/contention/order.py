"""The trials of a measurement, in an order that favours nobody."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from farline.campaign.contention.plan import ContentionPlan
from farline.campaign.settings import run_seed


@dataclass(frozen=True)
class Place:
    """One trial: `subject` is None for the background alone, `load_bps` for a transfer alone."""

    repetition: int
    subject: str | None
    load_bps: float | None

    @property
    def sides(self) -> int:
        """How many run."""
        return (self.subject is not None) + (self.load_bps is not None)


def places(plan: ContentionPlan, loads_bps: Sequence[float], seed: int) -> Iterator[Place]:
    """Every trial: in each repetition all transfers alone, each load alone, and all together.

    The order within a repetition is drawn, so that a drift of the machine meets all alike.
    """
    names = [subject.name for subject in plan.subjects]
    for repetition in range(plan.repetitions):
        block = [
            *(Place(repetition, name, None) for name in names),
            *(Place(repetition, None, load) for load in loads_bps),
            *(Place(repetition, name, load) for load in loads_bps for name in names),
        ]
        random.Random(run_seed(seed, "contention", repetition)).shuffle(block)
        yield from block


def duration_s(plan: ContentionPlan, wanted: Iterable[Place], overhead_s: float) -> float:
    """Seconds that trials take, `overhead_s` for setting up and ending each."""
    total = 0.0
    for place in wanted:
        lead = 0.0 if place.load_bps is None else plan.lead_s
        total += lead + plan.duration_s + overhead_s
    return total
