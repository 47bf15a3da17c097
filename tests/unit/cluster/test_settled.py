"""What became of each name, put together from the receipts of several sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from farline.cluster.settled import Settled


def line(path: str, status: str, kind: str = "file", size: int = 10, **more: Any) -> dict[str, Any]:
    """A line of a receipt."""
    return {"path": path, "kind": kind, "status": status, "bytes": size, **more}


def receipt(folder: Path, name: str, *lines: dict[str, Any]) -> Path:
    """A file with these lines."""
    path = folder / name
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


REPORT: dict[str, Any] = {
    "sender": {"engine": "uring", "file_us": 5, "peak_memory_bytes": 7},
    "receiver": {"engine": "uring", "file_us": 5, "peak_memory_bytes": 7},
    "resumed_bytes": 1, "hole_bytes": 0, "repeated_chunks": 0, "cipher": "aes128-gcm",
}  # fmt: skip


def test_names_are_counted_and_their_nodes_marked(tmp_path: Path) -> None:
    settled = Settled(marks_nodes=True)
    settled.take(
        "n1", receipt(tmp_path, "1", line("a", "copied", "folder", 0), line("a/x", "copied"))
    )
    settled.take(
        "n2", receipt(tmp_path, "2", line("a", "copied", "folder", 0), line("a/y", "present"))
    )
    settled.fail("n3", "a/z", 4, "n3 does not answer")
    report = settled.report([REPORT, REPORT])
    assert report["found"] == {"files": 5, "bytes": 24}
    assert report["copied"] == report["present"] == {"files": 1, "bytes": 10}
    assert report["failed"] == {"files": 1, "bytes": 4}
    assert report["made"] == 2
    assert report["resumed_bytes"] == 2
    assert report["sender"] == {"engine": "uring", "file_us": 10, "peak_memory_bytes": 7}
    assert [one["reason"] for one in report["failures"]] == ["n3 does not answer"]
    settled.write(tmp_path / "all")
    written = [json.loads(text) for text in (tmp_path / "all").read_text().splitlines()]
    assert {(one["path"], one["node"]) for one in written} == {
        ("a", "n1"), ("a/x", "n1"), ("a", "n2"), ("a/y", "n2"), ("a/z", "n3")
    }  # fmt: skip


def test_what_an_attempt_before_has_copied_counts_as_copied(tmp_path: Path) -> None:
    settled = Settled(marks_nodes=True)
    settled.take("n1", receipt(tmp_path, "1", line("x", "copied"), line("y", "failed")))
    settled.take("n1", receipt(tmp_path, "2", line("x", "present"), line("y", "copied")))
    settled.take("n1", tmp_path / "never")
    settled.fail("n1", "x", 10, "too late")
    report = settled.report([REPORT])
    assert report["copied"]["files"] == 2
    assert report["failed"]["files"] == 0


def test_what_is_deleted_is_counted_by_itself_and_is_none_of_what_was_found(tmp_path: Path) -> None:
    settled = Settled(marks_nodes=True)
    # A folder that a file has replaced goes while files are copied.
    settled.take("n1", receipt(tmp_path, "1", line("d", "copied"), line("d", "deleted", size=0)))
    lines = [
        line("x", "present"), line("y", "failed", reason="exists and differs"),
        line("gone", "deleted", size=7), line("gone-2", "deleted", "link", 0),
        line("/data/", "failed", "other", 0, reason="stuck was not deleted: busy"),
    ]  # fmt: skip
    assert settled.deleted("n1") == {"d"}
    assert settled.failed() == 0
    settled.take_deleted("n1", receipt(tmp_path, "2", *lines))
    settled.take_deleted("n2", tmp_path / "never")
    assert settled.deleted("n1") == {"d", "gone", "gone-2"}
    assert settled.failed() == 1
    report = settled.report([REPORT])
    assert report["deleted"] == {"files": 3, "bytes": 7}
    assert report["copied"]["files"] == 1
    assert report["found"] == {"files": 2, "bytes": 10}
    assert report["failed"]["files"] == 1


def test_a_folder_of_several_source_nodes_counts_once(tmp_path: Path) -> None:
    settled = Settled(marks_nodes=False)
    settled.take("sink", receipt(tmp_path, "1", line("a", "copied", "folder", 0)))
    settled.take("sink", receipt(tmp_path, "2", line("a", "updated", "folder", 0)))
    report = settled.report([REPORT])
    assert report["made"] == 1
    assert "updated" not in report


def test_problems_are_counted_among_what_failed_and_told_once(tmp_path: Path) -> None:
    settled = Settled(marks_nodes=False)
    settled.problem("n2", "/data/", "n2: what it has was not copied: no answer")
    report = settled.report(
        [{**REPORT, "not_kept": [{"attribute": "mode", "how": "no", "names": 2}]}] * 2
    )
    assert report["failed"]["files"] == 1
    assert report["failures"] == []
    assert report["problems"] == ["n2: what it has was not copied: no answer"]
    assert report["not_kept"] == [{"attribute": "mode", "how": "no", "names": 4}]


def test_what_only_disappeared_is_named_last_and_does_not_count_as_what_forbids_deletions(
    tmp_path: Path,
) -> None:
    settled = Settled(marks_nodes=False)
    gone = "disappeared while it was copied"
    lines = [line(f"g{at}", "failed", reason=gone) for at in range(120)]
    lines.append(line("f", "failed", reason="permission denied"))
    settled.take("n", receipt(tmp_path, "1", *lines))
    report = settled.report([REPORT])
    assert (report["failed"]["files"], report["vanished"]) == (121, 120)
    assert [line["path"] for line in report["failures"][:2]] == ["f", "g0"]
    assert len(report["failures"]) == 100 and settled.failed() == 1
