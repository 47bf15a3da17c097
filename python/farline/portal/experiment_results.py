"""What an experiment came to so far, read from its store: a bar for each setting or side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farline.errors import UsageError
from farline.store import Store
from farline.store.layout import Layout


@dataclass(frozen=True)
class Bar:
    """A measured rate in bits per second, with its interval where runs were repeated."""

    label: str
    mean_bps: float
    low_bps: float | None = None
    high_bps: float | None = None
    runs: int = 1


def bars_of(path: Path) -> Sequence[Bar]:
    """The bars of the newest measurement in a store, in the order of its plan.

    Settings that have no run yet are left out; a store that is not there yet has no bars.

    Raises:
        SystemFailure: when the store cannot be read.
    """
    from farline.campaign.contention.names import journal_names

    if not Layout(path).use_lock.exists():
        return ()
    store = Store(path, create=False)
    return _sides(store) if journal_names(store) else _settings(store)


def _settings(store: Store) -> Sequence[Bar]:
    """Settings of a campaign."""
    from farline.campaign.journal import read_journal
    from farline.campaign.replay import done_in_store, replay
    from farline.campaign.results import setting_results
    from farline.campaign.setting_text import value_text

    try:
        newest = store.campaigns().to_pylist()
        journal = read_journal(store, newest[0]["campaign"]) if newest else None
    except UsageError:
        journal = None
    if journal is None:
        return ()
    machine = replay(journal.campaign, done_in_store(store, journal.campaign.id))
    factors = journal.campaign.plan.factors
    return [
        Bar(
            ", ".join(value_text(name, one) for name, one in row.varied.items() if name in factors),
            row.mean_bps, row.low_bps, row.high_bps, row.runs,
        )
        for row in setting_results(machine)
        if row.mean_bps is not None
    ]  # fmt: skip


def _sides(store: Store) -> Sequence[Bar]:
    """Both sides of a fairness measurement at its largest load, for each transfer."""
    from farline.campaign.contention.journal import LAST, read_journal
    from farline.campaign.contention.outcome import outcome_so_far

    journal = read_journal(store, LAST)
    found = outcome_so_far(store, journal)
    bars = []
    for name, contest in found.contests.items():
        flows = journal.plan.subject(name).streams
        words = "1 stream" if flows == 1 else f"{flows} streams"
        for label, side in ((f"you, {words}", "subject_bps"),
                            (f"other, beside {words}", "background_bps")):  # fmt: skip
            one = contest.full.measures[side]
            bars.append(Bar(label, one.mean, one.low, one.high, len(one.values)))
    return bars
