"""`farline runs`, `show` and `export` over a store made by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from farline.cli.group import cli, run
from farline.cli.runs_table import runs_table
from farline.store import Store
from farline.store.entry import RunBundle
from tests.support.records import make_record, make_samples, make_spec

LABELS = {"setting": "abc", "block": 1, "slot": 0, "attempt": 0, "reference": False}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    store = Store()
    for number, streams in enumerate((1, 2, 4)):
        spec = make_spec(streams=streams, tcp={"congestion_control": "reno"})
        record = make_record(number, spec, bps=1e9 * streams)
        store.append(RunBundle(record, make_samples(2), campaign="night", labels=LABELS))
    error = {"kind": "busy", "message": "the server has no room"}
    store.append(
        RunBundle(make_record(3, make_spec(transport="udp"), status="failed", error=error), {})
    )
    return store


def farline(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_without_campaigns_it_is_said_how_one_begins(tmp_path: Path) -> None:
    empty = Store(tmp_path / "empty")
    said = farline("runs", "--campaigns", "--store", str(empty.path)).stdout
    assert said == "no campaign yet; farline profile starts one\n"


def test_runs_lists_oldest_first(store: Store) -> None:
    lines = farline("runs").stdout.splitlines()
    rows = [line for line in lines if "01JD" in line]
    assert len(rows) == 4
    assert "1.00 Gbit/s" in rows[0] and "4.00 Gbit/s" in rows[2]
    assert "sender-cpu" in rows[0] and "failed" in rows[3]
    assert "2026-11-21 20:00:00" in rows[0] and "128KiB" in rows[0]


def test_runs_filters_and_limits(store: Store) -> None:
    def found(*arguments: str) -> list[int]:
        document = json.loads(farline("runs", "--json", *arguments).stdout)
        assert document["schema"] == 1
        return [int(row["run_id"][4:]) for row in document["runs"]]

    assert found() == [0, 1, 2, 3]
    assert found("--where", "streams=2,4") == [1, 2]
    assert found("--campaign", "last", "--limit", "1") == [2]
    assert found("--status", "failed") == [3]
    assert found("--transport", "tcp", "--since", "2026-11-21T20:00:01Z") == [1, 2]
    assert found("--limit", "1", "--all") == [0, 1, 2, 3]


def test_runs_lists_campaigns_and_merges(store: Store) -> None:
    assert "night" in farline("runs", "--campaigns").stdout
    assert "merged 4 runs out of 4 files" in farline("runs", "--compact").stdout
    assert json.loads(farline("runs", "--compact", "--json").stdout)["merged_runs"] == 0
    assert len(json.loads(farline("runs", "--json").stdout)["runs"]) == 4


def test_damaged_files_are_named_on_standard_error(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    path = store.layout.fresh / f"{make_record(1)['run_id']}.parquet"
    path.write_bytes(b"PAR1")
    assert run(["runs"]) == 2
    told = capfd.readouterr()
    assert path.name in told.err and "1 file left out" in told.err
    assert told.out.count("01JD") == 3


def test_show_says_what_a_person_reads_and_everything_with_all(store: Store) -> None:
    run_id = make_record(1)["run_id"]
    text, everything = farline("show", run_id).stdout, farline("show", run_id, "--all").stdout
    read = ("2 streams", "2.00 Gbit/s", "sender's CPU", "campaign night", "alpha", "kernel 6.18.0")
    for part in (*read, "beta"):
        assert part in text and part in everything
    for part in ("net.core.rmem_max = 4194304", '"congestion_control": "reno"'):
        assert part not in text and part in everything
    assert f"farline show {run_id} --all prints host settings and all options" in text


def test_show_last_and_a_failure(store: Store) -> None:
    assert "failed: the server has no room" in farline("show", "last").stdout


def test_show_samples_and_json(store: Store) -> None:
    run_id = make_record(2)["run_id"]
    text = farline("show", run_id, "--samples").stdout
    assert "rtt_us" in text and "jitter_ns" not in text
    document = json.loads(farline("show", run_id, "--samples", "--json").stdout)
    assert document["record"] == json.loads(
        json.dumps(make_record(2, document["record"]["spec"], bps=4e9))
    )
    assert document["labels"] == LABELS
    assert document["samples"]["rtt_us"] == [120, 121, None, None]


@pytest.mark.parametrize(
    ("name", "line"),
    [("zzz", "no run 'zzz'"), ("01JD", "matches 4 runs: 01JD0000000000000000000000")],
)
def test_show_says_which_run_it_cannot_find(
    store: Store, capsys: pytest.CaptureFixture[str], name: str, line: str
) -> None:
    assert run(["show", name]) == 1
    assert line in capsys.readouterr().err


def test_export_csv_has_a_row_per_run(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    farline("export", "--format", "csv", "-o", str(path), "--campaign", "night")
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [row["streams"] for row in rows] == ["1", "2", "4"]
    assert [row["tcp.congestion_control"] for row in rows] == ["reno"] * 3
    assert float(rows[2]["total_bps"]) == 4e9
    assert "record" not in rows[0]


def test_an_unknown_campaign_leaves_the_output_file_alone(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("kept")
    assert run(["export", "--format", "csv", "-o", str(path), "--campaign", "mycamp"]) == 1
    assert path.read_text() == "kept"


def test_a_campaigns_own_name_means_the_newest_of_that_name(store: Store) -> None:
    ids = [f"mycamp-2026112{day}T200000-00a{day}" for day in (1, 2)]
    for number, campaign in enumerate([*ids, "mycamp-b-20261123T200000-0000"], 10):
        record = make_record(number, make_spec())
        store.append(RunBundle(record, make_samples(2), campaign=campaign, labels=LABELS))
    document = json.loads(farline("runs", "--campaign", "mycamp", "--json").stdout)
    assert [row["campaign"] for row in document["runs"]] == [ids[1]]
    assert store.campaign_name(ids[0]) == ids[0]


@pytest.mark.parametrize("width", [80, 100, 132, 200])
def test_a_run_is_one_line_whatever_the_width(store: Store, width: int) -> None:
    from rich.console import Console

    console = Console(width=width, record=True, file=io.StringIO())
    console.print(runs_table(store.runs().to_pylist(), width))
    shown = [line.rstrip() for line in console.export_text().splitlines() if line.strip()]
    assert len(shown) == 2 + 4 and "…" not in "".join(shown)
    assert "sender-cpu" in shown[2] and "1.00 Gbit/s" in shown[2] and "complete" in shown[2]
    name = shown[2].split()[0]
    assert make_record(0)["run_id"].endswith(name)
    assert ("server" in shown[0]) == (width >= 132)


def test_show_takes_the_end_of_a_name(store: Store) -> None:
    assert "2 streams" in farline("show", make_record(1)["run_id"][-8:]).stdout


def test_export_parquet_has_the_record_and_samples(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    farline("export", "--format", "parquet", "-o", str(path))
    table = pq.read_table(path)
    assert table.num_rows == 4
    assert json.loads(table["record"][0].as_py())["run_id"] == make_record(0)["run_id"]
    farline("export", "--format", "parquet", "--samples", "-o", str(path), "--where", "streams=4")
    samples = pq.read_table(path)
    assert set(samples["run_id"].to_pylist()) == {make_record(2)["run_id"]}
    assert samples["rtt_us"].to_pylist() == [120, 121, None, None]
    assert [item.name for item in tmp_path.iterdir() if item.suffix == ".tmp"] == []


def test_export_json_to_standard_output(store: Store) -> None:
    document = json.loads(farline("export", "--format", "json", "-o", "-", "--samples").stdout)
    assert [entry["campaign"] for entry in document["runs"]] == ["night"] * 3 + [None]
    assert document["runs"][0]["samples"]["bytes"] == [12_500_000] * 4
    assert document["runs"][3]["samples"]["bytes"] == []
    assert document["runs"][3]["record"]["error"]["kind"] == "busy"


def with_udt(store: Store) -> str:
    """Adds a UDT run of one stream; gives its name."""
    record = make_record(7, make_spec(transport="udt", udt={"congestion_control": "native"}))
    packet = {"granted": {"packet_bytes": 1472}}
    record["streams"] = [{"end": end, "stream": 0, "role": end, **packet} for end in (0, 1)]
    samples = make_samples(2)
    known = {"packets": 100, "retransmits": 3, "flight_packets": 40, "send_period_ns": 2_500}
    for name, value in known.items():
        samples[name] = np.where(samples["end"] == 0, value, -1)
    store.append(RunBundle(record, samples))
    return str(record["run_id"])


def test_show_perfmon_has_the_names_of_the_reference_library(store: Store) -> None:
    run_id = with_udt(store)
    assert "native" in farline("runs", "--transport", "udt").stdout
    text = farline("show", run_id, "--perfmon").stdout
    assert "client, stream 0 sends" in text and "server, stream 0 receives" in text
    assert "pktSentTotal 200, pktRetransTotal 6" in text
    assert "usPktSndPeriod" in text and "2.500" in text and "pktSndLoss" not in text
    document = json.loads(farline("show", run_id, "--perfmon", "--json").stdout)
    assert document["run_id"] == run_id
    assert document["perfmon"]["pktSentTotal"] == [100, 200, None, None]
    assert document["perfmon"]["pktFlightSize"] == [40, 40, None, None]


def test_show_perfmon_of_a_run_without_samples_is_refused(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    record = make_record(7, make_spec(transport="udt", udt={"congestion_control": "native"}))
    store.append(RunBundle(record, make_samples(0)))
    assert run(["show", record["run_id"], "--perfmon"]) in (1, 2)
    error = capsys.readouterr().err
    assert "has no samples" in error and error.count("\n") == 1


def test_export_perfmon_has_the_udt_runs_alone(store: Store, tmp_path: Path) -> None:
    run_id, path = with_udt(store), tmp_path / "perfmon.csv"
    farline("export", "--format", "csv", "--perfmon", "-o", str(path))
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert {row["run_id"] for row in rows} == {run_id}
    assert [row["pktSent"] for row in rows] == ["100", "100", "", ""]
    assert float(rows[0]["mbpsSendRate"]) == pytest.approx(100 * 1456 * 8 / 100_000)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["show", "last", "--perfmon"], "used udp: perfmon samples exist only for UDT"),
        (["show", "last", "--perfmon", "--samples"], "cannot be combined"),
        (["export", "--format", "csv", "-o", "-", "--perfmon", "--links"], "one table at a time"),
        (["runs", "--where", "strems=1"], "strems"),
        (["runs", "--since", "soon"], "an age"),
        (["runs", "--campaign", "nigh"], "no campaign 'nigh' in"),
        (["runs", "--store", "/nonexistent/store"], "no store here"),
        (["export", "--format", "xml", "-o", "x"], "csv"),
        (["export", "-o", "runs.xyz"], "unknown file type; name the file .csv, .parquet or .json"),
        (["export", "--format", "csv", "-o", "/nonexistent/x.csv"], "No such file"),
    ],
)
def test_refusals_are_one_line(
    store: Store, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    assert run(arguments) in (1, 2)
    error = capsys.readouterr().err
    assert line in error and error.startswith("farline: ") and error.count("\n") == 1
