"""Whatever interrupts a campaign, and how often: the runs are the same as without it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.campaign.journal import (
    campaign_lock,
    last_unfinished,
    new_journal,
    read_journal,
    write_journal,
)
from farline.campaign.machine import Cell, Machine, Outcome, Stop
from farline.campaign.replay import done_in_store, replay
from farline.campaign.settings import Campaign
from farline.campaign.shell import Progress, Shell
from farline.errors import SpecError, SystemFailure, UsageError, VersionError
from farline.store import Store
from tests.support.draws import draws
from tests.support.driving import FakeMeasure, drive, failing, make, make_plan, noisy, steady

JOURNALS = sorted((Path(__file__).parents[2] / "data" / "campaign").glob("v*.json"))
"""As a version wrote them: version 5 is of farline 0.2.0."""


def troubled(cell: Cell) -> Outcome:
    """Fails now and then, by the place alone: sometimes for good, sometimes for one attempt."""
    number = int(cell.setting, 16) + 7 * cell.block + 3 * cell.slot
    if number % 11 == 0:
        return failing("busy")(cell)
    if number % 5 == 0 and cell.attempt % 3 == 0:
        return failing("timeout")(cell)
    return noisy(0.2)(cell)


@given(
    cuts=st.lists(st.integers(0, 40), max_size=6),
    outcome=st.sampled_from([steady, noisy(0.3), troubled]),
    seed=st.integers(0, 1000),
)
@draws(60)
def test_any_interruptions_lead_to_the_same_runs(
    cuts: list[int], outcome: Callable[[Cell], Outcome], seed: int
) -> None:
    campaign = make(make_plan(seed=seed, max_repetitions=8))
    whole, end = drive(Machine(campaign), outcome)
    done: dict[Cell, Outcome] = {}
    order: list[Cell] = []
    for cut in [*cuts, 100_000]:
        cells, stop = drive(replay(campaign, done), outcome, limit=cut)
        order += cells
        done.update({cell: outcome(cell) for cell in cells})
    assert stop is not None and end is not None
    assert (order, stop) == (whole, end)


def test_giving_up_and_resuming_again_and_again() -> None:
    """The server is away for two whole resumptions; the third finds it, and nothing is missing."""
    campaign = make(make_plan(repetitions=3))
    done: dict[Cell, Outcome] = {}
    for outcome in (failing("unreachable"), failing("unreachable"), steady):
        cells, _ = drive(replay(campaign, done), outcome)
        assert not set(cells) & set(done)
        done.update({cell: outcome(cell) for cell in cells})
    machine = replay(campaign, done)
    assert isinstance(machine.instruction(), Stop)
    assert all((len(t.values), t.failed) == (3, 0) for t in machine.tallies.values())


def test_runs_of_another_plan_are_not_taken() -> None:
    campaign = make(make_plan(repetitions=1))
    strange = {Cell("0" * 12, 0): Outcome("complete", total_bps=1.0)}
    with pytest.raises(SpecError, match="1 run in the store not of its plan"):
        replay(campaign, strange)


def run(
    campaign: Campaign, store: Store, numbers: itertools.count[int], stop_after: int = 10**6
) -> tuple[Stop, FakeMeasure, list[Progress]]:
    """One process's share of a campaign: it is told to stop once it has done so many runs."""
    machine = replay(campaign, done_in_store(store, campaign.id))
    measure = FakeMeasure(store, campaign.id, noisy(0.1), numbers)
    shown: list[Progress] = []
    # A clock that stands still: every estimate is made anew.
    shell = Shell(
        machine, measure, shown.append, lambda: len(measure.cells) >= stop_after, lambda: 0.0
    )
    return shell.run(), measure, shown


def test_the_store_is_enough_to_go_on(tmp_path: Path) -> None:
    campaign = make(make_plan(max_repetitions=8))
    store, numbers = Store(tmp_path), itertools.count()
    whole, _ = drive(Machine(campaign), noisy(0.1))
    cells: list[Cell] = []
    for stop_after in (5, 1, 20, 10**6):
        stop, measure, _ = run(campaign, store, numbers, stop_after)
        cells += measure.cells
        store.compact()
    assert stop.reason == "finished"
    assert cells == whole
    assert len(store.runs()) == len(whole)


