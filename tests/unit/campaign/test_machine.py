"""The order of runs, when they stop, what failures do. No clock, no store."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.campaign.machine import (
    Cell,
    Interrupted,
    Machine,
    Outcome,
    Resumed,
    Run,
    RunEnded,
    Stop,
    Wait,
    Waited,
    block_order,
)
from farline.campaign.rules import half_width
from tests.support.draws import draws
from tests.support.driving import drive, failing, make, make_plan, noisy, steady


def by_block(cells: list[Cell], reference: bool = False) -> dict[int, list[str]]:
    blocks: dict[int, list[str]] = {}
    for cell in cells:
        if cell.reference == reference:
            blocks.setdefault(cell.block, []).append(cell.setting)
    return blocks


@given(seed=st.integers(0, 2**53), every=st.integers(1, 9), repetitions=st.integers(1, 6))
@draws(50)
def test_a_block_is_a_permutation_with_the_reference_in_between(
    seed: int, every: int, repetitions: int
) -> None:
    campaign = make(make_plan(seed=seed, repetitions=repetitions, reference_every=every))
    keys = {setting.key for setting in campaign.settings}
    cells, stop = drive(Machine(campaign))
    assert isinstance(stop, Stop) and stop.reason == "finished"
    blocks = by_block(cells)
    assert sorted(blocks) == list(range(repetitions))
    assert all(sorted(block) == sorted(keys) for block in blocks.values())
    for block in range(repetitions):
        kinds = [cell.reference for cell in cells if cell.block == block]
        between = "".join("r" if kind else "." for kind in kinds).split("r")
        assert between[0] == ""
        assert [len(part) for part in between[1:-1]] == [every] * (len(between) - 2)
        assert 1 <= len(between[-1]) <= every
    assert len(set(cells)) == len(cells)


def test_orders_differ_between_blocks_and_seeds_and_repeat_with_the_seed() -> None:
    campaign = make(make_plan(repetitions=20))
    keys = [setting.key for setting in campaign.settings]
    orders = [tuple(cell.setting for cell in block_order(campaign, b, keys)) for b in range(20)]
    assert len(set(orders)) > 15
    again = make(make_plan(repetitions=20))
    assert [c.setting for c in block_order(again, 3, keys)] == list(orders[3])
    other = make(make_plan(repetitions=20, seed=8))
    assert any(
        [c.setting for c in block_order(other, b, keys)] != list(orders[b]) for b in range(20)
    )


def test_places_in_a_block_are_drawn_evenly() -> None:
    campaign = make(make_plan(repetitions=1, reference="none"))
    keys = [setting.key for setting in campaign.settings]
    first = Counter(block_order(campaign, block, keys)[0].setting for block in range(600))
    assert set(first) == set(keys)
    assert all(60 < count < 150 for count in first.values())


def test_every_run_has_its_spec_and_a_seed_of_its_own() -> None:
    machine = Machine(make())
    seeds = set()
    for _ in range(12):
        step = machine.instruction()
        assert isinstance(step, Run)
        spec = dict(machine.campaign.setting(step.cell.setting).spec)
        assert {**spec, "seed": step.spec["seed"]} == step.spec
        seeds.add(step.spec["seed"])
        machine.handle(RunEnded(step.cell, steady(step.cell)))
    assert len(seeds) == 12


@given(spread=st.floats(0, 0.9), width=st.floats(0.01, 0.3), low=st.integers(2, 9))
@draws(60)
def test_a_setting_stops_at_the_first_look_that_is_narrow_enough(
    spread: float, width: float, low: int
) -> None:
    campaign = make(make_plan(relative_half_width=width, min_repetitions=low, max_repetitions=20))
    machine = Machine(campaign)
    _, stop = drive(machine, noisy(spread))
    assert isinstance(stop, Stop) and stop.reason == "finished"
    rules = machine.rules
    for tally in machine.tallies.values():
        values = tally.values
        narrow = []
        for look in rules.looks:
            wide = half_width(values[:look], 1 - (1 - rules.confidence) / len(rules.looks))
            assert wide is not None
            if len(values) >= look:
                narrow.append(wide <= width * sum(values[:look]) / look)
        assert len(values) in rules.looks
        assert narrow[:-1] == [False] * (len(narrow) - 1)
        assert tally.state == ("narrow" if narrow[-1] else "cap")
        assert tally.state == "narrow" or len(values) == 20


def test_a_fixed_number_of_repetitions_is_kept_and_said() -> None:
    machine = Machine(make(make_plan(repetitions=3)))
    cells, stop = drive(machine, noisy(0.9))
    assert stop == Stop("finished", "all 6 settings completed")
    assert all(
        len(tally.values) == 3 and tally.state == "fixed" for tally in machine.tallies.values()
    )
    assert len(cells) == 3 * (6 + 1)


def test_a_setting_that_is_done_leaves_the_blocks() -> None:
    campaign = make(make_plan(max_repetitions=12))
    wild = campaign.settings[3].key

    def outcome(cell: Cell) -> Outcome:
        return noisy(0.9 if cell.setting == wild else 0.001)(cell)

    cells, _ = drive(Machine(campaign), outcome)
    counts = Counter(cell.setting for cell in cells if not cell.reference)
    assert counts[wild] == 12
    assert all(count == 5 for key, count in counts.items() if key != wild)


@pytest.mark.parametrize("kind", ["busy", "unreachable", "timeout", "protocol"])
def test_a_passing_failure_is_tried_again_after_a_growing_wait(kind: str) -> None:
    machine = Machine(make())
    cells, waits = [], []
    for _ in range(5):
        step = machine.instruction()
        if isinstance(step, Run):
            cells.append(step.cell)
            machine.handle(RunEnded(step.cell, failing(kind)(step.cell)))
        elif isinstance(step, Wait):
            waits.append(step.seconds)
            machine.handle(Waited())
    assert [cell.attempt for cell in cells] == [0, 1, 2]
    assert len({replace(cell, attempt=0) for cell in cells}) == 1
    assert waits == [1.0, 2.0]


def test_the_server_says_how_long_to_wait() -> None:
    machine = Machine(make())
    step = machine.instruction()
    assert isinstance(step, Run)
    busy = Outcome("failed", error_kind="busy", error="no room", retry_after_s=7.5)
    machine.handle(RunEnded(step.cell, busy))
    assert machine.instruction() == Wait(7.5, "no room")


def test_a_second_attempt_that_works_counts() -> None:
    machine = Machine(make(make_plan(repetitions=2)))
    cells, stop = drive(
        machine, lambda cell: (failing("busy") if not cell.attempt else steady)(cell)
    )
    assert stop is not None and stop.reason == "finished"
    assert all(tally.failed == 0 for tally in machine.tallies.values())
    assert len(cells) == 2 * 2 * 7


def test_too_many_failures_in_a_row_stop_the_campaign_with_a_line() -> None:
    machine = Machine(make(make_plan(max_consecutive_failures=3)))
    first, _ = drive(machine, limit=2)
    cells, stop = drive(machine, failing("unreachable"))
    assert stop == Stop(
        "aborted", "stopped: 3 runs in a row failed: it was unreachable", "unreachable"
    )
    assert (len(first), len(cells)) == (2, 3 * 3)


@pytest.mark.parametrize(("kind", "places"), [("unreachable", 1), ("busy", 1), ("timeout", 5)])
def test_a_server_that_never_answered_is_not_asked_for_long(kind: str, places: int) -> None:
    cells, stop = drive(Machine(make()), failing(kind))
    assert stop is not None and (stop.reason, stop.error_kind) == ("aborted", kind)
    assert len(cells) == 3 * places


def test_failures_here_and_there_do_not_stop_it() -> None:
    campaign = make(make_plan(repetitions=6, max_consecutive_failures=2, retries=0))
    machine = Machine(campaign)
    numbers = iter(range(10_000))
    cells, stop = drive(
        machine, lambda cell: (failing("timeout") if next(numbers) % 3 == 0 else steady)(cell)
    )
    assert stop is not None and stop.reason == "finished"
    failed = sum(tally.failed for tally in machine.tallies.values()) + machine.reference.failed
    assert failed == len(cells) // 3
    assert all(len(t.values) + t.failed == 6 for t in machine.tallies.values())


@pytest.mark.parametrize("kind", ["auth", "version"])
def test_a_failure_that_every_run_would_meet_stops_at_once(kind: str) -> None:
    cells, stop = drive(Machine(make()), failing(kind))
    assert stop == Stop("aborted", f"stopped: it was {kind}", kind)
    assert len(cells) == 1


@pytest.mark.parametrize("kind", ["system", "limit", "spec", "internal"])
def test_a_setting_that_cannot_work_is_given_up_and_the_others_go_on(kind: str) -> None:
    campaign = make(make_plan(repetitions=5))
    bad = {campaign.settings[1].key, campaign.settings[4].key}
    machine = Machine(campaign)
    _, stop = drive(machine, lambda cell: (failing(kind) if cell.setting in bad else steady)(cell))
    assert stop == Stop("finished", "6 settings: 4 completed, 2 given up after failures")
    for key, tally in machine.tallies.items():
        assert (tally.state == "abandoned") == (key in bad)
        assert (len(tally.values), tally.failed) == ((0, 2) if key in bad else (5, 0))
        assert (tally.last_error == f"it was {kind}") == (key in bad)


def test_interruption_and_resumption_go_on_where_it_was() -> None:
    whole, _ = drive(Machine(make(make_plan(repetitions=3))))
    machine = Machine(make(make_plan(repetitions=3)))
    first, stop = drive(machine, limit=9)
    assert stop is None
    machine.handle(Interrupted())
    assert machine.instruction() == Stop("interrupted", "interrupted")
    machine.handle(Resumed())
    rest, stop = drive(machine)
    assert stop is not None and stop.reason == "finished"
    assert first + rest == whole


def test_a_run_stopped_half_way_is_done_again() -> None:
    machine = Machine(make())
    step = machine.instruction()
    assert isinstance(step, Run)
    machine.handle(RunEnded(step.cell, Outcome("partial", total_bps=1e9)))
    stop = machine.instruction()
    assert isinstance(stop, Stop) and stop.reason == "interrupted"
    machine.handle(Resumed())
    assert machine.instruction() == step


def test_after_giving_up_the_failed_places_are_tried_again() -> None:
    campaign = make(make_plan(repetitions=2))
    machine = Machine(campaign)
    failed, stop = drive(machine, failing("unreachable"))
    assert stop is not None and stop.reason == "aborted"
    machine.handle(Resumed())
    rest, stop = drive(machine)
    assert stop is not None and stop.reason == "finished"
    places = {replace(cell, attempt=0) for cell in failed}
    assert {replace(cell, attempt=0) for cell in rest} >= places
    assert all(cell.attempt == 3 for cell in rest if replace(cell, attempt=0) in places)
    assert not set(failed) & set(rest)
    assert all((len(t.values), t.failed) == (2, 0) for t in machine.tallies.values())


def test_the_machine_takes_only_the_run_it_asked_for() -> None:
    machine = Machine(make())
    step = machine.instruction()
    assert isinstance(step, Run)
    with pytest.raises(ValueError, match="not the requested run"):
        machine.handle(RunEnded(replace(step.cell, block=5), steady(step.cell)))


def test_asking_twice_changes_nothing() -> None:
    machine = Machine(make())
    assert machine.instruction() == machine.instruction()
