"""Campaigns over emulated paths: the table in a plan, settings, runs that do not count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from farline.campaign.journal import Journal, new_journal, read_journal, write_journal
from farline.campaign.machine import Machine, Outcome, Run, RunEnded, Stop
from farline.campaign.measure import measure
from farline.campaign.outcome import outcome_of_record, outcome_of_row
from farline.campaign.plan import Plan, plan_from_document
from farline.campaign.replay import done_in_store, replay
from farline.campaign.results import setting_results
from farline.campaign.settings import Campaign, key_of, make_campaign
from farline.campaign.unmade import unmade_record
from farline.errors import SpecError, SystemFailure
from farline.spec.path_watch import PathSeen
from farline.store import Store
from farline.store.columns import run_row
from farline.store.entry import Entry, RunBundle
from farline.tools import RunResult
from tests.support.paths import make_link_samples, make_path, make_topology
from tests.support.records import make_record, make_samples, make_spec

RECORD_SCHEMA = json.loads(
    (Path(__file__).parents[3] / "schemas" / "run-record.schema.json").read_text(encoding="utf-8")
)
RTTS = [0, "11.8ms", 0.366]


def plan_of(**path: Any) -> Plan:
    document = {"campaign": {"name": "p", "repetitions": 2, "seed": 1}, "fixed": {"duration_s": 1}}
    return plan_from_document({**document, "path": path})


def campaign_of(plan: Plan) -> Campaign:
    return make_campaign(plan, lambda document: make_spec(**document))


def test_a_list_varies_the_path_and_one_value_holds_it() -> None:
    plan = plan_of(testbed="dumbbell", rtt_s=RTTS, loss=1e-4, mtu_bytes=9000)
    assert plan.axes == {"path.rtt_s": (0, 0.0118, 0.366)}
    assert plan.fixed["path.loss"] == 1e-4
    assert plan.place.testbed == "dumbbell"
    assert plan.over_path and not Plan().over_path
    assert plan_from_document(plan.document()) == plan


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ({"mtu_bytes": [1500, 9000]}, "mtu_bytes: each value would need its own testbed"),
        ({"rtts": [1]}, "rtts: unknown; did you mean rtt_s"),
        ({"rtt_s": []}, "no value"),
        ({"rtt_s": [0.1, "100ms"]}, "is listed twice"),
        ({"loss": 2}, "out of range"),
        ({"testbed": 3}, "is not a string"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(path: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        plan_of(**path)


@pytest.mark.parametrize("path", [{"rtt_s": 5}, {"rtt_s": [1, 2]}, {"loss": "0,0.1"}])
@pytest.mark.parametrize("part", ["fixed", "grid"])
def test_a_path_stands_in_its_own_table(part: str, path: dict[str, Any]) -> None:
    (key,) = path
    for table in ({"path": path}, {f"path.{key}": path[key]}):
        with pytest.raises(SpecError, match=rf"\[{part}\] path.{key}: belongs in its own table"):
            plan_from_document({part: table})


def test_a_grid_takes_a_single_value() -> None:
    assert plan_from_document({"grid": {"streams": 4}}).axes == {"streams": (4,)}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ({"rtt_s": [0.1, 0.2], "delay_s": 0.1}, "rtt_s=0.1: .* both set the delay"),
        ({"capacity_bytes": [9000, 8000], "capacity_bdp": 1}, "both set the queue"),
    ],
)
def test_settings_that_contradict_themselves_are_refused_when_the_campaign_is_made(
    path: dict[str, Any], said: str
) -> None:
    with pytest.raises(SpecError, match=said):
        campaign_of(plan_of(**path))


def test_a_reference_may_say_only_what_can_change_in_use() -> None:
    table = {"campaign": {"reference": {"path": {"mtu_bytes": 9000}}}}
    with pytest.raises(SpecError, match=r"\[campaign.reference.path\] mtu_bytes: cannot change"):
        plan_from_document(table)


def test_what_the_reference_alone_sets_is_known_of_the_whole_campaign() -> None:
    document = plan_of(rtt_s=RTTS).document()
    document["campaign"]["reference"] = {"path": {"loss": 0.1}}
    campaign = campaign_of(plan_from_document(document))
    assert set(campaign.link_keys) == {"rtt_s", "loss"}
    assert campaign.reference is not None
    assert campaign.reference.path == {"rtt_s": 0, "loss": 0.1}
    assert all("loss" not in setting.path for setting in campaign.settings)


def test_every_setting_has_its_path_and_a_key_of_its_own() -> None:
    campaign = campaign_of(plan_of(rtt_s=RTTS, loss=1e-4, mtu_bytes=9000))
    paths = [dict(setting.path) for setting in campaign.settings]
    assert paths == [{"rtt_s": rtt, "loss": 1e-4} for rtt in (0, 0.0118, 0.366)]
    assert len({setting.key for setting in campaign.settings}) == 3
    assert all("path" not in setting.spec for setting in campaign.settings)
    assert [setting.varied for setting in campaign.settings][1] == {"path.rtt_s": 0.0118}


def test_without_a_path_a_spec_keeps_the_key_it_had() -> None:
    spec = make_spec()
    assert key_of(spec, {}) == key_of(spec) != key_of(spec, {"rtt_s": 0.1})


def test_a_journal_brings_paths_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    campaign = campaign_of(plan_of(testbed="long-path", rtt_s=RTTS))
    write_journal(store, new_journal(campaign, "testbed long-path", make_topology()))
    found: Journal = read_journal(store, campaign.id)
    assert found.campaign == campaign
    assert found.topology == make_topology()


def drive(machine: Machine, valid: list[bool]) -> list[Run]:
    """Runs a machine to its end; its runs are valid or not in the order given, then valid."""
    runs: list[Run] = []
    while isinstance(step := machine.instruction(), Run):
        held = valid[len(runs)] if len(runs) < len(valid) else True
        runs.append(step)
        why = "" if held else "late by 2 ms"
        outcome = Outcome("complete", total_bps=1e9, valid=held, not_valid=why)
        machine.handle(RunEnded(step.cell, outcome))
    return runs


def test_a_run_that_is_not_valid_is_done_once_more_and_not_counted() -> None:
    machine = Machine(campaign_of(plan_of(rtt_s=0.1)))
    runs = drive(machine, [False])
    assert [run.cell.attempt for run in runs] == [0, 1, 0]
    (result,) = setting_results(machine)
    assert (result.runs, result.invalid, result.failed) == (2, 1, 0)


def test_a_path_that_never_holds_ends_without_a_mean_and_without_an_abort() -> None:
    machine = Machine(campaign_of(plan_of(rtt_s=0.1)))
    assert len(drive(machine, [False] * 99)) == 4
    (result,) = setting_results(machine)
    assert (result.runs, result.invalid, result.mean_bps) == (0, 4, None)
    stop = machine.instruction()
    assert isinstance(stop, Stop)
    assert stop.line == "1 setting: 1 without a valid run, 4 runs not valid and not counted"


def test_a_campaign_stops_after_so_many_places_in_a_row_without_a_valid_run() -> None:
    machine = Machine(campaign_of(plan_of(rtt_s=[0.1, 0.2, 0.3])))
    runs = drive(machine, [False] * 99)
    assert len(runs) == 2 * machine.rules.max_consecutive_failures
    stop = machine.instruction()
    assert isinstance(stop, Stop) and stop.reason == "aborted"
    assert stop.line == "stopped: 5 times in a row no valid run: late by 2 ms"


def test_invalid_places_here_and_there_do_not_stop_it() -> None:
    machine = Machine(campaign_of(plan_of(rtt_s=[0.1, 0.2, 0.3])))
    drive(machine, [False, False, False, False, True] * 20)
    stop = machine.instruction()
    assert isinstance(stop, Stop) and stop.reason == "finished"


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_places_without_a_valid_run_are_tried_again_by_a_resume(retries: int) -> None:
    document = plan_of(rtt_s=[0.1, 0.2, 0.3]).document()
    document["campaign"]["retries"] = retries
    campaign = campaign_of(plan_from_document(document))
    first = drive(Machine(campaign), [False] * 99)
    invalid = Outcome("complete", total_bps=1e9, valid=False)
    again = replay(campaign, {run.cell: invalid for run in first})
    rest = drive(again, [])
    assert len({run.cell for run in (*first, *rest)}) == len(first) + len(rest)
    assert all(row.runs == 2 for row in setting_results(again)[1:])
    assert len(again.reference.values) == 2


def test_runs_count_all_the_same_where_the_plan_says_so() -> None:
    plan = plan_of(rtt_s=0.1).document()
    plan["campaign"]["count_invalid"] = True
    machine = Machine(campaign_of(plan_from_document(plan)))
    assert len(drive(machine, [False, False])) == 2
    assert setting_results(machine)[0].runs == 2


def test_validity_is_read_from_a_record_and_from_its_row() -> None:
    record = {**make_record(1), "path": make_path(reasons=("late by 2 ms",))}
    outcome = outcome_of_record(record)
    assert (outcome.valid, outcome.not_valid) == (False, "late by 2 ms")
    assert outcome_of_row(run_row(Entry(record))).valid is False
    assert outcome_of_record(make_record(1)).valid is None


def test_a_campaign_with_runs_that_were_not_valid_is_resumed_where_it_was(tmp_path: Path) -> None:
    store, campaign = Store(tmp_path), campaign_of(plan_of(rtt_s=[0, 0.1]))
    first = Machine(campaign)
    for number in range(5):
        step = first.instruction()
        assert isinstance(step, Run)
        reasons = ("late",) if number in (0, 2) else ()
        record = {**make_record(number, dict(step.spec)), "path": make_path(reasons=reasons)}
        store.append(RunBundle(record, {}, campaign=campaign.id, labels=step.cell.labels))
        first.handle(RunEnded(step.cell, outcome_of_record(record)))
    second = replay(campaign, done_in_store(store, campaign.id))
    assert second.instruction() == first.instruction()
    assert setting_results(second) == setting_results(first)


def test_a_run_that_never_began_stands_in_its_place(tmp_path: Path) -> None:
    store, campaign = Store(tmp_path), campaign_of(plan_of(rtt_s=[0, 0.1]))
    first = Machine(campaign)
    for _ in range(3):
        step = first.instruction()
        assert isinstance(step, Run)
        record = unmade_record("192.0.2.7:5470", step.spec, SystemFailure("no room"))
        jsonschema.validate(record, RECORD_SCHEMA)
        store.append(RunBundle(record, {}, campaign=campaign.id, labels=step.cell.labels))
        first.handle(RunEnded(step.cell, outcome_of_record(record)))
    store.compact(everything=True)
    rows = store.runs().to_pylist()
    assert {(row["status"], row["error_kind"], row["error"]) for row in rows} == {
        ("failed", "system", "no room")
    }
    assert [row["run_id"] for row in rows] == sorted({row["run_id"] for row in rows})
    second = replay(campaign, done_in_store(store, campaign.id))
    assert second.instruction() == first.instruction()


class Watch:
    """A path that is marked and seen, in that order."""

    def __init__(self, seen: PathSeen | None) -> None:
        self.seen = seen
        self.calls: list[object] = []

    def start(self) -> str:
        self.calls.append("start")
        return "mark"

    def finish(self, mark: object, server_address: str) -> PathSeen | None:
        self.calls.append((mark, server_address))
        return self.seen


class Tool:
    """Plays one run."""

    def run(self, *_: Any) -> RunResult:
        return RunResult(make_record(1), make_samples(3))  # type: ignore[arg-type]


def test_a_record_says_which_path_it_went_over_and_links_are_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    watch = Watch(PathSeen(make_path(), make_link_samples(4)))  # type: ignore[arg-type]
    measured = measure("h", {}, store, tool=Tool(), path=watch)  # type: ignore[arg-type]
    assert watch.calls == ["start", ("mark", "192.0.2.7:5470")]
    assert measured.record["path"] == make_path()
    assert store.link_samples([measured.record["run_id"]]).num_rows == 8


def test_a_run_that_leaves_the_testbed_has_no_path(tmp_path: Path) -> None:
    measured = measure("h", {}, Store(tmp_path), tool=Tool(), path=Watch(None))  # type: ignore[arg-type]
    assert "path" not in measured.record
