"""What a measurement came to: contests, what was asserted, what could not be measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.campaign.contention.expected import Expectation, expectations
from farline.campaign.contention.journal import ContentionJournal
from farline.campaign.contention.trials import Read, kept_in_store, read_trials
from farline.fairness.contest import BACKGROUND, SUBJECT, Contest, contests
from farline.findings.contention import ContentionVerdict, contention_verdict, side_text

if TYPE_CHECKING:
    from farline.store import Store


@dataclass(frozen=True)
class Outcome:
    """Contests by the name of the transfer, verdicts beside them, expectations of the plan."""

    journal: ContentionJournal
    contests: Mapping[str, Contest]
    verdicts: Mapping[str, ContentionVerdict]
    expectations: tuple[Expectation, ...]
    capacity_bps: float
    on_wire: bool
    """Whether rates are those of a router's counters; else payload that arrived."""
    trials: int
    invalid: int

    @property
    def failed(self) -> tuple[Expectation, ...]:
        """Expectations that do not hold."""
        return tuple(one for one in self.expectations if not one.holds)

    @property
    def names(self) -> Mapping[str, str]:
        """What the sides are called, by name: `TCP cubic, 4 streams`."""
        plan = self.journal.plan
        sides = (*plan.subjects, plan.background)
        return {one.name: side_text(one.tool, one.options) for one in sides}


def outcome_so_far(
    store: Store, journal: ContentionJournal, count_invalid: bool = False
) -> Outcome:
    """What the trials that a store has of a measurement come to; those missing are left out.

    With `count_invalid` trials count too whose emulated path was not accurate, whatever the plan
    says.
    """
    counted = count_invalid or journal.plan.count_invalid
    return outcome_of(journal, read_trials(kept_in_store(store, journal.name), counted))


def outcome_of(journal: ContentionJournal, read: Read) -> Outcome:
    """What trials come to; without a known line the most that any trial had is its rate."""
    plan = journal.plan
    capacity = read.capacity_bps or plan.capacity_bps or _most(read)
    rtts = _rtts(read)
    distances = dict.fromkeys(_names(read), rtts) if rtts else None
    made = {
        contest.subject: contest
        for contest in contests(read.trials, capacity, plan.confidence, distances)
    }
    found = {one.name: made[one.name] for one in plan.subjects if one.name in made}
    reference = found.get(plan.reference) if plan.reference else None
    verdicts = {
        name: contention_verdict(
            contest,
            (plan.subject(name).tool, plan.subject(name).options),
            (plan.background.tool, plan.background.options),
            None if reference is None or name == plan.reference else reference,
            _reference_text(plan.reference and plan.subject(plan.reference)),
        )
        for name, contest in found.items()
    }
    return Outcome(
        journal=journal,
        contests=found,
        verdicts=verdicts,
        expectations=tuple(expectations(plan.expect, found)),
        capacity_bps=capacity,
        on_wire=read.capacity_bps is not None,
        trials=len(read.trials),
        invalid=read.invalid,
    )


def _reference_text(reference: object) -> str:
    from farline.campaign.contention.plan import Contender

    if not isinstance(reference, Contender):
        return ""
    return side_text(reference.tool, reference.options)


def _most(read: Read) -> float:
    rates = [sum(seen.rate_bps for seen in trial.seen.values()) for trial in read.trials]
    return max(rates, default=0.0) or 1.0


def _names(read: Read) -> list[str]:
    return list(dict.fromkeys(t.subject for t in read.trials if t.subject is not None))


def _rtts(read: Read) -> tuple[float, float] | None:
    """Round-trip times of both sides, where they differ."""
    mine, theirs = read.rtts_s.get(SUBJECT), read.rtts_s.get(BACKGROUND)
    if not mine or not theirs or abs(mine - theirs) < 0.05 * mine:
        return None
    return mine, theirs
