"""Fairness plans of the editor: read by farline's own reader, counted, and judged for this service.

The rule is that of campaigns (`plan_check`): what starts here runs on an emulated line from a
preset, by farline itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.errors import SpecError
from farline.portal.plan_check import FILES, read_document, refused_testbed, too_long

if TYPE_CHECKING:
    from farline.campaign.contention.plan import ContentionPlan

MOST_TRIALS = 2_000
"""Trials of a plan that is checked here."""


@dataclass(frozen=True)
class CheckedFairnessPlan:
    """What a plan comes to. `refusal` says why it cannot be started here."""

    name: str
    varies: Mapping[str, Sequence[str]]
    """Both sides in words, and the loads."""
    transfers: int
    trials: int
    duration_s: float
    refusal: str | None

    @property
    def counts(self) -> Sequence[tuple[int, int, str]]:
        """Of what there is how much, at least and at most."""
        transfers, trials = self.transfers, self.trials
        return ((transfers, transfers, "transfer"), (trials, trials, "trial"))

    @property
    def seconds(self) -> tuple[float, float]:
        """How long it takes, at least and at most."""
        return self.duration_s, self.duration_s

    @property
    def shown(self) -> Sequence[str]:
        """Nothing: the order of trials is drawn when it begins."""
        return ()


def check_fairness_plan(text: str) -> CheckedFairnessPlan:
    """Reads a plan of `farline fairness`, and foresees what it takes.

    Raises:
        SpecError: for what is not TOML, unknown or not allowed; the line says where.
        UsageError: for hosts that the emulated network has not.
    """
    from farline.campaign.contention.plan import plan_from_document

    plan = plan_from_document(read_document(text))
    refusal = _refusal(plan)
    loads = _loads(plan, is_here=refusal is None)
    trials = plan.repetitions * (len(plan.subjects) * (1 + len(loads)) + len(loads))
    if trials > MOST_TRIALS:
        raise SpecError(f"the plan has {trials} trials; allowed here: up to {MOST_TRIALS}")
    lasts_s = _duration_s(plan, len(loads))
    return CheckedFairnessPlan(
        plan.name, _sides(plan, loads), len(plan.subjects), trials, lasts_s,
        refusal or too_long(lasts_s),
    )  # fmt: skip


def _loads(plan: ContentionPlan, *, is_here: bool) -> Sequence[str]:
    """The loads in words; as rates where the line is known, which is checked then."""
    from farline.api.contention import capacity_of_plan, check_line
    from farline.campaign.contention.plan import LOADS, expanded
    from farline.spec.units import rate_human

    if not is_here:
        return plan.loads or expanded(LOADS)
    check_line(plan, None)
    return [rate_human(rate) for rate in plan.load_rates(capacity_of_plan(plan, None))]


def _duration_s(plan: ContentionPlan, loads: int) -> float:
    from farline.campaign.contention.job import OVERHEAD_S
    from farline.campaign.contention.order import duration_s, places

    return duration_s(plan, places(plan, [float(one) for one in range(loads)], 0), OVERHEAD_S)


def _sides(plan: ContentionPlan, loads: Sequence[str]) -> Mapping[str, Sequence[str]]:
    from farline.findings.contention import side_text

    named = {one.name: side_text(one.tool, one.options) for one in plan.subjects}
    behind = side_text(plan.background.tool, plan.background.options)
    transfers = [
        f"{text} (reference)" if name == plan.reference else text for name, text in named.items()
    ]
    return {"Transfers": transfers, "Background": [behind], "Loads": loads}


def _refusal(plan: ContentionPlan) -> str | None:
    """What of a plan is for people with a shell on this host."""
    from farline.campaign.contention.plan import NATIVE

    if plan.network is None:
        return "it has no table [path], so it needs a host: run it with the command below"
    for side in (plan.background, *plan.subjects):
        names = [name for name in side.options if name in FILES]
        if side.tool != NATIVE or names:
            return (
                f"[{side.name}] {names[0] if names else 'tool'}: programs and files of this host"
                " are not for plans that start here"
            )
    return refused_testbed(plan.network.testbed)
