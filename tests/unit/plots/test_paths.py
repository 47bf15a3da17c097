"""Campaigns over an emulated path: the axis, runs that do not count, queues over time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from farline.cli.path_text import path_lines, queue_lines
from farline.plots.axes import parameter_axis, shown_ticks
from farline.plots.data import CampaignData, campaign_data, load_campaign
from farline.plots.findings import findings
from farline.plots.link_series import link_series
from farline.plots.plan_text import grid_axes, plan_toml, rerun_command
from farline.plots.report import write_report
from farline.profiles.response import response
from farline.store import Store
from farline.store.columns import run_row
from farline.store.entry import Entry, RunBundle
from tests.support.paths import make_link_samples, make_path, make_topology
from tests.support.records import make_record, make_samples

RTTS_S = (0.0, 0.0118, 0.0226, 0.0456, 0.0916, 0.183, 0.366)
LATE = ("1 % of packets came more than 2 ms late",)
PLAN: Mapping[str, object] = {
    "campaign": {"name": "p"}, "fixed": {}, "grid": {}, "path": {"rtt_s": list(RTTS_S)},
}  # fmt: skip


def records() -> list[dict[str, object]]:
    """Two runs at each round-trip time; the second at 11.8 ms was not valid."""
    return [
        {
            **make_record(2 * number + turn, bps=1e9 * (8 - number) + 1e6 * turn),
            "path": make_path(rtt_s, reasons=LATE if (number, turn) == (1, 1) else ()),
        }
        for number, rtt_s in enumerate(RTTS_S)
        for turn in range(2)
    ]


def data(count_invalid: bool = False) -> CampaignData:
    rows = [run_row(Entry(record, "p")) for record in records()]
    return campaign_data("p", rows, plan={"plan": PLAN}, count_invalid=count_invalid)


def test_round_trip_time_is_a_parameter_and_what_follows_from_it_is_none() -> None:
    assert data().parameters == ["path.rtt_s"]
    assert [point.settings["path.rtt_s"] for point in data().throughput] == list(RTTS_S)


def test_runs_that_are_not_valid_are_left_out_and_said_so() -> None:
    assert [(p.n, p.invalid) for p in data().throughput[:2]] == [(2, 0), (1, 1)]
    said = " ".join(finding.text for finding in findings(data()) if finding.bad)
    assert f"not valid in 1 of 14 runs ({LATE[0]})" in said
    assert "not included in means" in said


def test_they_count_where_that_is_asked_for() -> None:
    assert [(p.n, p.invalid) for p in data(True).throughput[:2]] == [(2, 0), (2, 0)]
    said = " ".join(finding.text for finding in findings(data(True)))
    assert "counted anyway" in said


def test_runs_without_an_emulated_path_all_count() -> None:
    rows = [run_row(Entry(make_record(number))) for number in range(3)]
    assert response(rows, ())[0].n == 3


def test_the_axis_is_linear_in_milliseconds_and_its_labels_stand_apart() -> None:
    axis = parameter_axis("path.rtt_s", RTTS_S)
    assert (axis.scale, axis.label) == ("linear", "Round-trip time of the path (ms)")
    assert axis.texts == ("0", "11.8", "22.6", "45.6", "91.6", "183", "366")
    assert [axis.texts[i] for i in shown_ticks(axis, 8)] == ["0", "45.6", "91.6", "183", "366"]


def test_evenly_spaced_values_keep_all_their_labels() -> None:
    axis = parameter_axis("streams", (1, 2, 4, 8, 16))
    assert shown_ticks(axis, 8) == [0, 1, 2, 3, 4]


def test_a_plan_over_a_path_needs_no_host_to_run_again() -> None:
    assert rerun_command({"plan": PLAN, "target": "testbed x"}, "h") == "farline profile plan.toml"
    assert grid_axes({"plan": PLAN}) == {"path.rtt_s"}
    assert "[path]\nrtt_s = [0.0, 0.0118" in plan_toml({"plan": PLAN})


def test_queues_are_told_apart_by_link_and_direction() -> None:
    forward, reverse = link_series(make_link_samples(5), make_topology())
    assert (forward.name, forward.direction, forward.busy) == ("link", "forward", True)
    assert forward.drops.tolist() == [0, 0, 0, 0, 7]
    assert forward.times_s.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert not reverse.busy
    assert link_series({name: column[:0] for name, column in make_link_samples().items()}, {}) == []


def test_a_report_draws_the_response_and_the_queues(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for number, record in enumerate(records()):
        labels = {"setting": "s", "block": number, "slot": 0, "attempt": 0, "reference": False}
        links = make_link_samples(6)
        store.append(RunBundle(record, make_samples(30), campaign="p", labels=labels, links=links))
    page = write_report(store.path, "p", tmp_path / "out", ("svg",))
    figures = {path.name for path in (page.parent / "figures").iterdir()}
    assert {"response-path-rtt_s.svg", "queues-best.svg"} <= figures
    loaded = load_campaign(store.path, "p")
    assert len(loaded.links) == 14 and np.all(loaded.links[next(iter(loaded.links))]["link"] == 0)
    assert "not valid" in page.read_text(encoding="utf-8")


def test_a_run_says_what_its_path_was_and_whether_it_held(tmp_path: Path) -> None:
    good, bad = make_path(), make_path(reasons=LATE)
    first, second = path_lines({"path": good})
    assert first == "path     back-to-back, a to b: RTT 11.8 ms, 1.00 Gbit/s"
    assert second.strip().startswith("valid: 20000 deliveries, late by 20.0 us median")
    assert path_lines({"path": bad})[1].strip() == f"not valid: {LATE[0]}"
    assert path_lines({}) == []
    store = Store(tmp_path)
    run_id = store.append(
        RunBundle({**make_record(1), "path": good}, {}, links=make_link_samples(5))
    )
    lines = queue_lines(store.link_samples([run_id]), good)
    assert lines[1:] == ["  link forward   ▂▄▆█ 469 KiB, 7 packets lost"]
