"""`farline runs`, `show` and `export` of copies."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from farline.cli.files_text import bar, copy_lines
from farline.cli.group import cli, run
from farline.store import Store
from farline.store.entry import RunBundle
from farline.store.receipts import COLUMNS, keep_receipt
from tests.support.kept_copies import (
    make_copy_end,
    make_copy_record,
    make_mover_samples,
    make_tally,
    receipt_line,
    write_receipt,
)
from tests.support.records import make_record, make_samples, make_spec

FAILED = receipt_line(2, status="failed", reason="was changed while it was read", blake3=None)
LINES = [receipt_line(1), FAILED, receipt_line(3, kind="link", path="na\\xffme")]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A copy with its receipt, and a run that is none."""
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    store = Store()
    record = make_copy_record(
        1,
        copied=make_tally(1200, 10**9), failed=make_tally(30, 5), present=make_tally(4, 9),
        failures=[FAILED] * 25, resumed_bytes=5 << 20,
        sender=make_copy_end(file_us=3_000_000, stream_us=1_000_000, engine="uring"),
    )  # fmt: skip
    store.spool(RunBundle(record, make_samples(2), mover=make_mover_samples()))
    keep_receipt(store.layout, record["run_id"], write_receipt(tmp_path / "lines", LINES))
    store.append(RunBundle(make_record(2), make_samples(2)))
    return store


RUN_ID = make_copy_record(1)["run_id"]


def farline(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_runs_lists_copies_with_their_files(store: Store) -> None:
    heads, *lines = (line for line in farline("runs").stdout.splitlines() if line.strip())
    assert "files" in heads
    (copy,) = (line for line in lines if RUN_ID in line)
    assert "1,200, 30 failed" in copy
    rows = json.loads(farline("runs", "--json").stdout)["runs"]
    assert [row["copied_files"] for row in rows] == [1200, None]
    assert [row["resumed_bytes"] for row in rows] == [5 << 20, None]


def test_runs_without_copies_have_no_column_for_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "other"))
    Store().append(RunBundle(make_record(2), {}))
    assert "files" not in farline("runs").stdout


def test_show_says_what_became_of_the_files(store: Store) -> None:
    text = farline("show", RUN_ID).stdout
    assert "/data/ copied to /archive" in text
    assert "1,200 copied, 954 MiB in 1.00 s: 1,200 files/s" in text
    assert "4 already present, 30 failed" in text
    assert "5.00 MiB verified by the journal" in text
    assert "encrypted with aes128-gcm, verify tree, BLAKE3, chunks of 1MiB" in text
    assert "read uring on ext4; written buffered on ext4" in text
    assert "sender's threads, 4 s" in text
    assert f"and 10 more: farline show {RUN_ID} --files --failed" in text
    assert text.count("was changed while it was read") == 20
    start = text.index("files    ")
    shown = text[start : text.index("client ", start)]
    assert all(len(line) <= 100 for line in shown.splitlines())


def test_show_has_the_samples_of_files(store: Store) -> None:
    document = json.loads(farline("show", RUN_ID, "--json", "--samples").stdout)
    assert document["mover"]["file_bytes"] == [12_500_000] * 6
    assert "file_bytes" in farline("show", RUN_ID, "--samples").stdout
    assert "mover" not in json.loads(farline("show", "last", "--json", "--samples").stdout)


def test_show_lists_the_receipt(store: Store) -> None:
    head, *lines = farline("show", RUN_ID, "--files").stdout.splitlines()
    assert head.split() == ["status", "bytes", "checksum", "path"]
    assert len(lines) == 3
    assert lines[0].split() == ["copied", "1", f"blake3:{'0' * 16}", "folder/file-0000001"]
    assert lines[2].endswith("na\\xffme (link)")
    (failed,) = farline("show", RUN_ID, "--files", "--failed").stdout.splitlines()[1:]
    assert failed.endswith("folder/file-0000002: was changed while it was read")
    document = json.loads(farline("show", RUN_ID, "--files", "--json").stdout)
    assert (document["run_id"], len(document["files"])) == (RUN_ID, 3)
    assert document["files"][1]["reason"] == "was changed while it was read"


