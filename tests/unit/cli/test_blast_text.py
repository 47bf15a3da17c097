"""What people see of an RBUDP run: intervals, blasts, the path beforehand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from farline.campaign.measure import Measured
from farline.cli import lines
from farline.cli.blast_text import blast_document, blast_lines, blast_table_text
from farline.cli.group import cli
from farline.cli.live import LiveView
from farline.cli.runs_table import runs_table
from farline.cli.views import PlainView
from farline.findings.verdict import verdict
from farline.profiles.iperf3_document import iperf3_document
from farline.profiles.summary import summarise
from farline.spec._types import RunRecord, RunSpec
from farline.store import Store
from farline.store.entry import RunBundle
from farline.tools import events
from tests.support.blasts import blast, path_check, rbudp_record
from tests.support.records import make_record, make_samples
from tests.support.runs import (
    CLIENT,
    RECEIVER,
    SENDER,
    SERVER,
    Columns,
    columns,
    int_columns,
    steady_rows,
)

SPEC: RunSpec = {
    "transport": "rbudp", "rate_bps": 610_000_000, "duration_s": 10.0,
    "rbudp": {"payload_bytes": 64 << 20, "in_flight": 8, "receiver": "gather"},
}  # fmt: skip
HEADS = "interval sent missing repeated RTT CPU local"


def samples() -> Columns:
    gauges = {"retransmits": 12, "lost_packets": 11, "rtt_us": 110_000, "process_cpu_us": 30_000}
    sent = steady_rows([600e6] * 100, end=CLIENT, role=SENDER, **gauges)
    return columns(sent + steady_rows([600e6] * 100, end=SERVER, role=RECEIVER))


def finished(count: int = 2) -> Measured:
    record = rbudp_record(*[blast(lost=460, passes=2)] * count, check=path_check(290e6))
    whole: RunRecord = {**record, "summary": summarise(record, samples())}
    return Measured({**whole, "verdict": verdict(whole, samples())}, samples())


def test_the_heading_names_what_makes_a_blast() -> None:
    assert lines.spec_line(SPEC, "far:5470") == (
        "rbudp to far:5470, forward, 1 stream, packet size from the MTU, blasts of 64MiB, 8 at "
        "once, receiver gather, rate 610Mbit/s per stream, 10s"
    )
    spec: RunSpec = {"transport": "rbudp", "rbudp": {"packet_bytes": 1472, "file": "/data/x"}}
    assert "packet 1472B, file /data/x" in lines.spec_line(spec, "far:5470")


def test_a_run_shows_rate_missing_repeated_and_its_blasts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view, measured = PlainView(1.0, verbose=False), finished()
    view.start(SPEC, "far:5470")
    view.event(events.StreamSamples(int_columns(measured.samples)))
    view.finish(measured)
    shown = capsys.readouterr().out.splitlines()
    assert " ".join(shown[1].split()) == HEADS
    assert shown[2].split()[2:] == ["600", "Mbit/s", "110", "120", "110", "ms", "30", "%"]
    assert any(
        line.startswith("packets  516029 sent, ") and "920 of them retransmissions" in line
        for line in shown
    )
    assert any("path     before the blast the path carried 290 Mbit/s" in line for line in shown)
    assert any(line.startswith("limited by shared path: it carried 290") for line in shown)
    assert "blasts   2 blasts of up to 64.0 MiB, 2 passes on average, at most 2; " in "\n".join(
        shown
    )
    assert any("UDP send buffer 8.00 MiB" in line for line in shown)
    table = [line for line in shown if "64.0 MiB" in line and "880 ms" in line]
    assert [line.split()[0] for line in table] == ["0", "1"]
    assert " ".join(table[0].split()) == "0 64.0 MiB 2 460 (0.998 %) 460 880 ms 610 Mbit/s"


def test_the_live_table_fits_into_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    view, measured = LiveView(1.0, verbose=False), finished(300)
    view.start(SPEC, "far:5470")
    view.event(events.StreamSamples(int_columns(measured.samples)))
    view.finish(measured)
    view.close()
    shown = capsys.readouterr().out.splitlines()
    rows = [line for line in shown if "64.0 MiB" in line and "880 ms" in line]
    heads = next(line for line in shown if "missing" in line and "RTT" in line)
    assert "CPU remote" in heads and all(len(line) <= 80 for line in (*rows, heads))


def test_many_blasts_are_shown_by_their_first_and_last() -> None:
    shown = blast_table_text(finished(20).record)
    assert [line.split()[0] for line in shown[1:]] == ["0", "1", "2", "3", "-", "17", "18", "19"]


def test_as_many_blasts_as_fit_are_shown_whole() -> None:
    shown = blast_table_text(finished(8).record)
    assert [line.split()[0] for line in shown[1:]] == [str(number) for number in range(8)]
    assert blast_table_text(rbudp_record()) == [] and blast_lines(rbudp_record()) == []


def test_blasts_that_no_row_was_kept_of_are_said() -> None:
    record = rbudp_record(blast(), sender={"whole_blasts": 700})
    assert blast_table_text(record)[-1] == "699 more blasts, whose details were not kept"


def test_streams_and_senders_are_told_apart() -> None:
    record = rbudp_record(blast())
    back = rbudp_record(blast(lost=9))["streams"]
    for stream, end in zip(back, (SERVER, CLIENT), strict=True):
        stream["stream"], stream["end"] = 1, end
    record["streams"] += back
    shown = blast_table_text(record)
    assert shown[0].split()[:2] == ["stream", "blast"] and len(shown[0]) < 80
    assert [line.split()[:3] for line in shown[1:]] == [["0", "out", "0"], ["1", "in", "0"]]
    assert [row["sender"] for row in blast_document(record)["blasts"]] == ["client", "server"]


def test_the_iperf3_shape_is_that_of_tcp() -> None:
    record = finished().record
    record["spec"]["rbudp"] = {"udp_send_buffer_bytes": 1 << 20}
    document = iperf3_document(record, samples(), 1.0)
    assert document["start"]["test_start"]["protocol"] == "RBUDP"
    assert document["start"]["sock_bufsize"] == 1 << 20
    assert document["end"]["sum_sent"]["retransmits"] == 920
    assert document["intervals"][0]["sum"]["retransmits"] == 120


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    store = Store()
    store.append(RunBundle(make_record(0), make_samples(2)))
    rbudp = {"payload_bytes": 32 << 20, "loss_bound": 0.05}
    for number, blasts in ((1, [blast(lost=7)] * 12), (2, [])):
        record = {**rbudp_record(*blasts, rbudp=rbudp), "run_id": f"01JD{number:022d}"}
        store.append(RunBundle(record, samples()))
    return store


def farline(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_show_has_every_blast(store: Store) -> None:
    shown = farline("show", "0001", "--blasts")
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == [
        str(number) for number in range(12)
    ]
    document = json.loads(farline("show", "0001", "--blasts", "--json").stdout)
    assert (document["schema"], document["whole_blasts"], len(document["blasts"])) == (1, 12, 12)
    first = document["blasts"][0]
    assert (first["stream"], first["sender"], first["number"]) == (0, "client", 0)
    assert first["first_pass_lost_packets"] == 7 and first["throughput_bps"] > 600e6


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["0000", "--blasts"], "used tcp: blasts exist only for RBUDP"),
        (["0002", "--blasts"], "no blast completed"),
        (["0001", "--blasts", "--samples"], "cannot be combined"),
    ],
)
def test_where_there_are_no_blasts_a_line_says_so(
    store: Store, arguments: list[str], reason: str
) -> None:
    from farline.cli.group import run

    result = CliRunner().invoke(cli, ["show", *arguments])
    assert reason in result.output or reason in str(result.exception)
    assert run(["show", *arguments]) == 1


def test_runs_list_the_payload_and_filter_by_transport_and_bound(store: Store) -> None:
    rows = store.runs().to_pylist()
    assert [row["rbudp.loss_bound"] for row in rows] == [None, 0.05, 0.05]
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as taken:
        console.print(runs_table(rows, 200))
    assert "32MiB" in taken.get() and "128KiB" in taken.get()
    listed = json.loads(farline("runs", "--json", "--transport", "rbudp").stdout)["runs"]
    assert len(listed) == 2
    listed = json.loads(farline("runs", "--json", "--where", "rbudp.loss_bound=5%").stdout)["runs"]
    assert len(listed) == 2
