"""`farline analyze ingest`: what is taken in, recognised, refused, listed and forgotten."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from farline.analysis.sources import with_progress
from farline.cli.analyze.progress import progress
from farline.cli.group import cli, run
from farline.errors import SystemFailure
from farline.store import Store
from tests.unit.cli.analyze_sample import MAP, gridftp_line, gridftp_lines, write_sample


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of its own, a terminal of 80 columns, and the sample in the folder."""
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    write_sample(tmp_path)


def ingest(*arguments: str) -> Result:
    return CliRunner().invoke(
        cli, ["analyze", "ingest", *arguments], catch_exceptions=False, standalone_mode=False
    )


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ingest(*arguments, "--json").stdout)
    assert found["schema"] == 1
    return found


def test_a_log_is_taken_in_once_and_replaced_when_it_has_grown() -> None:
    (first,) = document("gridftp.log")["logs"]
    assert (first["format"], first["outcome"]) == ("gridftp", "new")
    assert (first["transfers"], first["failed"]) == (15, 1)
    assert document("gridftp.log")["logs"][0]["outcome"] == "same"
    with Path("gridftp.log").open("a") as file:
        file.write(gridftp_line("fir", "elm", 3.0, 20) + "\n")
    (grown,) = document("gridftp.log")["logs"]
    assert (grown["outcome"], grown["transfers"]) == ("grown", 16)
    (kept,) = Store().transfer_logs()
    assert kept.rows == 17


def test_the_table_says_what_became_of_each_log_in_80_columns() -> None:
    ingest("gridftp.log")
    result = ingest("*.log", "memory.csv", "--map", MAP)
    assert result.return_value == 23
    row = next(line for line in result.stdout.splitlines() if line.startswith("memory.csv"))
    assert row.split() == ["memory.csv", "csv", "30", "0", "0", "0", "ingested"]
    # A mapping is for tables, and as one the GridFTP log is refused, in a line of its own.
    assert "gridftp.log" in result.stderr and result.stderr.count("\n") == 1
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_what_is_known_to_be_no_transfer_is_counted_by_reason_over_all_logs() -> None:
    listing = gridftp_lines()[0].replace("TYPE=RETR", "TYPE=MLSD")
    for name in ("a.log", "b.log"):
        Path(name).write_text("\n".join([*gridftp_lines(), listing, name]) + "\n")
    text = ingest("a.log", "b.log").stdout
    assert text.count("Skipped because they are not transfers: directory listing 2.") == 1


def test_lines_that_are_no_records_are_shown_with_number_and_reason() -> None:
    lines = gridftp_lines()
    lines[2:2] = ["\x00\x01 noise", *[lines[0][:60]] * 7]
    Path("gridftp.log").write_text("\n".join(lines) + "\n")
    result = ingest("gridftp.log", "--malformed", "odd.tsv")
    assert result.return_value == 23
    assert "8 records could not be read" in result.stdout
    assert "line 3:" in result.stdout and "line 7:" in result.stdout
    assert "line 8:" not in result.stdout and "and 3 more" in result.stdout
    head, *odd = Path("odd.tsv").read_text().splitlines()
    assert head.split("\t") == ["log", "line", "why", "text"]
    assert [line.split("\t")[1] for line in odd] == [str(n) for n in range(3, 11)]
    assert "someone" not in Path("odd.tsv").read_text()


def test_the_exit_code_says_whether_all_was_taken_in() -> None:
    assert ingest("gridftp.log").return_value == 0
    Path("deep.json").write_text("[" * 100_000)
    Path("torn.gz").write_bytes(b"\x1f\x8b\x08\x00junk")
    found = ingest("gridftp.log", "deep.json", "torn.gz", "--json")
    assert found.return_value == 23
    assert [Path(one["path"]).name for one in json.loads(found.stdout)["refused"]] == [
        "deep.json",
        "torn.gz",
    ]
    with Path("gridftp.log").open("a") as file:
        file.write("DATE=torn\n")
    assert ingest("gridftp.log").return_value == 23
    # What is kept already is told of in the same way.
    assert ingest("gridftp.log").return_value == 23