def test_a_partial_run_in_the_store_is_done_again(tmp_path: Path) -> None:
    campaign = make(make_plan(repetitions=1))
    store, numbers = Store(tmp_path), itertools.count()
    _, measure, _ = run(campaign, store, numbers, 2)
    machine = replay(campaign, done_in_store(store, campaign.id))
    cut = FakeMeasure(store, campaign.id, lambda _cell: Outcome("partial", total_bps=1e9), numbers)
    stop = Shell(machine, cut, lambda _progress: None, lambda: False).run()
    assert stop.reason == "interrupted"
    stop, rest, _ = run(campaign, store, numbers)
    assert stop.reason == "finished"
    assert rest.cells[0] == cut.cells[0]
    assert measure.cells + rest.cells == drive(Machine(campaign))[0]


def test_progress_ends_at_nothing_left(tmp_path: Path) -> None:
    campaign = make(make_plan(repetitions=2))
    _, measure, shown = run(campaign, Store(tmp_path), itertools.count())
    ended = [progress for progress in shown if progress.last is not None]
    assert [progress.done_runs for progress in ended] == list(range(1, 15))
    assert ended[-1].left.runs == 0
    assert all(p.done_runs + p.left.runs == 14 for p in ended)
    assert len(measure.cells) == 14


def test_waits_and_pauses_are_cut_short_by_an_interruption(tmp_path: Path) -> None:
    campaign = make(make_plan(repetitions=1, pause_s=50))
    store = Store(tmp_path)
    now, asked = [0.0], [False]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        asked[0] = now[0] >= 0.4

    measure = FakeMeasure(store, campaign.id)
    shell = Shell(
        Machine(campaign), measure, lambda _p: None, lambda: asked[0], lambda: now[0], sleep
    )
    assert shell.run().reason == "interrupted"
    assert now[0] < 1
    assert len(measure.cells) == 1


def test_the_journal_keeps_all_that_a_resumption_needs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    campaign = make(make_plan(reference={"streams": 8}))
    journal = new_journal(campaign, "192.0.2.7:5470")
    write_journal(store, journal)
    assert read_journal(store, campaign.id) == journal
    assert last_unfinished(store) == journal
    later = replace(make(), id="later-1")
    write_journal(store, new_journal(later, "192.0.2.8:5470"), finished=True)
    assert last_unfinished(store) == journal
    write_journal(store, journal, finished=True)
    with pytest.raises(UsageError, match="no unfinished campaign"):
        last_unfinished(store)


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: path.stem)
def test_a_campaign_of_an_earlier_version_goes_on_with_the_same_settings(
    path: Path, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    written = json.loads(path.read_text(encoding="utf-8"))
    (store.layout.campaigns / f"{written['id']}.json").write_bytes(path.read_bytes())
    journal = last_unfinished(store)
    again = {setting.key for setting in make(make_plan(reference={"streams": 8})).settings}
    assert [setting.key for setting in journal.campaign.settings] == [
        setting["key"] for setting in written["settings"]
    ]
    assert {setting.key for setting in journal.campaign.settings} == again, (
        "runs of the campaign would not be found as its own"
    )
    assert journal.target == written["target"] and journal.campaign.seed == written["seed"]
    _, end = drive(Machine(journal.campaign), steady)
    assert end is not None
    write_journal(store, journal)
    assert read_journal(store, journal.campaign.id) == journal


def test_journals_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(UsageError, match=r"no campaign 'x' .*the store has none"):
        read_journal(store, "x")
    path = store.layout.campaigns / "x.json"
    path.write_text("{")
    with pytest.raises(SystemFailure, match="damaged"):
        read_journal(store, "x")
    path.write_text('{"version": 99}')
    with pytest.raises(VersionError, match="newer version of farline"):
        read_journal(store, "x")


def test_a_campaign_is_run_by_one_process_at_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    refusal = pytest.raises(UsageError, match="being run by another process")
    with campaign_lock(store, "x"), campaign_lock(store, "y"), refusal, campaign_lock(store, "x"):
        pytest.fail("two had it")
    with campaign_lock(store, "x"):
        pass
