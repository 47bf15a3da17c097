"""Campaigns without a network: a validator, a measuring function, and a driver that can be cut."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from farline.campaign.machine import Cell, Machine, Outcome, Run, RunEnded, Stop, Wait, Waited
from farline.campaign.plan import Plan, plan_from_document
from farline.campaign.settings import Campaign, make_campaign
from farline.errors import SpecError
from farline.store import Store
from farline.store.entry import RunBundle
from tests.support.records import make_record, make_samples, make_spec

OutcomeOf = Callable[[Cell], Outcome]


def validate(spec: dict[str, Any]) -> dict[str, Any]:
    """Resolves as the real validator does, and refuses one combination."""
    if spec.get("streams") == 13:
        raise SpecError("streams: 13 is out of luck")
    return make_spec(**spec)


def make_plan(**campaign: Any) -> Plan:
    """Three streams times two congestion controls."""
    grid = {"streams": [1, 2, 4], "tcp": {"congestion_control": ["reno", "bbr"]}}
    fixed = {"duration_s": 0.5}
    return plan_from_document({"campaign": {"seed": 7, **campaign}, "fixed": fixed, "grid": grid})


def make(plan: Plan | None = None) -> Campaign:
    """A campaign of `plan`."""
    return make_campaign(plan or make_plan(), validate)


def noisy_bps(cell: Cell, spread: float = 0.02) -> float:
    """A throughput that depends on nothing but the place in the campaign."""
    digest = hashlib.blake2b(repr((cell.setting, cell.block, cell.slot)).encode(), digest_size=8)
    unit = int.from_bytes(digest.digest()) / 2**64
    return float(1e9 * (1 + spread * (2 * unit - 1)))


def noisy(spread: float) -> OutcomeOf:
    """Complete runs whose throughput is spread by this share."""
    return lambda cell: Outcome(
        "complete", total_bps=noisy_bps(cell, spread), session_s=0.51, run_s=0.5
    )


steady = noisy(0.02)


def failing(kind: str) -> OutcomeOf:
    """Every run fails with `kind`."""
    return lambda _cell: Outcome("failed", error_kind=kind, error=f"it was {kind}")


def drive(
    machine: Machine, outcome_of: OutcomeOf = steady, limit: int = 100_000
) -> tuple[list[Cell], Stop | None]:
    """Does instructions until the machine stops or `limit` runs are done."""
    cells: list[Cell] = []
    while len(cells) < limit:
        step = machine.instruction()
        if isinstance(step, Stop):
            return cells, step
        if isinstance(step, Wait):
            machine.handle(Waited())
        if isinstance(step, Run):
            cells.append(step.cell)
            machine.handle(RunEnded(step.cell, outcome_of(step.cell)))
    return cells, None


class FakeMeasure:
    """Measures nothing: keeps a record for the place that the labels name."""

    def __init__(
        self,
        store: Store,
        campaign: str,
        outcome_of: OutcomeOf = steady,
        numbers: Iterable[int] | None = None,
    ) -> None:
        """Numbers runs by `numbers`, so that several processes' runs do not clash."""
        self.store, self.campaign, self.outcome_of = store, campaign, outcome_of
        self.numbers = iter(numbers if numbers is not None else itertools.count())
        self.cells: list[Cell] = []
        self.specs: list[Mapping[str, Any]] = []

    def __call__(
        self,
        spec: Mapping[str, Any],
        labels: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> Mapping[str, Any]:
        """Appends the record and returns it."""
        cell = Cell(**labels)
        self.cells.append(cell)
        self.specs.append(spec)
        outcome = self.outcome_of(cell)
        error = {"kind": outcome.error_kind, "message": outcome.error or ""}
        record = make_record(
            next(self.numbers),
            spec,
            bps=outcome.total_bps or 0.0,
            status=outcome.status,
            error=error if outcome.error_kind else None,
        )
        self.store.append(RunBundle(record, make_samples(2), campaign=self.campaign, labels=labels))
        return record
