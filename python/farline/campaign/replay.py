"""Back to where a campaign was: the machine's questions, answered from the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from farline.campaign.machine import (
    Cell,
    Machine,
    Outcome,
    Resumed,
    Run,
    RunEnded,
    Wait,
    Waited,
)
from farline.campaign.outcome import cell_of_row, outcome_of_row
from farline.campaign.settings import Campaign
from farline.errors import SpecError
from farline.spec.units import counted

if TYPE_CHECKING:
    from farline.store import Store


def replay(campaign: Campaign, done: Mapping[Cell, Outcome]) -> Machine:
    """A machine that has seen what was done; its next instruction is the first thing that was not.

    Where the campaign had given up, it is told to go on: asking to resume means that.

    Raises:
        SpecError: when `done` holds runs that this campaign would never have asked for.
    """
    machine = Machine(campaign)
    left = dict(done)
    while True:
        step = machine.instruction()
        if isinstance(step, Run):
            outcome = left.pop(step.cell, None)
            if outcome is None:
                break
            machine.handle(RunEnded(step.cell, outcome))
        elif isinstance(step, Wait):
            machine.handle(Waited())
        elif step.reason == "finished":
            break
        else:
            machine.handle(Resumed())
    if left:
        foreign = counted(len(left), "run")
        raise SpecError(
            f"campaign {campaign.id}: {foreign} in the store not of its plan, so it cannot be "
            "resumed"
        )
    return machine


def done_in_store(store: Store, campaign_id: str) -> dict[Cell, Outcome]:
    """What the store has of a campaign. Runs stopped half-way do not count as done."""
    with store.read() as reader:
        rows = reader.campaign_runs(campaign_id).to_pylist()
    return done_in_rows(rows)


def done_in_rows(rows: Iterable[Mapping[str, Any]]) -> dict[Cell, Outcome]:
    """Outcome of every place in the campaign that is settled."""
    outcomes = ((cell_of_row(row), outcome_of_row(row)) for row in rows)
    return {cell: outcome for cell, outcome in outcomes if not outcome.stopped}
