"""What is deleted on nodes with disks of their own: all that was said, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from farline.cluster.own_deletion import (
    Surplus,
    as_asked,
    check_apart,
    deletion_copy,
    why_not,
    without_skips,
)
from farline.errors import UsageError

NODES = ["n1", "n2"]


def lines(*found: tuple[str, str] | tuple[str, str, str]) -> Callable[[], list[dict[str, Any]]]:
    """Lines of a look: path, status, kind."""
    told = [
        {"path": one[0], "status": one[1], "kind": one[2] if len(one) > 2 else "file"}
        for one in found
    ]
    return lambda: told


def look(*problems: str) -> dict[str, Any]:
    """The record of a look."""
    return {"copy": {"problems": list(problems)} if problems else {}}


LOOKS = {"n1": look(), "n2": look()}
SAME = Surplus({"n1": {"a"}, "n2": {"b", "c"}})


def test_each_node_has_what_the_sources_do_not() -> None:
    found = Surplus.of({
        "n1": lines(("a", "would-copy"), ("b", "present"), ("d", "would-copy", "folder"),
                    ("d/gone", "would-delete"), ("old", "would-delete")),
        "n2": lines(("a", "present"), ("b", "would-copy"), ("d", "present", "folder")),
    })  # fmt: skip
    assert found == Surplus({"n1": {"d/gone", "old"}, "n2": set()})


@pytest.mark.parametrize("seen", ["d/x", "d"])
def test_what_another_node_finds_at_the_sources_is_told(seen: str) -> None:
    """A source node whose file system is not mounted sees an empty folder."""
    here = lines(("d", "present", "folder"), ("d/x", "present"))
    found = Surplus.of({"n1": here, "n2": lines((seen, "would-delete"))})
    assert found.doubtful == seen
    why = why_not(NODES, LOOKS, found, 1, 0, {"delete": 1})
    assert why is not None and f"source nodes do not see the same: {seen}" in why


def test_what_is_below_a_name_that_is_no_folder_at_the_sources_is_left_out() -> None:
    found = Surplus.of({"n1": lines(("d", "present"), ("d/old/x", "would-delete"))})
    assert found == Surplus({"n1": set()})


@pytest.mark.parametrize(
    ("looks", "count", "failed", "copy", "why"),
    [
        (LOOKS, 3, 0, {"delete": 3}, None),
        (LOOKS, 3, 0, {"delete": 3, "max_delete": 3}, None),
        (LOOKS, 3, 0, {"delete": 0, "dry_run": True}, None),
        (LOOKS, 3, 0, {"delete": 2}, "3 names to delete, but 2 confirmed"),
        (LOOKS, 1, 0, {"delete": 0}, "1 name to delete, but 0 confirmed"),
        (LOOKS, 3, 1, {"delete": 3}, "1 name failed"),
        (LOOKS, 3, 0, {"delete": 3, "max_delete": 2},
         "3 names to delete, but --max-delete allows 2"),
        (LOOKS, 3, 0, {"delete": 0, "max_delete": 2, "dry_run": True},
         "3 names to delete, but --max-delete allows 2"),
        ({"n1": look()}, 3, 0, {"delete": 3}, "n2 did not answer or failed"),
        ({"n1": None, "n2": look()}, 3, 0, {"delete": 3}, "n1 did not answer or failed"),
        ({**LOOKS, "n2": look("nothing was deleted: some of the sources could not be read")},
         0, 0, {"delete": 0}, "n2: some of the sources could not be read"),
    ],
)  # fmt: skip
def test_all_is_deleted_or_nothing_with_the_reason(
    looks: dict[str, Any], count: int, failed: int, copy: dict[str, Any], why: str | None
) -> None:
    told = why_not(NODES, looks, SAME, count, failed, copy)
    assert told == (None if why is None else f"nothing was deleted: {why}")


@pytest.mark.parametrize(
    ("level", "sent"), [("exists", "time"), ("size", "size"), ("checksum", "time"), (None, "time")]
)
def test_the_session_that_deletes_makes_and_replaces_nothing(level: str | None, sent: str) -> None:
    asked = {"delete": 5, "max_delete": 9, "overwrite": "always", "sync_level": level}
    asked = {key: value for key, value in asked.items() if value is not None}
    assert deletion_copy(asked, 2) == {
        "delete": 2, "existing": True, "overwrite": "never", "sync_level": sent
    }  # fmt: skip


def test_a_record_says_what_was_asked_of_the_whole_copy() -> None:
    sent = {"sources": ["a"], **deletion_copy({"delete": 5}, 2), "dry_run": True}
    record = {
        "run_id": "R",
        "spec": {"streams": 4, "copy": sent},
        "copy": {"skips": [1], "made": 0},
    }
    asked = {"delete": 5, "max_delete": 9, "overwrite": "different"}
    told = as_asked(record, asked)["spec"]["copy"]
    assert told == {**asked, "sources": ["a"], "dry_run": False, "sync_level": "time"}
    assert without_skips(record)["copy"] == {"made": 0}
    assert without_skips({"run_id": "R"}) == {"run_id": "R"}


@pytest.mark.parametrize("source", ["/data/src/", "/data/./src", "/data"])
def test_sources_on_a_node_below_its_destination_are_not_deleted(source: str) -> None:
    with pytest.raises(UsageError, match="on n1 of both ends, and would be deleted"):
        check_apart((["n1"], [source]), (["n1", "n2"], "/data/"))
    check_apart((["n3"], [source]), (["n1", "n2"], "/data/"))
    check_apart((["n1"], ["/database", "/"]), (["n1", "n2"], "/data/"))
