"""What the sessions of a copy over several nodes come to as one: figures, record, receipt."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, cast

import pytest

from farline.cluster.changes import Changes
from farline.cluster.crew import Lane
from farline.cluster.joined import Joined
from farline.cluster.own_joined import OwnJoined
from farline.cluster.placement import Entry
from farline.cluster.plan import Part
from farline.cluster.sessions import _as_copy, _part_document
from farline.cluster.settled import Settled
from farline.copying.remote_to_remote import RemoteToRemote
from farline.copying.session import Attempt
from farline.errors import FarlineError, InterruptedRun, SystemFailure

NONE = {"files": 0, "bytes": 0}


def report(**counts: Any) -> dict[str, Any]:
    """A copy's report in which nothing happened but these."""
    plain = {
        "found": NONE, "copied": NONE, "present": NONE, "failed": NONE, "skipped": NONE,
        "deleted": NONE, "made": 0, "resumed_bytes": 0, "hole_bytes": 0, "repeated_chunks": 0,
    }  # fmt: skip
    return {**plain, **counts}


def stream(number: int, moved: int) -> dict[str, Any]:
    """A stream that received so much."""
    return {"stream": number, "end": 1, "role": 1, "bytes": moved, "elapsed_us": 1_000_000}


def record(run_s: float, copy: dict[str, Any], *moved: int) -> dict[str, Any]:
    """A session's record."""
    return {
        "run_id": "R", "status": "complete", "run_s": run_s, "session_s": run_s, "copy": copy,
        "spec": {"streams": len(moved), "copy": {"sources": ["/s"]}},
        "streams": [stream(number, size) for number, size in enumerate(moved)],
        "verdict": {"limit": "path", "line": "path: it is full", "evidence": [], "remedies": []},
    }  # fmt: skip


def lane(number: int, *records: dict[str, Any]) -> Lane:
    """A pair that carried parts of these records."""
    made = Lane(number, f"a{number} to b{number}", cast("RemoteToRemote", None), "/d/")
    made.records = list(records)
    made.done_bytes = sum(one["copy"]["copied"]["bytes"] for one in records)
    made.done_files = sum(one["copy"]["copied"]["files"] for one in records)
    return made


def found(joined: Joined, *lines: dict[str, Any], **counts: Any) -> None:
    """What the dry run found."""
    joined.found({"copy": report(**counts)}, lines)


def planned(path: str, size: int, kind: str = "file") -> dict[str, Any]:
    """A line of the dry run's receipt."""
    return {"path": path, "kind": kind, "status": "would-copy", "bytes": size}


def one_copy() -> Joined:
    """Two pairs that carried a large file in two pieces and two small files."""
    half = report(copied={"files": 1, "bytes": 50})
    small = report(copied={"files": 1, "bytes": 5}, resumed_bytes=2)
    lanes = (lane(0, record(1.0, half, 50, 0), record(1.0, small, 5, 0)),
             lane(1, record(1.0, half, 20, 30), record(1.0, small, 0, 5)))  # fmt: skip
    joined = Joined(time.monotonic() - 4.0, lanes, "1str-2n-1str-2n", Changes("N", {}, 2))
    found(
        joined, planned("d", 0, "folder"), planned("d/large", 100), planned("a", 5),
        planned("b", 5), found={"files": 5, "bytes": 120}, copied={"files": 3, "bytes": 110},
        present={"files": 1, "bytes": 10}, made=1,
    )  # fmt: skip
    return joined


def test_a_session_that_was_cut_before_its_copy_began_counts_for_nothing() -> None:
    joined = one_copy()
    cut = record(0.1, report())
    del cut["copy"], cut["verdict"]
    joined.lanes[1].records.append(cut)
    last = report(copied={"files": 3, "bytes": 110}, present={"files": 1, "bytes": 10}, made=1)
    attempt = joined.attempt(Attempt(cast("Any", record(1.0, last, 0, 0)), None), None)
    made = cast("dict[str, Any]", attempt.record)
    assert made["copy"]["resumed_bytes"] == 4
    assert made["verdict"]["limit"] == "path"


