"""`farline probe` above the engine: options in, text and documents out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from farline.campaign.measure import came_about
from farline.campaign.probe import busy_wait_s
from farline.campaign.settings import sampling_interval_s
from farline.cli import group, lines
from farline.cli.common import Interruption, target_text
from farline.spec._types import RunRecord, RunSpec
from farline.store.entry import RunBundle
from farline.tools import RunResult, StopQuestion, events
from farline.tools.native import NativeTool
from tests.support.blasts import blast, rbudp_record
from tests.support.runs import (
    CLIENT,
    RECEIVER,
    SENDER,
    SERVER,
    columns,
    int_columns,
    run_record,
    steady_rows,
    stream,
)

if TYPE_CHECKING:
    from farline.tools.events import Steps

GAUGES = {"retransmits": 0, "rtt_us": 40_000, "cwnd_bytes": 1 << 20, "process_cpu_us": 30_000}
GAUGES |= {"busy_us": 100_000, "cwnd_limited_us": 100_000}
GAUGES |= {"receive_window_limited_us": 0, "send_buffer_limited_us": 0, "flight_packets": 700}
Probe = Callable[..., tuple[int, str, str]]


def samples() -> dict[str, Any]:
    sent = steady_rows([800e6] * 100, end=CLIENT, role=SENDER, **GAUGES)
    return columns(sent + steady_rows([800e6] * 100, end=SERVER, role=RECEIVER))


@pytest.fixture
def asked() -> dict[str, Any]:
    return {}


@pytest.fixture
def probe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: dict[str, Any]
) -> Probe:
    def play(record: RunRecord, *arguments: str, silent: bool = False) -> tuple[int, str, str]:
        def run(
            _self: NativeTool, target: str, spec: RunSpec, _stop: StopQuestion
        ) -> Steps[RunResult]:
            asked.update(target=target, spec=spec)
            taken = columns([]) if silent else samples()
            yield from (events.Stage("HANDSHAKE"), events.StreamSamples(int_columns(taken)))
            return RunResult({**record, "spec": {**spec, **record["spec"]}}, taken)

        monkeypatch.setattr(NativeTool, "steps", run)
        code = group.run(["probe", "--no-store", *arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    return play


def test_text_has_intervals_summary_and_verdict(probe: Probe) -> None:
    code, out, _ = probe(run_record(), "far.example", "-t", "10")
    assert code == 0
    shown = out.splitlines()
    assert shown[0] == "tcp to far.example:5470, forward, 1 stream, block 128KiB, 10s"
    seconds = [line for line in shown if "800 Mbit/s" in line and " s" in line and "-" in line]
    assert "0.00-1.00 s" in seconds[0] and "40.0 ms" in seconds[0] and "30 %" in seconds[0]
    assert sum("00 s " in line for line in seconds) >= 10
    assert any(line.startswith("forward  800 Mbit/s total, 800 Mbit/s steady") for line in shown)
    assert any(line.startswith("limited by ") for line in shown)


def test_json_is_the_record_with_summary_and_verdict(probe: Probe) -> None:
    code, out, _ = probe(run_record(), "far.example", "--json")
    document = json.loads(out)
    assert (code, document["schema"], document["status"]) == (0, 1, "complete")
    assert document["summary"]["forward"]["total_bps"] == pytest.approx(8e8)
    assert document["verdict"]["limit"] in ("cwnd", "unknown", "application")


@pytest.mark.parametrize("flag", ["-J", "--json=iperf3"])
def test_the_iperf3_shape(probe: Probe, flag: str) -> None:
    code, out, _ = probe(run_record(), "-c", "far.example", flag)
    document = json.loads(out)
    assert (code, len(document["intervals"])) == (0, 10)
    assert document["end"]["sum_received"]["bits_per_second"] == pytest.approx(8e8)


def test_the_event_stream_is_one_object_a_line(probe: Probe) -> None:
    code, out, _ = probe(run_record(), "far.example", "--json-stream")
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [event["event"] for event in events] == ["start", *["interval"] * 10, "end"]
    assert events[-1]["data"]["farline"]["status"] == "complete"


@pytest.mark.parametrize("flag", ["--json", "-J", "--json-stream", "-V"])
def test_a_failed_run_prints_its_document_and_exits_with_its_code(probe: Probe, flag: str) -> None:
    error = {"kind": "unreachable", "message": "far.example:5470: connection refused"}
    record = run_record(status="failed", client=None, server=None, error=error)
    record["streams"] = []
    code, out, err = probe(record, "far.example", flag)
    assert code == 5
    assert "farline: far.example:5470: connection refused" in err
    if flag != "-V":
        told = [json.loads(line) for line in (out.splitlines() if "stream" in flag else [out])]
        assert any("connection refused" in json.dumps(document) for document in told)


def test_where_nothing_ran_there_is_one_line(probe: Probe) -> None:
    error = {"kind": "unreachable", "message": "far.example:5470: connection refused"}
    record = run_record(status="failed", client=None, server=None, error=error)
    record["streams"] = []
    code, out, err = probe(record, "far.example", silent=True)
    assert (code, out) == (5, "")
    assert err == "farline: far.example:5470: connection refused\n"


def test_where_nothing_ran_nothing_is_kept(tmp_path: Path) -> None:
    error = {"kind": "unreachable", "message": "connection refused"}
    failed = {**run_record(status="failed", error=error), "streams": []}
    assert not came_about(failed)
    assert came_about(run_record(status="failed", error=error))
    assert came_about(run_record())


def test_the_heading_of_udp_names_the_packet() -> None:
    spec: RunSpec = {"transport": "udp", "block_bytes": 65507, "udp": {"packet_bytes": 1000}}
    assert "packet 1000B" in lines.spec_line(spec, "a") and "block" not in lines.spec_line(
        spec, "a"
    )
    assert "packet size from the MTU" in lines.spec_line({"transport": "udp"}, "a")


def udt_record() -> RunRecord:
    packet: dict[str, Any] = {
        "packet_bytes": 1472,
        "mss_bytes": None,
        "congestion_control": "native",
    }
    return run_record(
        stream(CLIENT, SENDER, packets=686_810, retransmits=10, **packet),
        stream(SERVER, RECEIVER, packets=686_800, lost_packets=9, **packet),
        spec={"transport": "udt", "udt": {"packet_bytes": 1472, "congestion_control": "native"}},
    )


def test_a_udt_run_says_packets_window_flight_and_losses(probe: Probe) -> None:
    arguments = ["far.example", "--transport", "udt", "-C", "native", "--packet", "1472"]
    code, out, _ = probe(udt_record(), *arguments)
    shown = out.splitlines()
    assert (code, shown[0]) == (
        0,
        "udt to far.example:5470, forward, 1 stream, block 128KiB, packet 1472B, native, 10s",
    )
    heads = ["interval", "sent", "resent", "RTT", "cwnd", "flight", "lost", "CPU", "local"]
    assert shown[1].split() == heads
    assert "1.00 MiB           700" in shown[2]
    assert any(
        line
        == (
            "packets  686810 sent, 10 of them retransmissions (0.00146 %); 9 reported missing "
            "(0.00131 %)"
        )
        for line in shown
    )
    assert any("client: native, packets of 1472 B, UDP send buffer" in line for line in shown)


def test_a_udt_run_has_the_iperf3_shape_of_tcp(probe: Probe) -> None:
    _, out, _ = probe(udt_record(), "far.example", "--transport", "udt", "--json=iperf3")
    document = json.loads(out)
    assert document["start"]["test_start"]["protocol"] == "UDT"
    assert document["end"]["sum_sent"]["retransmits"] == 10
    assert document["intervals"][0]["streams"][0]["snd_cwnd"] == 1 << 20


def test_an_interrupted_run_is_130_with_its_partial_record(probe: Probe) -> None:
    error = {"kind": "interrupted", "message": "stopped by the user"}
    code, out, _ = probe(run_record(status="partial", error=error), "far.example", "--json")
    assert (code, json.loads(out)["status"]) == (130, "partial")


def test_letters_reach_the_engine(probe: Probe, asked: dict[str, Any]) -> None:
    probe(
        run_record(), "far.example", "-p", "7000", "-P", "4", "-R", "-i", "0.5", "--zerocopy=splice"
    )
    spec = asked["spec"]
    assert asked["target"] == "far.example:7000"
    assert (spec["streams"], spec["direction"], spec["interval_s"]) == (4, "reverse", 0.5)
    assert spec["tcp"]["send_mode"] == "splice"


@pytest.mark.parametrize(
    ("duration_s", "interval_s"), [(None, 0.1), (0.1, 0.05), (2, 0.05), (10, 0.1), (3600, 1.0)]
)
def test_without_an_interval_there_are_enough_samples_and_not_too_many(
    duration_s: float | None, interval_s: float
) -> None:
    assert sampling_interval_s(duration_s) == interval_s
    if duration_s and duration_s >= 2.5:
        assert duration_s / interval_s >= 50


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "no host is named"),
        (["a", "-c", "b"], "two hosts"),
        (["a:1", "-p", "2"], "already includes the port"),
        (["a", "--json", "-J"], "use only one of"),
        (["a", "--json=xml"], "allowed: --json"),
        (["a", "--store", "x"], "cannot be combined"),
        (["a", "-t", "1", "-n", "1M"], "-n: cannot be combined with -t"),
        (["a", "-u", "-C", "bbr"], "works only with transport tcp; the transport is udp"),
    ],
)
def test_contradictions_are_refused_in_one_line(
    probe: Probe, arguments: list[str], reason: str
) -> None:
    code, _, err = probe(run_record(), *arguments)
    assert (code, err.count("\n")) == (1, 1)
    assert reason in err


def test_the_run_is_kept(
    probe: Probe, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: dict[str, Any]
) -> None:
    kept: list[Mapping[str, Any]] = []

    class Store:
        def __init__(self, path: Path) -> None:
            assert path == tmp_path

        def append(self, run: RunBundle) -> None:
            kept.append(run.record)

    monkeypatch.setattr("farline.store.Store", Store)
    probe(run_record())  # without a host: nothing runs
    assert group.run(["probe", "far.example", "--json", "--store", str(tmp_path)]) == 0
    assert [record["verdict"]["limit"] for record in kept] == [kept[0]["verdict"]["limit"]]


def test_targets_with_and_without_ports() -> None:
    assert target_text("::1", None, 7) == "[::1]:7"
    assert target_text("[::1]", None, 7) == "[::1]:7"
    assert target_text(None, "h", None) == "h"


def test_signals_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    asked = Interruption(quiet=False)
    answers = [int(asked())]
    for _ in range(3):
        asked.ask(2, None)
        answers.append(int(asked()))
    assert answers == [0, 1, 2, 2]
    assert capsys.readouterr().err.count("press Ctrl-C again") == 1


def test_sparkline_and_granted_lines() -> None:
    assert lines.sparkline([0, 1, 2]) == "▁▄█"
    assert lines.sparkline([0, 0]) == "▁▁"
    record = run_record(
        stream(CLIENT, SENDER, notes=["mss 9000 refused"]), server_notes=["rate 1G"]
    )
    granted = lines.granted_lines(record)
    assert granted[0].startswith("client: cubic, MSS 1448")
    assert granted[1:] == ["client: mss 9000 refused", "server: rate 1G"]


def test_a_file_says_how_much_an_rbudp_probe_sends(
    probe: Probe, asked: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "payload").write_bytes(b"x" * 12_345)
    named = ["far.example", "--transport", "rbudp", "-b", "1G", "-F", str(tmp_path / "payload")]
    assert probe(rbudp_record(blast()), *named)[0] == 0
    assert (asked["spec"]["total_bytes"], asked["spec"].get("duration_s")) == (12_345, None)
    probe(rbudp_record(blast()), *named, "-n", "1000")
    assert asked["spec"]["total_bytes"] == 1_000
    code, _, err = probe(rbudp_record(blast()), *named[:-1], str(tmp_path / "missing"))
    assert (code, err.count("\n")) == (1, 1) and "no such file or directory" in err


def test_an_rbudp_probe_takes_iperf3s_letters(probe: Probe, asked: dict[str, Any]) -> None:
    letters = ["-b", "2G", "-n", "1G", "-w", "4M", "--gsro", "-P", "2", "--payload", "32M"]
    probe(rbudp_record(blast()), "far.example", "--transport", "rbudp", *letters)
    spec = asked["spec"]
    assert (spec["rate_bps"], spec["total_bytes"], spec["streams"]) == (2 * 10**9, 1 << 30, 2)
    options = spec["rbudp"]
    assert options["udp_send_buffer_bytes"] == options["udp_receive_buffer_bytes"] == 4 << 20
    assert options["payload_bytes"] == 32 << 20 and options["gso"]


def test_an_rbudp_probe_needs_a_rate(probe: Probe) -> None:
    code, _, err = probe(rbudp_record(blast()), "far.example", "--transport", "rbudp")
    assert (code, err.count("\n")) == (1, 1) and "--rate: rbudp sends at a stated rate" in err


@pytest.mark.parametrize(
    ("error", "tried", "wait_s"),
    [
        ({"kind": "busy"}, 0, 1.0),
        ({"kind": "busy", "retry_after_s": 3.0}, 0, 3.0),
        ({"kind": "busy"}, 2, 4.0),
        ({"kind": "busy"}, 3, None),
        ({"kind": "busy", "retry_after_s": 40.0}, 0, None),
        ({"kind": "auth"}, 0, None),
        (None, 0, None),
    ],
)
def test_a_server_that_is_busy_for_a_moment_is_asked_again(
    error: dict[str, object] | None, tried: int, wait_s: float | None
) -> None:
    assert busy_wait_s({"error": error}, tried) == wait_s
