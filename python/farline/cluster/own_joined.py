"""What the sessions of a copy between nodes with disks of their own come to as one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from farline.cluster.joined import Joined
from farline.cluster.own_deletion import as_asked
from farline.cluster.settled import Settled
from farline.copying.session import Attempt
from farline.tools.events import Progress

if TYPE_CHECKING:
    from farline.cluster.crew import Lane
    from farline.cluster.placement import Entry
    from farline.errors import InterruptedRun
    from farline.spec._types import RunRecord


@dataclass(eq=False, repr=False)
class OwnJoined(Joined):
    """Of one attempt, in which every name was settled by the session that carried it."""

    lanes: list[Lane]
    settled: Settled = field(default_factory=lambda: Settled(False), kw_only=True)
    asked: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """The `copy` of what was asked for."""
    looks: Sequence[Mapping[str, Any]] = field(default=(), kw_only=True)
    """Records of the looks."""
    _records: Sequence[Mapping[str, Any]] = field(default=(), init=False)
    _left: Sequence[Entry] = field(default=(), init=False)
    """Names that were still to be carried."""

    def found_names(self, files: int, size: int) -> None:
        """What is to be settled, for the progress."""
        self._report = {"found": {"files": files, "bytes": size}}

    def whole(
        self, receipt: Path | None, stopped: InterruptedRun | None = None,
        names: Iterable[Entry] = (),
    ) -> Attempt:  # fmt: skip
        """The record and the receipt of all that was carried of `names`, until the copy was
        `stopped`."""
        records = [record for lane in self.lanes for record in lane.records if record.get("copy")]
        if not records:
            # Nothing was to be carried, or nobody could: the looks say by what means.
            records = [as_asked(record, self.asked) for record in self.looks]
        for lane in self.lanes:
            lane.done_bytes = _copied_bytes(lane)
        last = {**as_asked(records[-1], self.asked), "status": "complete"}
        last.pop("error", None)
        if stopped is not None:
            last |= {"status": "partial", "error": stopped.failure()}
            known = self.settled.paths()
            self._left = [one for one in names if one.path not in known]
        self._records = records
        attempt = self.attempt(Attempt(cast("RunRecord", last), stopped), None)
        if receipt is not None:
            self.settled.write(receipt)
        return attempt

    def _joined_report(self, report: Mapping[str, Any]) -> dict[str, Any]:
        joined = self.settled.report([record["copy"] for record in self._records])
        found = joined["found"]
        found["files"] += len(self._left)
        found["bytes"] += sum(one.size for one in self._left)
        return {**joined, "moving_us": round(1e6 * (time.monotonic() - self.began_s))}

    def _of_lane(self, lane: Lane, last: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
        return lane.records

    def _verdict(self, record: Mapping[str, Any], rate_bps: float) -> dict[str, Any]:
        """As of any copy; a dry run says itself that there is nothing to judge."""
        verdict = super()._verdict(record, rate_bps)
        if not record["spec"]["copy"].get("dry_run"):
            return verdict
        known = self._records[-1].get("verdict") or {}
        return {**verdict, "line": known.get("line", verdict["line"])}

    def progress(self) -> Progress:
        """How far all pairs are together."""
        lanes = self.lanes
        files = sum(lane.done_files + lane.settled_files for lane in lanes)
        settled = sum(lane.done_bytes + lane.settled_bytes for lane in lanes)
        moved = sum(_copied_bytes(lane) + lane.moving_bytes for lane in lanes)
        busy = sum(1 for lane in lanes if not lane.is_over)
        return self._told(files, settled, moved, busy)


def _copied_bytes(lane: Lane) -> int:
    """What the sessions of a pair that are over have copied."""
    reports = [record["copy"] for record in list(lane.records) if record.get("copy")]
    return sum(int(report["copied"]["bytes"]) for report in reports)
