"""How a campaign ended that did not end well: whose fault, and one line."""

from __future__ import annotations

from dataclasses import dataclass

from farline.campaign.machine import INVALID_KIND, NO_REASON, Machine, Stop
from farline.campaign.results import setting_results
from farline.campaign.setting_text import setting_text
from farline.errors import KINDS, InternalError, InterruptedRun


@dataclass(frozen=True)
class BadEnd:
    """A kind of error, its exit code, and what was wrong."""

    code: int
    kind: str
    line: str
    may_resume: bool = False
    """Whether there is something left to do."""


def bad_end(machine: Machine, stop: Stop) -> BadEnd | None:
    """How the campaign ended; None where all its settings have figures."""
    if stop.reason == "interrupted":
        return BadEnd(InterruptedRun.exit_code, InterruptedRun.kind, stop.line, may_resume=True)
    if stop.reason == "aborted":
        return _of_kind(stop.error_kind, stop.line, may_resume=True)
    tallies = machine.tallies.values()
    if any(tally.values for tally in tallies):
        return _incomplete(machine)
    failed = [tally for tally in tallies if tally.last_error]
    if failed:
        return _of_kind(failed[0].last_error_kind, f"no run succeeded: {failed[0].last_error}")
    invalid = [tally for tally in tallies if tally.invalid]
    if invalid:
        reasons = [tally.not_valid for tally in invalid if tally.not_valid]
        why = reasons[-1] if reasons else NO_REASON
        return _of_kind(INVALID_KIND, f"no run was valid: {why}")
    return None


def _incomplete(machine: Machine) -> BadEnd | None:
    """Of a campaign that has figures: which settings have none, and why the first has not."""
    rows = setting_results(machine)
    empty = [row for row in rows if not row.runs]
    if not empty:
        return None
    first = next((row for row in empty if row.last_error), empty[0])
    tally = machine.tallies[first.setting]
    kind = tally.last_error_kind if first.last_error else INVALID_KIND
    why = first.last_error or tally.not_valid or NO_REASON
    have = "has" if len(empty) == 1 else "have"
    count = f"{len(empty)} of {len(rows)} settings {have} no valid run"
    return _of_kind(kind, f"{count}: {setting_text(first.varied)}: {why}")


def _of_kind(kind: str | None, line: str, may_resume: bool = False) -> BadEnd:
    known = KINDS.get(kind or "", InternalError)
    return BadEnd(known.exit_code, known.kind, line, may_resume)
