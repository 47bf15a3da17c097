"""The table at the end of `farline copy`."""

from __future__ import annotations

import pytest

from farline.cli.copy.end import WIDTH, summary_lines
from farline.copying.exit_code import exit_code
from tests.support.copies import copy_end, copy_record, copy_report, tally


def test_the_table_fits_80_columns() -> None:
    report = copy_report(
        copied=tally(10**9, 10**15), present=tally(10**9), failed=tally(10**9),
        skipped=tally(10**9), deleted=tally(10**9), made=10**9, resumed_bytes=10**14,
        hole_bytes=10**14, repeated_chunks=10**9,
    )  # fmt: skip
    verdict = {"limit": "sender-disk", "line": "the sender's disk " * 9}
    record = copy_record(report, verdict=verdict)
    lines = summary_lines(record, True, {"run": "01J" + "Z" * 23, "receipt": "r" * 40})
    assert max(map(len, lines)) <= WIDTH
    assert any(line.startswith("verdict   limited by the sender's disk") for line in lines)
    assert any(line.startswith("resumed ") for line in lines)


def test_a_dry_run_and_what_drops_its_data_say_so() -> None:
    report = copy_report(deleted=tally(5))
    dry = copy_record(report)
    dry["spec"]["copy"]["dry_run"] = True
    text = " ".join(" ".join(summary_lines(dry, False, {})).split())
    assert "2 would be copied, 5 would be deleted, 1 folder or link would be created" in text
    assert "verified" not in text and "disks" not in text and "copying" not in text
    assert "bit/s" not in text and "1.00 MiB would be copied" in text
    dropped = copy_record()
    dropped["spec"]["copy"]["write_engine"] = "null"
    assert "2 received, nothing written" in summary_lines(dropped, False, {})[0]


def test_a_copy_of_no_files_names_no_means() -> None:
    nothing = copy_record(copy_report(copied=tally(0, 0), present=tally(2, 1 << 20)), streams=[])
    rows = [line.split()[0] for line in summary_lines(nothing, False, {})]
    assert rows[:2] == ["files", "bytes"] and not {"time", "by", "disks"} & set(rows)


def test_of_an_end_that_has_not_said_no_disk_is_told() -> None:
    silent = copy_end(engine="", file_system="")
    lines = summary_lines(copy_record(copy_report(receiver=silent)), False, {})
    assert "disks     buffered on tmpfs at the sender" in lines
    neither = summary_lines(copy_record(copy_report(sender=silent, receiver=silent)), False, {})
    assert not any(line.startswith("disks") for line in neither)


@pytest.mark.parametrize(
    ("message", "host"),
    [
        ("user@dtn: /d/x: No space left on device", "user@dtn"),
        ("/d/x: Permission denied", "this host"),
        ("far: /d/x: Permission denied", "far"),
        ("other: /d/x: Permission denied", "that host"),
    ],
)
def test_after_a_failure_of_a_system_the_host_is_named(message: str, host: str) -> None:
    record = copy_record(
        error={"kind": "system", "message": message}, status="failed", server_address="far:5470"
    )
    text = " ".join(" ".join(summary_lines(record, False, {})).split())
    assert (
        f"try fix the problem on {host} (space, permissions, path), then repeat the command;"
        " it resumes" in text
    )


def test_what_the_destination_could_not_keep_is_said_once_by_kind() -> None:
    lost = [
        {"attribute": "time", "how": "kept to 2 s", "names": 12},
        {"attribute": "mode", "how": "operation not permitted", "names": 1},
    ]
    record = copy_record(copy_report(not_kept=lost))
    lines = summary_lines(record, False, {})
    at = lines.index("not kept  12 modification times: kept to 2 s")
    assert lines[at + 1] == "          1 mode: operation not permitted"
    assert exit_code(record) == 0


def test_what_has_arrived_of_files_that_are_not_whole_is_told() -> None:
    record = copy_record(copy_report(copied=tally(), found=tally(3, 1 << 30)), status="failed")
    record["streams"] = [{**record["streams"][0], "bytes": 26 << 20}]
    text = "\n".join(summary_lines(record, False, {}))
    assert "missing   2 of 3 names found so far, 1.00 GiB, about 6:24 at" in text
    assert "parts     26.0 MiB of files that are not complete yet" in text
