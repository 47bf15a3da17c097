"""What a campaign came to: one row per setting, and whether the reference drifted.

Values from a machine; nothing is read or printed here. Means are over runs. The ratio compares each
run with the reference runs of its own block, so what drifts over hours drops out (geometric mean).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from farline.campaign.machine import Machine, Outcome, State, Tally
from farline.campaign.rules import half_width, mean
from farline.campaign.settings import Setting
from farline.profiles.rate_interval import rate_interval, worth_saying

DRIFT_P = 0.05
FEWEST_FOR_DRIFT = 5


@dataclass(frozen=True, slots=True)
class SettingResult:
    """One row of the control-response table. None is "not known"."""

    setting: str
    varied: Mapping[str, Any]
    runs: int
    failed: int
    invalid: int
    state: State
    mean_bps: float | None
    half_width_bps: float | None
    """Half of Student's interval, by which the campaign decides whether it knows enough."""
    low_bps: float | None
    high_bps: float | None
    """Ends of the interval that the rate can have; None of one run, and where nothing is known."""
    ratio_to_reference: float | None
    retransmits: float | None
    lost_packets: float | None
    cpu_s_per_gb: float | None
    verdict_limit: str | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Drift:
    """How the reference changed from its first run to its last, by a straight line through all."""

    relative_change: float
    p_value: float

    @property
    def significant(self) -> bool:
        """Whether chance alone would hardly do that."""
        return self.p_value < DRIFT_P


def setting_results(machine: Machine) -> list[SettingResult]:
    """One row per setting, in the order of the plan."""
    return [
        _result(machine, setting, machine.tallies[setting.key])
        for setting in machine.campaign.settings
    ]


def reference_result(machine: Machine) -> SettingResult | None:
    """The row of the reference runs, or None without a reference."""
    reference = machine.campaign.reference
    return None if reference is None else _result(machine, reference, machine.reference)


def reference_drift(machine: Machine) -> Drift | None:
    """Drift of the reference; None with too few runs to say."""
    values = machine.reference.values
    if len(values) < FEWEST_FOR_DRIFT or len(set(values)) == 1:
        return None
    from scipy.stats import linregress

    line = linregress(range(len(values)), values)
    change = float(line.slope) * (len(values) - 1) / mean(values)
    return Drift(change, float(line.pvalue))


def results_document(machine: Machine) -> dict[str, Any]:
    """Everything above as JSON has it."""
    reference, drift = reference_result(machine), reference_drift(machine)
    return {
        "settings": [asdict(row) for row in setting_results(machine)],
        "reference": asdict(reference) if reference else None,
        "reference_drift": asdict(drift) if drift else None,
    }


def _result(machine: Machine, setting: Setting, tally: Tally) -> SettingResult:
    outcomes = _outcomes(machine, setting, tally)
    values = [outcome.total_bps for outcome in outcomes if outcome.total_bps is not None]
    half = half_width(values, machine.rules.confidence)
    known = worth_saying(rate_interval(mean(values), half)) if half is not None else None
    limits = Counter(o.verdict_limit for o in outcomes if o.verdict_limit)
    return SettingResult(
        setting=setting.key,
        varied=dict(setting.varied),
        runs=len(values),
        failed=tally.failed,
        invalid=tally.invalid,
        state=tally.state,
        mean_bps=mean(values) if values else None,
        half_width_bps=half,
        low_bps=known[0] if known else None,
        high_bps=known[1] if known else None,
        ratio_to_reference=_ratio(machine, tally),
        retransmits=_mean(outcome.retransmits for outcome in outcomes),
        lost_packets=_mean(outcome.lost_packets for outcome in outcomes),
        cpu_s_per_gb=_mean(outcome.cpu_s_per_gb for outcome in outcomes),
        verdict_limit=limits.most_common(1)[0][0] if limits else None,
        last_error=tally.last_error,
    )


def _outcomes(machine: Machine, setting: Setting, tally: Tally) -> list[Outcome]:
    """Runs of a setting; the reference runs are among them where the reference is that setting."""
    reference = machine.campaign.reference
    if tally is machine.reference or reference is None or reference.key != setting.key:
        return tally.outcomes
    return tally.outcomes + machine.reference.outcomes


def _mean(figures: Iterable[float | None]) -> float | None:
    known = [float(figure) for figure in figures if figure is not None]
    return mean(known) if known else None


def _ratio(machine: Machine, tally: Tally) -> float | None:
    if tally is machine.reference:
        return None
    per_block = _by_block(machine.reference)
    pairs = [
        (value, mean(per_block[block]))
        for block, values in _by_block(tally).items()
        if block in per_block
        for value in values
    ]
    logs = [math.log(value / other) for value, other in pairs if value > 0 and other > 0]
    return math.exp(mean(logs)) if logs else None


def _by_block(tally: Tally) -> dict[int, list[float]]:
    blocks: dict[int, list[float]] = {}
    measured: Iterable[tuple[int, Outcome]] = zip(tally.blocks, tally.outcomes, strict=True)
    for block, outcome in measured:
        if outcome.total_bps is not None:
            blocks.setdefault(block, []).append(outcome.total_bps)
    return blocks
