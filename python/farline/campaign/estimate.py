"""How long a campaign will take: from what was measured, and from the plan where nothing was.

Pure: figures of a machine in, seconds out. Before the first run only the durations in the specs are
known, and a run's own cost besides is taken as `SETUP_S`; later it is the mean of what runs really
took. How many runs are left follows from the spread seen so far, setting by setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from farline.campaign.machine import Machine, Tally
from farline.campaign.rules import runs_needed
from farline.campaign.settings import Campaign, Setting

SETUP_S = 0.05
"""Assumed cost of a run besides its duration, until one has been measured."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Runs and seconds; seconds are None where a run ends by bytes and none was measured yet."""

    runs: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """Before the first run: from the fewest repetitions allowed to the most."""

    least: Estimate
    most: Estimate


def forecast(campaign: Campaign) -> Forecast:
    """What a campaign costs at its shortest and at its longest."""
    rules = campaign.plan.rules
    return Forecast(
        _estimate(Machine(campaign), lambda _tally: rules.min_repetitions, 0.0),
        _estimate(Machine(campaign), lambda _tally: rules.max_repetitions, 0.0),
    )


def remaining(machine: Machine, between_s: float = 0.0) -> Estimate:
    """What is left, as it looks now. `between_s` is the mean time between two runs so far."""
    return _estimate(machine, lambda tally: runs_needed(tally.values, machine.rules), between_s)


def _estimate(machine: Machine, needed: Callable[[Tally], int], between_s: float) -> Estimate:
    blocks_left = machine.rules.max_repetitions - machine.block - 1
    queued = [cell.setting for cell in machine.queued if not cell.reference]
    references = sum(cell.reference for cell in machine.queued)
    counts = {key: queued.count(key) for key in machine.tallies}
    for key in machine.open_settings:
        tally = machine.tallies[key]
        later = needed(tally) - len(tally.values) - counts[key]
        counts[key] += min(max(later, 0), blocks_left)
    in_blocks = {key: counts[key] - queued.count(key) for key in counts}
    references += _references(machine.campaign, list(in_blocks.values()))
    seconds = [_cost_s(machine, key, between_s) for key in counts]
    runs = sum(counts.values()) + references
    reference_s = _reference_cost_s(machine, between_s)
    if any(cost is None for cost in [*seconds, reference_s]):
        return Estimate(runs, None)
    per_setting = zip(counts.values(), seconds, strict=True)
    total = sum(count * (cost or 0.0) for count, cost in per_setting)
    return Estimate(runs, total + references * (reference_s or 0.0))


def _references(campaign: Campaign, counts: list[int]) -> int:
    """Reference runs in the blocks to come, when each setting is in so many of them."""
    if campaign.reference is None:
        return 0
    open_in_block = (sum(count > block for count in counts) for block in range(max(counts)))
    return sum(math.ceil(count / campaign.plan.reference_every) for count in open_in_block)


def _reference_cost_s(machine: Machine, between_s: float) -> float | None:
    reference = machine.campaign.reference
    if reference is None:
        return 0.0
    return _run_cost_s(machine, reference, machine.reference, between_s)


def _cost_s(machine: Machine, key: str, between_s: float) -> float | None:
    return _run_cost_s(machine, machine.campaign.setting(key), machine.tallies[key], between_s)


def _run_cost_s(machine: Machine, setting: Setting, tally: Tally, between_s: float) -> float | None:
    besides = between_s + machine.campaign.plan.pause_s
    if tally.outcomes:
        return sum(o.session_s for o in tally.outcomes) / len(tally.outcomes) + besides
    duration_s = setting.spec.get("duration_s")
    if duration_s is None:
        return None
    return float(duration_s) + _setup_s(machine) + besides


def _setup_s(machine: Machine) -> float:
    """Mean of what runs of a given duration took beyond it."""
    extra = [
        outcome.session_s - float(spec["duration_s"])
        for spec, outcomes in _measured(machine)
        if spec.get("duration_s") is not None
        for outcome in outcomes
    ]
    return max(0.0, sum(extra) / len(extra)) if extra else SETUP_S


def _measured(machine: Machine) -> list[tuple[Mapping[str, Any], list[Any]]]:
    return [
        (setting.spec, machine.tallies[setting.key].outcomes)
        for setting in machine.campaign.settings
    ]