def test_a_copy_that_finds_everything_there_says_so() -> None:
    joined = Joined(time.monotonic(), (lane(0), lane(1)), "1str-2n-1str-2n", Changes("N", {}, 2))
    there = {"files": 3, "bytes": 30}
    found(joined, found=there, present=there)
    last = report(found=there, present=there)
    attempt = joined.attempt(Attempt(cast("Any", record(0.1, last, 0)), None), None)
    made = cast("dict[str, Any]", attempt.record)
    assert made["verdict"]["line"] == "nothing to copy: 3 files already present"


def test_what_parts_copied_counts_as_copied_and_what_was_there_as_present(tmp_path: Path) -> None:
    last = report(
        found={"files": 5, "bytes": 120}, copied={"files": 1, "bytes": 100},
        present={"files": 3, "bytes": 20}, updated={"files": 1, "bytes": 0},
        resumed_bytes=100,
    )  # fmt: skip
    receipt = tmp_path / "receipt"
    lines = [
        {"path": "d", "kind": "folder", "status": "updated", "bytes": 0},
        {"path": "d/large", "kind": "file", "status": "copied", "bytes": 100, "resumed_bytes": 9},
        {"path": "a", "kind": "file", "status": "present", "bytes": 5},
        {"path": "old", "kind": "file", "status": "present", "bytes": 10},
    ]
    receipt.write_text("".join(json.dumps(line) + "\n" for line in lines))
    attempt = one_copy().attempt(Attempt(cast("Any", record(0.5, last, 0, 0)), None), receipt)
    assert attempt.record is not None
    whole = cast("Any", attempt.record)
    assert whole["copy"]["copied"] == {"files": 3, "bytes": 110}
    assert whole["copy"]["present"] == {"files": 1, "bytes": 10}
    assert whole["copy"]["made"] == 1
    assert "updated" not in whole["copy"]
    assert whole["copy"]["resumed_bytes"] == 4
    assert 4.0 <= whole["run_s"] < 10.0
    # Four streams of data, two of each pair, with the bytes of all that they carried.
    assert [one["bytes"] for one in whole["streams"]] == [55, 0, 20, 35]
    assert whole["summary"]["forward"]["bytes"] == 110
    assert whole["verdict"]["limit"] == "path"
    assert whole["verdict"]["evidence"][0].startswith("2stm-1str-2n-1str-2n: 2 pairs of processes")
    assert "a1 to b1: 55 B in 2 parts" in whole["verdict"]["evidence"][2]
    told = [json.loads(line) for line in receipt.read_text().splitlines()]
    assert [line["status"] for line in told] == ["copied", "copied", "copied", "present"]
    assert not any("resumed_bytes" in line for line in told)


def test_progress_is_that_of_all_pairs_and_never_more_than_there_is() -> None:
    joined = one_copy()
    now = joined.progress().report
    assert now["found_bytes"] == 120
    assert now["settled_bytes"] == 120
    assert now["moved_bytes"] == 110
    joined.lanes[0].moving_bytes = 1000
    assert joined.progress().report["settled_bytes"] == 120


def test_a_part_neither_deletes_nor_removes() -> None:
    copy = {
        "share": {"id": "x"}, "delete": 3, "remove_source_files": True,
        "max_delete": 3, "verify": "tree",
    }  # fmt: skip
    whole = Part(3, "/s", ("a",), 10)
    assert _part_document({"copy": copy}, whole)["copy"] == {
        "share": {"id": "x", "part": 3}, "verify": "tree",
    }  # fmt: skip
    piece = Part(4, "/s", ("a",), 10, (65536, 131072))
    share = _part_document({"copy": copy}, piece)["copy"]["share"]
    assert share == {"id": "x", "part": 4, "offset": 65536, "bytes": 131072}


@pytest.mark.parametrize("message", ["a1 to b1: no route", "no route"])
def test_the_name_of_a_pair_stands_once_before_what_went_wrong(message: str) -> None:
    assert lane(1).told(SystemFailure(message)) == "a1 to b1: no route"