def test_nothing_taken_in_is_exit_code_1_and_leaves_the_store_empty(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("notes.txt").write_text("nothing of any kind\n")
    Path("empty.log").write_text("")
    assert run(["analyze", "ingest", "notes.txt", "empty.log"]) == 1
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 2
    assert "notes.txt" in told.err and "empty.log" in told.err
    assert run(["analyze", "ingest", "notes.txt", "--json"]) == 1
    (refused,) = json.loads(capsys.readouterr().out)["refused"]
    assert refused["path"] == "notes.txt" and "unknown log format" in refused["why"]
    assert Store().transfer_logs() == ()


def test_a_store_that_cannot_be_written_is_this_machines_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise SystemFailure("writing transfers: No space left on device")

    monkeypatch.setattr(Store, "append_transfers", full)
    Path("notes.txt").write_text("nothing of any kind\n")
    assert run(["analyze", "ingest", "notes.txt", "gridftp.log"]) == 2


def test_a_log_without_any_transfer_is_not_kept() -> None:
    Path("gridftp.log").write_text(gridftp_lines()[0][:80] + "\n")
    found = document("gridftp.log", "--format", "gridftp")
    assert found["logs"] == []
    (refused,) = found["refused"]
    assert "contains no transfer" in refused["why"] and refused["tally"]["malformed"] == 1
    assert Store().transfer_logs() == ()


def test_another_mapping_reads_the_same_log_anew() -> None:
    assert document("memory.csv", "--map", MAP)["logs"][0]["outcome"] == "new"
    plain = MAP.replace("streams=streams,", "")
    assert document("memory.csv", "--map", plain)["logs"][0]["outcome"] == "reread"
    assert len(Store().transfer_logs()) == 1


def test_kept_logs_are_listed_and_forgotten() -> None:
    assert "no logs are kept" in (ingest("gridftp.log") and ingest("--forget", "gridftp.log",
                                                                   "--list")).stdout  # fmt: skip
    ingest("gridftp.log")
    listed = ingest("--list").stdout
    assert "gridftp.log" in listed and "15" in listed
    assert max(map(len, listed.splitlines())) <= 80
    forgotten = document("--forget", "gridftp.log", "--list")
    assert [log["name"] for log in forgotten["forgotten"]] == ["gridftp.log"]
    assert forgotten["logs"] == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name a log"),
        (["gridftp.log", "--list"], "one of these at a time"),
        (["missing.log"], "no such file"),
        (["--forget", "missing.log"], "no store here"),
        (["memory.csv", "--set", "streams"], "--set"),
        (["gridftp.log", "--malformed", "no/such/folder.tsv"], "cannot write"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", "ingest", *arguments]) in (1, 2)
    told = capsys.readouterr()
    assert says in told.err and told.err.count("\n") == 1 and told.out == ""


class Terminal(io.StringIO):
    """A terminal that remembers what was drawn."""

    def isatty(self) -> bool:
        """As terminals do."""
        return True


def test_on_a_terminal_a_bar_runs_over_the_bytes_of_all_logs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    paths = [Path("gridftp.log"), Path("memory.csv")]
    sizes = [path.stat().st_size for path in paths]
    with progress() as seen:
        assert seen is not None
        for path, on_read in with_progress(paths, seen):
            assert on_read is not None
            on_read(path.stat().st_size, path.stat().st_size)
    drawn = terminal.getvalue()
    total = f"{sum(sizes) / 1000:.1f}/{sum(sizes) / 1000:.1f} kB"
    assert "memory.csv" in drawn and total in drawn
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with progress() as seen:
        assert seen is None


def test_a_log_beside_another_of_its_name_is_said_with_how_to_forget_it() -> None:
    ingest("gridftp.log")
    (kept,) = Store().transfer_logs()
    Path("gridftp.log").write_text(gridftp_line("fir", "elm", 3.0, 20) + "\n")
    result = ingest("gridftp.log")
    digest = kept.log.digest[:12]
    text = " ".join(result.stdout.split())
    assert f"gridftp.log: beside {digest} of the same name, both count" in text
    assert f"--forget {digest}" in text
    Path("gridftp.log").write_text(gridftp_line("fir", "elm", 3.0, 21) + "\n")
    (log,) = document("gridftp.log")["logs"]
    assert log["beside"][0] == {"name": "gridftp.log", "digest": kept.log.digest}
    assert len(log["beside"]) == 2


def test_malformed_records_of_a_log_that_is_there_already_are_written_too() -> None:
    with Path("gridftp.log").open("a") as file:
        file.write(gridftp_lines()[0][:60] + "\n")
    ingest("gridftp.log")
    result = ingest("gridftp.log", "--malformed", "odd.tsv")
    assert "already present" in result.stdout
    assert len(Path("odd.tsv").read_text().splitlines()) == 2


def test_a_value_that_fills_no_cell_is_said() -> None:
    told = " ".join(ingest("gridftp.log", "--set", "streams=9", "--set", "rtt_ms=4").stdout.split())
    assert "gridftp.log: --set streams had no effect" in told
    assert "--set rtt_ms" not in told


def test_formats_are_shown_without_the_version_of_their_reader() -> None:
    assert "gridftp 1" not in ingest("gridftp.log").stdout + ingest("--list").stdout
    assert document("--list")["logs"][0]["reader"] == "gridftp 1"


def test_a_log_that_is_kept_counts_once_beside_the_kept_logs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ingest("gridftp.log")
    command = ["analyze", "profile", "gridftp.log", "--logs", "--json", "--infrastructure"]
    assert run([*command, "sites.toml"]) == 0
    told = capsys.readouterr()
    assert "gridftp.log: already among the kept logs, counted once" in told.err
    (profile,) = json.loads(told.out)["profiles"]
    assert sum(profile["n"]) == 15
    with Path("gridftp.log").open("a") as file:
        file.write(gridftp_line("fir", "elm", 3.0, 20) + "\n")
    assert run([*command, "sites.toml"]) == 1
    told = capsys.readouterr()
    assert (
        "the beginning of this log is among the kept logs" in told.err and told.err.count("\n") == 1
    )
