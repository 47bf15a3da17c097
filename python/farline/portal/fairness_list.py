"""The fairness measurements of the store, each in a line: REST and the page Fairness show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.errors import FarlineError
from farline.portal.knowledge import Knowledge

if TYPE_CHECKING:
    from farline.campaign.contention.outcome import Outcome
    from farline.store import Store

MOST_LISTED = 50
"""Newest measurements that the list has."""


@dataclass(frozen=True)
class Listed:
    """A line of the list: what was measured, and the verdict on each transfer."""

    name: str
    began: str
    """RFC 3339 in UTC; empty for one that cannot be read."""
    target: str
    state: str
    verdicts: Sequence[str]


def fairness_list(knowledge: Knowledge) -> Sequence[Listed]:
    """The newest measurements, the newest first.

    Raises:
        NotYetError: while they are being worked out.
    """
    return knowledge.remembered("fairness", lambda: _listed(knowledge.store()))


def outcome_at(store: Store, name: str) -> Outcome:
    """What a measurement came to so far; trials that are missing are left out.

    Raises:
        UsageError: when there is none of that name.
    """
    from farline.campaign.contention.journal import read_journal
    from farline.campaign.contention.outcome import outcome_so_far

    return outcome_so_far(store, read_journal(store, name))


def _listed(store: Store | None) -> Sequence[Listed]:
    from farline.campaign.contention.names import journal_names

    names = [] if store is None else journal_names(store)[:MOST_LISTED]
    return [_row(store, name) for name in names if store is not None]


def _row(store: Store, name: str) -> Listed:
    """One that cannot be read says so in its line, and the others are listed."""
    try:
        found = outcome_at(store, name)
    except FarlineError as error:
        return Listed(name, "", "", f"cannot be read: {error.message}", ())
    verdicts = [f"{found.names[key]}: {one.line}" for key, one in found.verdicts.items()]
    journal = found.journal
    state = "measured" if verdicts else "no whole repetition yet"
    return Listed(name, journal.created_at, journal.target, state, verdicts)
