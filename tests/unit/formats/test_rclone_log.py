"""Logs of rclone: several runs in one, old versions, checks, JSON below other lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from farline.formats import detect
from tests.unit.formats.logs import facts, given


def told(clock: str, moved: str, share: str, elapsed: str) -> str:
    """What rclone 1.60 tells in a log at one moment."""
    return (
        f"2026/11/28 {clock} INFO  : \n"
        f"Transferred:   \t    {moved} MiB / 8.583 MiB, {share}, 0 B/s, ETA -\n"
        f"Transferred:            1 / 1, 100%\nElapsed time:         {elapsed}\n\n"
    )


def pair(one: str, other: str) -> str:
    """Two statuses, each as what `told` wants; the first ends a run or is on the way."""
    return told(*one.split()) + told(*other.split())


def old(text: str) -> str:
    """As versions 1.43 to 1.56 wrote it."""
    return text.replace("MiB", "MBytes")


KILLED = pair("22:21:51 2.086 24% 0.6s", "22:21:52 4.086 48% 1.1s")
GOOD = "2026/11/28 22:21:08 INFO  : a: Copied (new)\n" + told("22:21:08", "8.583", "100%", "2.2s")
LIMITED = "2026/11/28 22:22:57 INFO  : Starting bandwidth limiter at 4Mi Byte/s\n"


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        # Two with one `--log-file`, of which the second moved more in more time.
        (pair("22:22:56 2.861 100% 0.8s", "22:22:58 5.722 100% 1.5s"), [True, True]),
        (KILLED + GOOD, [False, True]),
        (GOOD + GOOD, [True, True]),
        # One run: figures are cut off, and its end may be in the same tenth as a status.
        (pair("22:22:56 2.861 33% 0.8s", "22:22:58 8.583 100% 1.7s"), [True]),
        (pair("22:22:56 2.861 33% 0.8s", "22:22:56 8.583 100% 1.9s"), [True]),
        (pair("22:21:08 8.583 100% 2.2s", "22:21:08 8.583 100% 2.2s"), [True]),
        # Summer time ended, or began.
        (pair("02:59:30 2.8 33% 2h0m0.1s", "02:00:30 8.583 100% 2h1m0.1s"), [True]),
        (pair("01:59:30 2.8 33% 2h0m0.1s", "03:00:30 8.583 100% 2h1m0.1s"), [True]),
        # 1.49 to 1.52 counted no time in which nothing moved.
        (old(pair("01:59:30 2.8 33% 1.0s", "02:00:30 8.5 100% 3.0s")), [True]),
        (old(pair("02:00:30 2.8 33% 1.0s", "02:00:32 8.5 100% 9.0s")), [False, True]),
        (old(GOOD + LIMITED + told("22:22:59", "8.583", "100%", "2.2s")), [True, True]),
    ],
)
def test_runs_in_one_log_are_told_apart_by_their_starts(
    tmp_path: Path, text: str, complete: list[bool]
) -> None:
    rows, _ = given(tmp_path, text, "rclone")
    assert [row["complete"] for row in rows] == complete
    assert all(row["started_at"] is None for row in rows)


def stats(time: str, moved: int, seconds: float, **more: object) -> str:
    """What rclone tells in JSON at one moment."""
    figures = {"bytes": moved, "elapsedTime": seconds, "transferTime": 0, **more}
    line = {"level": "info", "source": "accounting/stats.go:482", "stats": figures, "time": time}
    return json.dumps(line, separators=(",", ":")) + "\n"


def test_runs_in_one_log_of_json_are_told_apart_by_their_starts(tmp_path: Path) -> None:
    one = stats("2026-11-28T22:22:59.368954+00:00", 3_000_000, 0.816379156)
    two = stats("2026-11-28T22:23:00.924727+00:00", 6_000_000, 1.532977468)
    for text, moved in (
        (one + two, [3_000_000, 6_000_000]),
        (one + one, [3_000_000, 3_000_000]),
        (one + two.replace("00.924727", "00.185"), [6_000_000]),
        # Without fractions, and of a version that counts only the time in which files moved.
        (one.replace(".368954", "") + two.replace(".924727", ""), [6_000_000]),
        (one + two.replace("transferTime", "no"), [6_000_000]),
    ):
        rows, _ = given(tmp_path, text, "rclone")
        assert [row["bytes"] for row in rows] == moved


def test_rclone_before_1_43_said_no_total(tmp_path: Path) -> None:
    text = (
        "2018/09/01 22:40:13 INFO  : \nTransferred:   52.430 GBytes (5.752 MBytes/s)\n"
        "Errors:                 0\nChecks:               232\nTransferred:          776\n"
        "Elapsed time:  2h35m33.8s\n"
    )
    [row] = given(tmp_path, text, "rclone")[0]
    assert row["bytes"] == pytest.approx(52.430 * 2**30)
    assert facts(row, "files", "duration_s", "complete") == (776, 9333.8, True)
    going = "Transferring:\n *   CAM 1/Clip0026.MXF: 99% /53.023G, 4.727M/s, 42s\n\n"
    failed = "2018/08/12 19:47:23 Failed to sync: unexpected EOF\n"
    for more, code in (
        (going, "not finished"),
        (going + failed, "not finished"),
        (failed, "failed"),
    ):
        [row] = given(tmp_path, text + more, "rclone")[0]
        assert facts(row, "complete", "code", "bytes") == (False, code, round(52.430 * 2**30))


CHECKED = "2026/11/28 22:21:58 NOTICE: Local file system at /d: 1 differences found\n"
CHECK = CHECKED + (
    "2026/11/28 22:21:58 INFO  : \nTransferred:   \t          0 B / 0 B, -, 0 B/s, ETA -\n"
    "Errors:                 1 (retrying may help)\nChecks:                 3 / 3, 100%\n"
    "Elapsed time:         0.1s\n\n"
)
DIFFERS = "2026/11/28 22:21:58 Failed to check: 1 differences found\n"


def test_an_rclone_that_compared_moved_nothing(tmp_path: Path) -> None:
    for text in (CHECK + DIFFERS, CHECK, CHECKED + DIFFERS, DIFFERS):
        assert given(tmp_path, text, "rclone")[0] == []
        for both in (GOOD + text, text + GOOD):
            assert [row["complete"] for row in given(tmp_path, both, "rclone")[0]] == [True]
    found = {"level": "warning", "msg": "1 differences found", "source": "operations/check.go:249"}
    text = json.dumps(found) + "\n" + stats("2026-11-28T22:21:59.054376+00:00", 0, 0.2, errors=1)
    assert given(tmp_path, text + DIFFERS, "rclone")[0] == []


def test_lines_before_json_of_rclone_are_no_hindrance(tmp_path: Path) -> None:
    for before in ("Script started on 2026-11-28\n$ rclone\n", "# A\n\n```\n" * 600):
        path = tmp_path / "given.log"
        path.write_text(before + stats("2026-11-28T22:22:59.368954+00:00", 9, 0.8) + "```\n")
        assert detect(path) == "rclone"
        [row] = given(tmp_path, path.read_text(), "rclone")[0]
        assert row["bytes"] == 9


MOVED = (
    "2026/11/29 08:39:49 INFO  : a: Moved (server-side)\n2026/11/29 08:39:49 INFO  : \n"
    "Transferred:   \t   {} MiB / 30.003 MiB, 100%, 0 B/s, ETA -\n"
    "Checks:                 0 / 0, -, Listed 4\nRenamed:                3\n{}"
    "Elapsed time:         0.2s\n\n"
)
"""What rclone tells of a `move` within one file system."""


@pytest.mark.parametrize(
    "more",
    [
        # 1.60, and 1.75.
        "",
        "Transferred:            3 / 3, 100%\nServer Side Moves:      3 @ 30.003 MiB\n",
    ],
)
def test_what_was_only_renamed_is_no_transfer(tmp_path: Path, more: str) -> None:
    rows, tally = given(tmp_path, MOVED.format("30.003", more), "rclone")
    assert rows == [] and tally.skipped["no data to move"] == 1


def test_a_run_that_renamed_and_was_cut_in_its_first_transfer_is_a_failed_one(
    tmp_path: Path,
) -> None:
    text = MOVED.format("5.003", "").replace("30.003 MiB, 100%", "30.003 MiB, 17%")
    [row] = given(tmp_path, text, "rclone")[0]
    assert (row["bytes"], row["complete"]) == (round(5.003 * (1 << 20)), False)


def test_what_a_storage_moved_by_itself_was_not_carried(tmp_path: Path) -> None:
    more = "Transferred:            5 / 5, 100%\nServer Side Moves:      3 @ 10.001 MiB\n"
    [row] = given(tmp_path, MOVED.format("30.003", more), "rclone")[0]
    assert facts(row, "bytes", "files") == (round(20.002 * (1 << 20)), 2)
    stats = {
        "bytes": 30, "elapsedTime": 2, "transfers": 3, "totalBytes": 30, "serverSideCopies": 1,
        "serverSideCopyBytes": 10, "serverSideMoves": 1, "serverSideMoveBytes": 15, "renames": 1,
    }  # fmt: skip
    line = json.dumps({"level": "info", "msg": "", "source": "a.go:1", "stats": stats})
    [row] = given(tmp_path, line + "\n", "rclone")[0]
    assert facts(row, "bytes", "files", "rate_bps") == (5, 1, 20.0)


def test_a_file_that_is_still_named_is_of_a_run_that_goes_on(tmp_path: Path) -> None:
    # rclone 1.75 with `--stats 1s`: the last two statuses came within a second.
    status = (
        "2026/11/29 08:39:55 INFO  : \n"
        "Transferred:   \t   30.003 MiB / 30.003 MiB, 100%, 10.016 MiB/s, ETA 0s\n"
        "Transferred:            {} / 3, 67%\nElapsed time:         3.0s\n"
    )
    under_way = "Transferring:\n *            a:100% / 30 MiB, 10.015 MiB/s, 0s\n\n"
    message = "2026/11/29 08:39:55 INFO  : d: Set directory modification time\n"
    text = status.format(2) + under_way + message + status.format(3)
    [row] = given(tmp_path, text, "rclone")[0]
    assert row["files"] == 3