@pytest.mark.parametrize(
    ("error", "status"),
    [(InterruptedRun("stopped"), "partial"), (SystemFailure("b1: disk full"), "failed")],
)
def test_a_copy_that_broke_off_among_its_parts_has_a_record_of_what_they_did(
    error: FarlineError, status: str
) -> None:
    joined = one_copy()
    part = joined.lanes[1].records[-1]
    cast("dict[str, Any]", part)["spec"]["copy"] = {"sources": ["/s/x"], "share": {"part": 3}}
    joined.found(
        {"copy": report(found={"files": 5, "bytes": 120}, present={"files": 1, "bytes": 10}),
         "spec": {"copy": {"sources": ["/s"], "dry_run": True}}}, [],
    )  # fmt: skip
    attempt = joined.cut_off(error)
    assert attempt.error is error
    told = cast("dict[str, Any]", attempt.record)
    assert (told["run_id"], told["status"]) == ("N", status)
    assert told["error"]["message"] == error.message
    assert told["spec"]["copy"] == {"sources": ["/s"], "dry_run": False}
    assert told["copy"]["found"] == {"files": 5, "bytes": 120}
    assert told["copy"]["present"] == {"files": 1, "bytes": 10}
    assert told["copy"]["copied"] == {"files": 4, "bytes": 110}
    assert sum(one["bytes"] for one in told["streams"]) == 110
    assert "2 pairs of processes" in told["verdict"]["evidence"][0]


def test_a_copy_that_broke_off_before_any_part_has_no_record() -> None:
    joined = Joined(time.monotonic(), (lane(0),), "1str-1n-1str-1n", Changes("N", {}, 1))
    assert joined.cut_off(InterruptedRun("stopped")).record is None


def test_a_copy_whose_look_failed_is_no_dry_run() -> None:
    look = record(0.1, report(failed={"files": 1, "bytes": 5}))
    look["spec"]["copy"]["dry_run"] = True
    error = SystemFailure("b1: it is a file")
    attempt = _as_copy(Attempt(cast("Any", look), error))
    told = cast("dict[str, Any]", attempt.record)
    assert told["spec"]["copy"] == {"sources": ["/s"], "dry_run": False}
    assert "verdict" not in told
    assert attempt.error is error
    assert _as_copy(Attempt(None, error)).record is None


def test_a_pair_that_carried_nothing_takes_no_numbers_from_the_streams_of_others() -> None:
    part = report(copied={"files": 1, "bytes": 50})
    lanes = (lane(0), lane(1, record(1.0, part, 20, 30)))
    joined = Joined(time.monotonic() - 4.0, lanes, "1str-2n-1str-2n", Changes("N", {}, 2))
    found(joined, planned("a", 50), found={"files": 1, "bytes": 50}, copied=part["copied"])
    last = record(0.5, report(present={"files": 1, "bytes": 50}), 0, 0)
    told = cast("dict[str, Any]", joined.attempt(Attempt(cast("Any", last), None), None).record)
    assert [one["bytes"] for one in told["streams"]] == [20, 30]
    assert told["spec"]["streams"] == 2
    assert told["summary"]["forward"]["total_bps"] == pytest.approx(100.0, rel=0.1)


def test_a_copy_to_own_disks_that_was_stopped_says_what_is_missing(tmp_path: Path) -> None:
    receipt = tmp_path / "part.jsonl"
    receipt.write_text(json.dumps({**planned("a", 50), "status": "copied"}) + "\n")
    settled = Settled(marks_nodes=True)
    settled.take("b0", receipt)
    end: dict[str, Any] = {"sender": {}, "receiver": {}}
    part = {**report(copied={"files": 1, "bytes": 50}), **end}
    joined = OwnJoined(
        time.monotonic() - 4.0, [lane(0, record(1.0, part, 50))], "1str-1n-1str-2n",
        Changes("N", {}, 1), settled=settled,
    )  # fmt: skip
    stopped, names = InterruptedRun("stopped"), [Entry("a", 50), Entry("b", 70), Entry("c", 0)]
    attempt = joined.whole(tmp_path / "receipt.jsonl", stopped, names)
    assert attempt.error is stopped
    told = cast("dict[str, Any]", attempt.record)
    assert (told["status"], told["error"]["message"]) == ("partial", "stopped")
    assert told["copy"]["found"] == {"files": 3, "bytes": 120}
    assert told["copy"]["copied"] == {"files": 1, "bytes": 50}
    assert len((tmp_path / "receipt.jsonl").read_text().splitlines()) == 1
