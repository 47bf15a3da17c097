"""Trials: which run, in which order, what is kept of them, and how a measurement goes on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from farline.campaign.contention.job import ContentionJob, Progress, new_name, seeded
from farline.campaign.contention.journal import (
    ContentionJournal,
    journal_lock,
    new_journal,
    read_journal,
    write_journal,
)
from farline.campaign.contention.order import places
from farline.campaign.contention.outcome import Outcome, outcome_of
from farline.campaign.contention.plan import ContentionPlan, plan_from_document
from farline.campaign.contention.trials import kept_in_store, read_trials
from farline.errors import BusyError, InterruptedRun, SystemFailure, UsageError
from farline.store import RunFilter, Store
from farline.tools import Stop, never_stop
from tests.support.contending import FakeLine


def plan(**changes: Any) -> ContentionPlan:
    settings = {
        "loads": "20%,40%,50%,60%,80%,100%", "repetitions": 1, "duration_s": "6s", "omit_s": "1s",
        "lead_s": 0.2, "seed": 7, **changes.pop("fairness", {}),
    }  # fmt: skip
    return plan_from_document(
        {"fairness": settings, "subject": {"tcp": {}}, "path": {"rate_bps": "100Mbit"}, **changes}
    )


def begun(store: Store, wanted: ContentionPlan) -> ContentionJournal:
    journal = new_journal(new_name(wanted), seeded(wanted), "testbed dumbbell")
    write_journal(store, journal)
    return journal


def measured(
    store: Store, journal: ContentionJournal, line: FakeLine, seen: list[Progress] | None = None
) -> Outcome:
    told = [] if seen is None else seen
    return outcome_of(journal, ContentionJob(journal, line, store).run(told.append, never_stop))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_each_repetition_has_each_side_alone_and_both_together_in_an_order_of_its_own() -> None:
    wanted = plan(fairness={"repetitions": 3})
    found = list(places(wanted, (1.0, 2.0), 7))
    assert len(found) == 3 * (1 + 2 + 2)
    assert Counter(one.sides for one in found) == {1: 9, 2: 6}
    orders = [[(p.subject, p.load_bps) for p in found if p.repetition == r] for r in range(3)]
    assert sorted(orders[0], key=str) == sorted(orders[1], key=str)
    assert len({str(order) for order in orders}) > 1
    assert found == list(places(wanted, (1.0, 2.0), 7))


def test_an_ideal_line_gives_the_curve_of_the_paper(store: Store) -> None:
    expect = {
        "tcp": {
            "knee": {"at_least": 0.4, "at_most": 0.6},
            "utilisation": {"at_least": 0.95},
            "jain_demand": {"at_least": 0.99},
            "harm": {"at_most": 0.4},
        }
    }
    journal = begun(store, plan(expect=expect))
    outcome = measured(store, journal, FakeLine())
    (contest,) = outcome.contests.values()
    assert contest.knee is not None and contest.knee.load_bps == pytest.approx(50e6, rel=0.05)
    assert [one.name for one in outcome.failed] == ["harm"]
    assert outcome.on_wire and outcome.capacity_bps == 100e6
    assert outcome.verdicts["tcp"].level == "fair"


def test_both_sides_are_kept_as_runs_like_any_other(store: Store) -> None:
    journal = begun(store, plan(fairness={"loads": "50%"}))
    measured(store, journal, FakeLine())
    rows = store.runs(RunFilter(campaign=journal.name)).to_pylist()
    assert len(rows) == 4
    assert {row["path.rtt_s"] for row in rows} == {0.01}
    assert len(store.link_samples([rows[0]["run_id"]])) > 0
    again = outcome_of(journal, read_trials(kept_in_store(store, journal.name)))
    assert again.contests["tcp"].full.mean("harm") == pytest.approx(0.0)


def test_a_measurement_goes_on_where_it_was(store: Store) -> None:
    journal = begun(store, plan(fairness={"loads": "50%,100%"}))
    line = FakeLine()

    def after_two() -> Stop:
        return Stop.GRACEFULLY if len(line.ran) >= 2 else Stop.GO_ON

    with pytest.raises(InterruptedRun, match=f"--resume {journal.name}"):
        ContentionJob(journal, line, store).run(lambda _one: None, after_two)
    second = FakeLine()
    outcome = measured(store, read_journal(store, journal.name), second)
    assert len(line.ran) + len(second.ran) == 5
    assert len(outcome.contests["tcp"].points) == 2


def test_a_trial_that_was_not_valid_is_run_again_and_then_left_out(store: Store) -> None:
    journal = begun(store, plan(fairness={"loads": "50%"}))
    seen: list[Progress] = []
    line = FakeLine(invalid=1)
    outcome = measured(store, journal, line, seen)
    assert len(line.ran) == 4 and outcome.invalid == 1
    assert [one.problem for one in seen if one.problem] == ["not valid: 1 % of packets were late"]
    assert len(outcome.contests) == 1


def test_invalid_trials_count_where_the_plan_says_so(store: Store) -> None:
    journal = begun(store, plan(fairness={"loads": "50%", "count_invalid": True}))
    outcome = measured(store, journal, FakeLine(invalid=99))
    assert outcome.invalid == 0 and len(outcome.contests) == 1


def test_a_passing_failure_is_tried_again_and_a_lasting_one_ends_it(store: Store) -> None:
    busy = {"kind": "busy", "message": "no room"}
    journal = begun(store, plan(fairness={"loads": "50%"}))
    line = FakeLine(errors=[busy])
    assert len(measured(store, journal, line).contests) == 1
    assert len(line.ran) == 4
    with pytest.raises(BusyError, match="no room"):
        measured(store, begun(store, plan()), FakeLine(errors=[busy] * 4))
    lasting = {"kind": "system", "message": "disk full"}
    with pytest.raises(SystemFailure, match="disk full"):
        measured(store, begun(store, plan()), FakeLine(errors=[lasting, None]))


def test_a_background_that_is_not_harmed_by_a_yielding_transfer(store: Store) -> None:
    journal = begun(store, plan(fairness={"loads": "20%"}))
    (contest,) = measured(store, journal, FakeLine()).contests.values()
    assert contest.full.mean("harm") == pytest.approx(0.0)
    assert contest.full.mean("subject_bps") == pytest.approx(80e6)


def test_two_processes_do_not_run_one_measurement(store: Store) -> None:
    journal = begun(store, plan())
    with (
        journal_lock(store, journal.name),
        pytest.raises(UsageError, match="already being run"),
        journal_lock(store, journal.name),
    ):
        pass


def test_a_journal_is_found_by_its_full_name_its_short_one_or_as_the_last(store: Store) -> None:
    first = begun(store, plan(fairness={"name": "one"}))
    second = begun(store, plan(fairness={"name": "two"}))
    assert read_journal(store, "one").name == first.name
    assert read_journal(store, "last").name == second.name
    assert read_journal(store, first.name).plan == first.plan
    with pytest.raises(UsageError, match="no fairness measurement 'three'"):
        read_journal(store, "three")


def test_a_damaged_journal_is_said_to_be_damaged(store: Store) -> None:
    journal = begun(store, plan())
    path = store.layout.root / "contention" / f"{journal.name}.json"
    path.write_text('{"version": 1, "plan": 4}')
    with pytest.raises(SystemFailure, match="damaged"):
        read_journal(store, journal.name)


def test_sides_that_hardly_ran_together_run_again_with_a_longer_background(store: Store) -> None:
    """Records say when each side ran: on a busy machine one may start when the other ends."""
    journal = begun(store, plan(fairness={"loads": "50%", "count_invalid": True}))
    line = FakeLine(late_s=7.0)
    outcome = measured(store, journal, line)
    assert outcome.invalid == 1 and len(outcome.contests) == 1
    lengths = [spec["duration_s"] for spec in line.backgrounds if spec["duration_s"] > 7]
    assert lengths == pytest.approx([8.7, 16.2])
