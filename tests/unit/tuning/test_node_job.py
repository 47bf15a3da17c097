"""The search over streams, stripes and nodes as a job, on nodes that are played."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from farline.api.node_sampler import shortest_s, together_s
from farline.cli.tune_nodes import choice_lines
from farline.errors import SystemFailure, UsageError
from farline.models.end_to_end import NodeSetting
from farline.store import Store
from farline.store.paths.node_choices import forget_node_choice, read_node_choice
from farline.tools import StopQuestion
from farline.tools.events import SampleTaken
from farline.tuning.node_job import NodeSurroundings, NodeTuneJob

if TYPE_CHECKING:
    from farline.tools.events import Steps

NIC_BPS = 1e9


class PlayedNodes:
    """Nodes of 1 Gbit/s before a network of 3.5, where a stream brings 60 Mbit/s."""

    network = "played"

    def __init__(self, nodes: int = 8, fails: bool = False) -> None:
        self._nodes, self._fails = nodes, fails
        self.is_closed = False

    def look(self, should_stop: StopQuestion) -> Steps[NodeSurroundings]:
        yield from ()
        return NodeSurroundings(self._nodes, 60.0, NIC_BPS, 5e9, 2.0)

    def sample(
        self, setting: NodeSetting, seconds: float, should_stop: StopQuestion
    ) -> Steps[float]:
        yield None
        if self._fails:
            raise SystemFailure("a process on a node failed: no")
        node = min(0.941 * NIC_BPS, 60e6 * setting.streams * setting.stripes)
        return min(setting.nodes * node, 3.5e9)

    def close(self) -> None:
        self.is_closed = True


def test_streams_then_nodes_are_found_and_kept_with_reasons(tmp_path: Path) -> None:
    store, nodes = Store(tmp_path), PlayedNodes()
    job = NodeTuneJob(nodes, 8, store)
    tried = [event.setting for event in job if isinstance(event, SampleTaken)]
    choice = job.wait().checked()
    assert tried[0] == choice.default == "1stm-1str-1n-1str-1n"
    setting = NodeSetting.of_label(choice.label)
    assert setting.label == choice.label
    assert 4 <= setting.nodes <= 8
    assert choice.rate_bps == pytest.approx(3.5e9)
    assert (choice.gain or 0) > 50
    assert choice.reasons["streams"] == "cap:nic"
    assert choice.reasons["nodes"] in ("noise", "decline")
    assert (choice.nic_bps, choice.process_bps) == (NIC_BPS, 5e9)
    assert read_node_choice(store.layout.paths, "played") == choice
    assert list(choice.samples) == tried
    assert nodes.is_closed
    lines = list(choice_lines(choice))
    assert lines[0].startswith(f"choice: {choice.label}: 3.50 Gbit/s")
    assert "  streams: the interface is full" in lines
    assert lines[-1].startswith("  a node: interface 1.00 Gbit/s, one process")
    assert forget_node_choice(store.layout.paths, "played")
    assert read_node_choice(store.layout.paths, "played") is None


def test_the_budget_ends_the_search_with_what_was_measured() -> None:
    choice = NodeTuneJob(PlayedNodes(), 8, budget_s=1.0).wait().checked()
    assert len(choice.samples) == 1
    assert choice.reasons == {"all": "budget"}


def test_more_nodes_than_there_are_and_failures_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--nodes 8: played has 2"):
        NodeTuneJob(PlayedNodes(2), 8).wait().checked()
    result = NodeTuneJob(PlayedNodes(fails=True), 2, Store(tmp_path)).wait()
    assert (result.exit_code, result.kept) == (SystemFailure.exit_code, None)
    with pytest.raises(UsageError, match="at least 1 node"):
        NodeTuneJob(PlayedNodes(), 0)


def record(start: str, elapsed_s: float, rate_bps: float) -> dict[str, Any]:
    flow = {"steady_bps": None, "total_bps": rate_bps, "elapsed_s": elapsed_s}
    return {"started_at": f"2026-01-01T00:00:{start}Z", "summary": {"forward": flow}}


def test_it_is_known_how_long_runs_ran_at_the_same_time() -> None:
    beside = [record("00", 4.0, 1e8), record("01", 5.0, 2e8)]
    assert together_s(beside) == pytest.approx(3.0)
    assert shortest_s(beside) == pytest.approx(4.0)
    assert together_s([record("00", 4.0, 1e8), record("06", 4.0, 2e8)]) == pytest.approx(-2.0)
