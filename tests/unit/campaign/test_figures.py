"""Figures of a campaign: intervals, needed runs, time left, the table, drift."""

from __future__ import annotations

import math
import random

import pytest

from farline.campaign.estimate import SETUP_S, Estimate, forecast, remaining
from farline.campaign.machine import Cell, Machine, Outcome
from farline.campaign.results import (
    reference_drift,
    reference_result,
    results_document,
    setting_results,
)
from farline.campaign.rules import Rules, half_width, narrow_enough, runs_needed
from tests.support.driving import drive, failing, make, make_plan, noisy, steady


def close(estimate: Estimate, runs: int, seconds: float) -> bool:
    """Whether an estimate says so, up to rounding."""
    return estimate.runs == runs and estimate.seconds == pytest.approx(seconds)


def test_half_width_is_students() -> None:
    # t(0.975; 4) = 2.776445; standard deviation of 1..5 is sqrt(2.5).
    assert half_width([1, 2, 3, 4, 5], 0.95) == pytest.approx(
        2.776445 * math.sqrt(2.5 / 5), rel=1e-6
    )
    assert half_width([7.0], 0.95) is None
    assert half_width([7.0, 7.0], 0.95) == 0.0


def test_looks_share_the_error() -> None:
    assert Rules().look_confidence == pytest.approx(0.99)
    assert Rules(min_repetitions=3, max_repetitions=10).looks == (3, 5, 8, 10)
    assert Rules(min_repetitions=4, max_repetitions=4).looks == (4,)
    assert Rules(min_repetitions=4, max_repetitions=4).fixed


def test_stopping_early_covers_the_true_mean_as_often_as_promised() -> None:
    """Stopped at a look, the interval at the looks' confidence still holds the mean."""
    chance, rules, missed, trials = random.Random(5), Rules(relative_half_width=0.1), 0, 2000
    for _ in range(trials):
        values = [chance.gauss(1.0, 0.12) for _ in range(27)]
        look = next((n for n in rules.looks if narrow_enough(values[:n], rules)), 27)
        width = half_width(values[:look], rules.look_confidence)
        assert width is not None
        missed += abs(sum(values[:look]) / look - 1.0) > width
    assert missed / trials < 1 - rules.confidence


def test_runs_needed_follow_the_spread() -> None:
    rules = Rules()
    assert runs_needed([], rules) == 5
    assert runs_needed([1.0], rules) == 5
    assert runs_needed([1.0, 1.001, 0.999], rules) == 5
    assert runs_needed([1.0, 1.04, 0.96, 1.02, 0.98], rules) in (8, 12)
    assert runs_needed([1.0, 2.0, 0.5, 1.0, 1.0], rules) == 27


def test_before_the_first_run_only_the_plan_is_known() -> None:
    foreseen = forecast(make(make_plan(pause_s=0.2)))
    cost_s = 0.5 + SETUP_S + 0.2
    assert close(foreseen.least, 5 * 7, 5 * 7 * cost_s)
    assert close(foreseen.most, 27 * 7, 27 * 7 * cost_s)


def test_what_runs_really_take_replaces_the_assumption() -> None:
    machine = Machine(make(make_plan(repetitions=4)))
    slow = Outcome("complete", total_bps=1e9, session_s=2.5, run_s=0.5)
    drive(machine, lambda _cell: slow, limit=7)
    assert close(remaining(machine, between_s=0.5), 21, 21 * 3.0)


def test_time_is_unknown_for_runs_by_bytes_until_one_was_measured() -> None:
    plan = make_plan(repetitions=2)
    by_bytes = plan.__class__(
        rules=plan.rules, seed=1, fixed={"total_bytes": 10**9, "duration_s": None}, axes=plan.axes
    )
    machine = Machine(make(by_bytes))
    assert remaining(machine) == Estimate(14, None)
    drive(machine, lambda _c: Outcome("complete", total_bps=1e9, session_s=3.0), limit=7)
    assert close(remaining(machine), 7, 21.0)


def test_the_estimate_counts_down_to_nothing() -> None:
    machine = Machine(make(make_plan(max_repetitions=12)))
    left = [remaining(machine).runs]
    while True:
        cells, stop = drive(machine, noisy(0.08), limit=1)
        left.append(remaining(machine).runs)
        if stop is not None:
            break
        assert cells
    assert left[-1] == 0
    # Settings that need more looks than were expected may raise it, but never beyond the cap.
    assert max(left) <= 12 * 7


def test_rows_come_in_the_order_of_the_plan_with_their_figures() -> None:
    campaign = make(make_plan(repetitions=4))
    slow = campaign.settings[2].key

    def outcome(cell: Cell) -> Outcome:
        bps = 5e8 if cell.setting == slow else 1e9
        return Outcome(
            "complete", total_bps=bps * (1 + 0.01 * cell.block), retransmits=cell.block,
            cpu_s_per_gb=0.5, verdict_limit="path" if cell.block else "cwnd",
        )  # fmt: skip

    machine = Machine(campaign)
    drive(machine, outcome)
    rows = setting_results(machine)
    assert [row.setting for row in rows] == [setting.key for setting in campaign.settings]
    row = rows[2]
    assert row.varied == {"streams": 2, "tcp.congestion_control": "reno"}
    assert (row.runs, row.failed, row.state) == (4, 0, "fixed")
    assert row.mean_bps == pytest.approx(5e8 * 1.015)
    assert row.ratio_to_reference == pytest.approx(0.5)
    assert (row.retransmits, row.cpu_s_per_gb, row.verdict_limit) == (1.5, 0.5, "path")
    assert row.lost_packets is None
    # The reference is the first setting: its runs are runs of that setting too.
    assert rows[0].runs == 8
    reference = reference_result(machine)
    assert reference is not None and reference.runs == 4


def test_the_ratio_takes_drift_out() -> None:
    campaign = make(make_plan(repetitions=10))
    faster = campaign.settings[5].key

    def outcome(cell: Cell) -> Outcome:
        path_bps = 1e9 * 0.8**cell.block
        return Outcome("complete", total_bps=path_bps * (2 if cell.setting == faster else 1))

    machine = Machine(campaign)
    drive(machine, outcome)
    assert setting_results(machine)[5].ratio_to_reference == pytest.approx(2.0)
    drift = reference_drift(machine)
    assert drift is not None and drift.significant and drift.relative_change < -0.5


def test_a_steady_reference_does_not_drift() -> None:
    machine = Machine(make(make_plan(repetitions=4)))
    drive(machine, steady)
    assert reference_drift(machine) is None
    machine = Machine(make(make_plan(repetitions=20)))
    drive(machine, noisy(0.05))
    drift = reference_drift(machine)
    assert drift is not None and not drift.significant


def test_settings_without_a_run_have_no_figures() -> None:
    campaign = make(make_plan(repetitions=3, reference="none"))
    bad = campaign.settings[0].key
    machine = Machine(campaign)
    drive(machine, lambda cell: (failing("system") if cell.setting == bad else steady)(cell))
    row = setting_results(machine)[0]
    assert (row.runs, row.failed, row.state, row.last_error) == (0, 2, "abandoned", "it was system")
    assert row.mean_bps is None and row.half_width_bps is None and row.ratio_to_reference is None
    document = results_document(machine)
    assert document["reference"] is None and document["reference_drift"] is None
    assert document["settings"][0]["state"] == "abandoned"