def refusal(*arguments: str) -> str:
    result = CliRunner().invoke(cli, list(arguments))
    return result.output if result.exit_code else ""


def test_what_has_no_receipt_is_said(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["show", make_record(2)["run_id"], "--files"]) == 1
    assert "no receipt is stored" in capfd.readouterr().err
    assert "needs --files" in refusal("show", RUN_ID, "--failed")
    assert "cannot be combined" in refusal("show", RUN_ID, "--files", "--samples")


def test_export_writes_receipts(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert (
        "3 rows of 2 runs" in farline("export", "--files", "--format", "csv", "-o", str(out)).stderr
    )
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["run_id"] for row in rows] == [RUN_ID] * 3
    assert list(rows[0]) == ["run_id", *COLUMNS]
    farline("export", "--files", "--format", "parquet", "-o", str(out))
    assert pq.read_table(out)["bytes"].to_pylist() == [1, 2, 3]
    farline("export", "--files", "--format", "json", "-o", str(out))
    document = json.loads(out.read_text())
    assert [row["status"] for row in document["files"]] == ["copied", "failed", "copied"]


def test_export_of_no_receipts_has_columns_and_no_rows(store: Store, tmp_path: Path) -> None:
    out, campaign = tmp_path / "out", ("--where", "copy.verify=none")
    for kind in ("csv", "parquet", "json"):
        farline("export", "--files", "--format", kind, "-o", str(out), *campaign)
    assert json.loads(out.read_text()) == {"schema": 1, "files": []}


def test_runs_are_found_by_the_options_of_copies(store: Store) -> None:
    assert json.loads(farline("runs", "--json", "--where", "copy.verify=none").stdout)["runs"] == []


def test_a_run_that_is_no_copy_has_no_lines() -> None:
    assert copy_lines(make_record(1)) == []


@pytest.mark.parametrize(("share", "text"), [(0, ""), (1, "█" * 20), (0.5, "█" * 10), (-1, ""),
                                             (2, "█" * 20), (1 / 160, "▏")])  # fmt: skip
def test_a_bar_is_as_long_as_its_share(share: float, text: str) -> None:
    assert bar(share) == text


def test_runs_show_what_was_no_rate_and_which_way_data_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "other"))
    store = Store()
    dry = make_copy_record(1)
    dry["spec"]["copy"]["dry_run"] = True
    present = make_copy_record(2, copied=make_tally(), present=make_tally(4, 9))
    for record in (dry, present):
        record["summary"]["forward"].update(bytes=0, total_bps=0.0)
        store.append(RunBundle(record, {}))
    back = make_record(3, make_spec(direction="reverse", rate_bps=10**9))
    back["summary"]["reverse"], back["summary"]["forward"] = back["summary"]["forward"], None
    granted = {"congestion_control": "cubic"}
    back["streams"] = [{"stream": 0, "end": 1, "role": 0, "granted": granted}]
    store.append(RunBundle(back, {}))
    lines = [line for line in farline("runs").stdout.splitlines() if line.strip()]
    assert "dry run" in lines[-3] and "0.00 bit/s" not in lines[-3]
    assert "4 present" in lines[-2] and "0.00 bit/s" not in lines[-2]
    assert "reverse" in lines[-1] and "cubic" in lines[-1]
    shown = farline("show", dry["run_id"]).stdout
    assert "complete (dry run)" in shown and "no rate" in shown and "would be copied" in shown
    rows = list(csv.DictReader(io.StringIO(farline("export", "--format", "csv", "-o", "-").stdout)))
    assert [row["total_bps"] for row in rows] == ["", "", "1000000000"]
    assert [row["reverse_congestion_control"] for row in rows] == ["", "", "cubic"]
    assert rows[2]["asked_rate_bps"] == "1000000000" and "rate_bps" not in rows[2]
    assert (
        len(json.loads(farline("runs", "--where", "rate_bps=1Gbit", "--json").stdout)["runs"]) == 1
    )
