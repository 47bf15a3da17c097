"""What the sessions of a copy over several nodes come to as one: progress, record and receipt."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from farline.cluster.look import capacity_text
from farline.cluster.plan import Listed
from farline.copying.session import Attempt
from farline.errors import InterruptedRun
from farline.findings.rules.copies import nothing_moved_line
from farline.profiles.copy_streams import data_streams, payload_rate_bps
from farline.spec.units import counted, rate_human, size_human
from farline.tools.events import Progress

if TYPE_CHECKING:
    from farline.cluster.changes import Changes
    from farline.cluster.crew import Lane
    from farline.errors import FarlineError
    from farline.spec._types import CopyProgress, RunRecord

_SUMS = (
    "bytes", "blocks", "packets", "lost_packets", "reordered_packets", "duplicate_packets",
    "retransmits", "zerocopy_copied_bytes", "zerocopy_true_bytes", "thread_cpu_us",
    "thread_wait_us",
)  # fmt: skip
"""What is added up of the streams that a pair of nodes had one after the other."""


@dataclass(eq=False, repr=False)
class Joined:
    """Of one attempt, which began at `began_s` of the steady clock."""

    began_s: float
    lanes: Sequence[Lane]
    sides: str
    """Stripes and nodes of both sides: `1str-2n-1str-2n`."""
    changes: Changes
    """What was changed while it ran; its name is that of the whole copy."""
    listed: list[Listed] = field(default_factory=list)
    """Files that are to be copied."""
    capacities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What nodes have, by their names."""
    places: Sequence[str] = ()
    """Where streams run, a line each."""
    _planned: set[str] = field(default_factory=set)
    """Paths of all names that are not there."""
    _report: Mapping[str, Any] = field(default_factory=dict)
    _asked: Mapping[str, Any] = field(default_factory=dict)
    """The spec of the look, which is that of the copy but for `dry_run`."""

    def found(self, record: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> None:
        """The dry run: its record, and the lines of its receipt."""
        self._report, self._asked = record["copy"], record.get("spec") or {}
        for line in lines:
            if line["status"] != "would-copy":
                continue
            self._planned.add(line["path"])
            if line["kind"] == "file":
                self.listed.append(Listed(line["path"], line["bytes"]))

    @property
    def _there(self) -> tuple[int, int]:
        """Names and bytes that needed no copying."""
        kinds = ("present", "updated", "skipped")
        of = [self._report[kind] for kind in kinds if kind in self._report]
        return sum(one["files"] for one in of), sum(one["bytes"] for one in of)

    def progress(self) -> Progress:
        """How far all pairs are together."""
        lanes = self.lanes
        files, size = self._there
        moved = sum(lane.done_bytes + lane.moving_bytes for lane in lanes)
        files += sum(lane.done_files for lane in lanes)
        busy = sum(1 for lane in lanes if not lane.is_over)
        return self._told(files, size + moved, moved, busy)

    def at_the_end(self, event: Progress) -> Progress:
        """How far the session is that ends the copy."""
        report = event.report
        done = sum(lane.done_bytes for lane in self.lanes)
        settled = max(report["settled_bytes"], self._there[1] + done)
        told = self._told(report["settled_files"], settled, done + report["moved_bytes"], 1)
        return Progress({**told.report, "failed_files": report["failed_files"]})

    def _told(self, files: int, settled: int, moved: int, busy: int) -> Progress:
        found = self._report["found"]
        report: CopyProgress = {
            "found_files": found["files"], "found_bytes": found["bytes"], "all_found": True,
            "settled_files": min(files, found["files"]),
            "settled_bytes": min(settled, found["bytes"]),
            "failed_files": 0, "moved_bytes": moved, "spared_bytes": self._there[1],
            "busy_streams": busy, "elapsed_us": round(1e6 * (time.monotonic() - self.began_s)),
        }  # fmt: skip
        return Progress(report)

    def attempt(self, last: Attempt, receipt: Path | None) -> Attempt:
        """The last session's record and receipt, with what the parts did."""
        if last.record is None or not last.record.get("copy"):
            return last
        session: Mapping[str, Any] = last.record
        record = self._whole(session, self._joined_report(session["copy"]), session)
        if receipt is not None and receipt.exists():
            self._mark_copied(receipt)
        return Attempt(cast("RunRecord", record), last.error)

    def cut_off(self, error: FarlineError) -> Attempt:
        """What the parts did of a copy that broke off before its last session."""
        parts = [record for lane in self.lanes for record in lane.records if record.get("copy")]
        if not parts:
            return Attempt(None, error)
        part, look = parts[-1], self._report
        none, of_look = {"files": 0, "bytes": 0}, ("found", "present", "failed", "skipped")
        report = {
            **part["copy"], **{name: look[name] for name in of_look},
            "copied": {
                "files": sum(lane.done_files for lane in self.lanes),
                "bytes": sum(lane.done_bytes for lane in self.lanes),
            },
            "deleted": none, "made": 0, "hole_bytes": 0, "repeated_chunks": 0,
            "failures": look.get("failures", []), "vanished": look.get("vanished", 0),
        }  # fmt: skip
        for name in ("updated", "problems", "skips"):
            report.pop(name, None)
        copy, streams = {**self._asked["copy"], "dry_run": False}, max(map(_count, parts))
        asked = {**part["spec"], "copy": copy, "streams": streams}
        was_stopped = isinstance(error, InterruptedRun)
        record = self._whole(
            {**part, "spec": asked, "status": "partial" if was_stopped else "failed",
             "error": error.failure()},
            self._with_sums_of_parts(report), None,
        )  # fmt: skip
        return Attempt(cast("RunRecord", record), error)

    def _whole(
        self, last: Mapping[str, Any], report: dict[str, Any], session: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """The record `last` made one of all; `session` is the one that ended the copy."""
        record: dict[str, Any] = dict(last)
        record["run_s"] = time.monotonic() - self.began_s
        record["session_s"] = max(record["session_s"], record["run_s"])
        record["run_id"] = self.changes.run_id
        if self.changes.all_told:
            record["adjustments"] = self.changes.all_told
        record["copy"] = report
        record["streams"] = self._streams(record, session)
        record["spec"] = {**record["spec"], "streams": max(1, len(self._at_work)) * _count(record)}
        rate_bps = payload_rate_bps(record)
        record["summary"] = self._summary(record, rate_bps)
        record["verdict"] = self._verdict(record, rate_bps)
        return record

    @property
    def _at_work(self) -> list[Lane]:
        """Pairs that have carried something, or tried to."""
        return [lane for lane in self.lanes if lane.records]

    def _joined_report(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """What parts copied counts as copied, what they made as made."""
        look, copied, present = self._report, dict(report["copied"]), dict(report["present"])
        updated = dict(report.get("updated") or {"files": 0, "bytes": 0})
        # Folders that parts made count nowhere in the last session, unless it set their times.
        made = max(report["made"], look["made"])
        updated["files"] -= min(made - report["made"], updated["files"])
        for key in ("files", "bytes"):
            was = look["present"][key]
            carried = max(0, min(present[key] - was, look["copied"][key] - copied[key]))
            copied[key] += carried
            present[key] -= carried
        joined = self._with_sums_of_parts({
            **report, "copied": copied, "present": present, "updated": updated, "made": made,
        })  # fmt: skip
        if not updated["files"]:
            del joined["updated"]
        return joined

    def _with_sums_of_parts(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """The report of a session, with what adds up of those of the parts."""
        # A session that was cut before its copy began has no report.
        records = [record for lane in self.lanes for record in lane.records]
        parts = [found for record in records if (found := record.get("copy"))]
        return {
            **report,
            "resumed_bytes": sum(one["resumed_bytes"] for one in parts),
            "hole_bytes": report["hole_bytes"] + sum(one["hole_bytes"] for one in parts),
            "repeated_chunks": report["repeated_chunks"]
            + sum(one["repeated_chunks"] for one in parts),
            "moving_us": round(1e6 * (time.monotonic() - self.began_s)),
        }

    def _streams(
        self, whole: Mapping[str, Any], last: Mapping[str, Any] | None
    ) -> list[dict[str, Any]]:
        """A stream for each that a pair of nodes had, with the bytes of all of its sessions.

        The streams of messages are left out: they are nothing that was copied.
        """
        count = _count(whole)
        found: dict[tuple[int, int, int], dict[str, Any]] = {}
        # Numbers without a gap: what is beyond their count is taken for streams of messages.
        for at, lane in enumerate(self._at_work or self.lanes[:1]):
            for record in self._of_lane(lane, last if at == 0 else None):
                for stream in data_streams(record):
                    key = (at * count + stream["stream"] % count, stream["end"], stream["role"])
                    found[key] = _added(found.get(key), {**stream, "stream": key[0]})
        return [found[key] for key in sorted(found)]

    def _of_lane(self, lane: Lane, last: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
        """Records of all sessions of a pair; `last` ended the copy."""
        return lane.records if last is None else [*lane.records, last]

    def _summary(self, record: Mapping[str, Any], rate_bps: float) -> dict[str, Any]:
        """That of the last session, with the payload of all over the whole time."""
        summary = dict(record.get("summary") or {})
        forward = {
            "total_bps": rate_bps, "steady_bps": None, "omitted_s": 0.0, "warmup_rule": "none",
            "bytes": round(rate_bps * record["run_s"] / 8), "elapsed_s": record["run_s"],
        }  # fmt: skip
        return {**summary, "forward": forward, "reverse": None}

    def _verdict(self, record: Mapping[str, Any], rate_bps: float) -> dict[str, Any]:
        """What limited most of the parts, by bytes; what each pair carried."""
        weights: dict[tuple[str, str], int] = {}
        at_work = self._at_work
        for lane in at_work:
            for part in lane.records:
                found = part.get("verdict") or {}
                key = (str(found.get("limit", "unknown")), str(found.get("line", "")))
                moved = (part.get("copy") or {}).get("copied", {}).get("bytes", 0)
                weights[key] = weights.get(key, 0) + moved
        known = {key: weight for key, weight in weights.items() if key[0] != "unknown"}
        pairs = counted(len(at_work), "pair of processes", "pairs of processes")
        streams = max(1, record["spec"]["streams"] // max(1, len(at_work)))
        setting = f"{streams}stm-{self.sides}"
        together = f"{setting}: {pairs}, {rate_human(rate_bps)} together"
        nodes = [capacity_text(name, has) for name, has in self.capacities.items()]
        evidence = [together, *map(_lane_text, at_work), *nodes, *self.places]
        if not known:
            line = None
            if record["status"] == "complete":
                line = nothing_moved_line(record["copy"], record["copy"]["copied"]["bytes"])
            line = line or "parts were too short to tell what limited them"
            return {"limit": "unknown", "line": line, "evidence": evidence, "remedies": []}
        limit, line = max(known, key=known.__getitem__)
        return {"limit": limit, "line": f"{line} (most of the parts)", "evidence": evidence,
                "remedies": []}  # fmt: skip

    def _mark_copied(self, receipt: Path) -> None:
        """Names that a part copied are copied, and not present from before."""
        fresh = receipt.with_suffix(".joined")
        with receipt.open(encoding="utf-8") as before, fresh.open("w", encoding="utf-8") as after:
            for text in before:
                line = json.loads(text)
                if line["path"] in self._planned:
                    if line["status"] in ("present", "updated"):
                        line["status"] = "copied"
                    line.pop("resumed_bytes", None)
                after.write(json.dumps(line) + "\n")
        fresh.replace(receipt)


def _count(record: Mapping[str, Any]) -> int:
    """Streams of data of a session."""
    return max(1, int(record["spec"].get("streams") or 1))


def _added(before: dict[str, Any] | None, stream: dict[str, Any]) -> dict[str, Any]:
    if before is None:
        return stream
    sums = {key: before[key] + stream[key] for key in _SUMS if key in before and key in stream}
    times = {"elapsed_us": before["elapsed_us"] + stream["elapsed_us"]}
    return {**before, **sums, **times}


def _lane_text(lane: Lane) -> str:
    """What a pair carried, and how fast while it was at work."""
    seconds = sum(float(record["run_s"]) for record in lane.records)
    rate = f", {rate_human(8 * lane.done_bytes / seconds)} while at work" if seconds else ""
    return (
        f"{lane.name}: {size_human(lane.done_bytes)} in {counted(len(lane.records), 'part')}{rate}"
    )
