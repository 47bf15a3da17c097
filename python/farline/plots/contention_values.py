"""What a fairness page shows, as plain values: measured and computed before, drawn here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farline.fairness.contest import Contest
from farline.findings.contention import ContentionVerdict


@dataclass(frozen=True, slots=True)
class Asserted:
    """An expectation of the plan in words, what was measured, and whether it holds."""

    text: str
    measured: str
    holds: bool


@dataclass(frozen=True, slots=True)
class ContentionData:
    """One measurement. Contests, verdicts and names go by the name of the transfer.

    `flows` are the flows of each transfer, `background_flows` those it meets; `kind` says what the
    rates are: on the wire of a router, or payload at the receivers.
    """

    title: str
    made: str
    facts: str
    contests: Mapping[str, Contest]
    verdicts: Mapping[str, ContentionVerdict]
    names: Mapping[str, str]
    background: str
    flows: Mapping[str, int]
    background_flows: int
    reference: str | None
    capacity_bps: float
    kind: str
    confidence: float
    asserted: Sequence[Asserted]
    invalid: int
    plan_text: str
    command: str
    version: str
