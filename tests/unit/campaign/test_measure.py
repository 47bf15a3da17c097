"""One run whole: summed up, judged, kept, whatever became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from farline.campaign.measure import measure
from farline.errors import SystemFailure
from farline.spec._types import RunRecord, RunSpec
from farline.store.entry import RunBundle
from farline.tools import Capabilities, EventSink, RunResult, StopQuestion
from tests.support.runs import columns, run_record


class PlayedTool:
    """A tool whose run came out as given."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record

    def capabilities(self) -> Capabilities:
        return Capabilities("played", ("tcp",), ("forward",), samples=False)

    def run(self, _target: str, _spec: RunSpec, _sink: EventSink, _stop: StopQuestion) -> RunResult:
        return RunResult(self.record, columns([]))


class Kept:
    """A store that remembers what it was given, or refuses."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses = refuses
        self.links: Mapping[str, Any] | None = None
        self.mover: Mapping[str, Any] | None = None
        self.entries: list[tuple[Mapping[str, Any], str | None, Mapping[str, Any] | None]] = []

    def append(self, run: RunBundle) -> None:
        if self.refuses:
            raise SystemFailure("disk full")
        self.links, self.mover = run.links, run.mover
        self.entries.append((run.record, run.campaign, run.labels))


@pytest.mark.parametrize("status", ["complete", "partial", "failed"])
def test_every_run_is_summed_up_judged_and_kept(status: str) -> None:
    store = Kept()
    tool = PlayedTool(run_record(status=status))
    measured = measure("h", {}, store, tool=tool, campaign="c", labels={"block": 1})
    assert measured.record["summary"] and measured.record["verdict"]
    assert store.entries == [(measured.record, "c", {"block": 1})]


def test_without_a_store_nothing_is_kept() -> None:
    assert measure("h", {}, None, tool=PlayedTool(run_record())).record["status"] == "complete"


def test_a_store_that_refuses_is_an_error_and_not_silence() -> None:
    with pytest.raises(SystemFailure, match="disk full"):
        measure("h", {}, Kept(refuses=True), tool=PlayedTool(run_record()))
