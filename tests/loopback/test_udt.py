"""UDT between two real ends on loopback: every direction, every ending, what is kept of it."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import conftest
from tests.loopback.conftest import Start, results_of, rows_of
from tests.support.serving import Serving, farline, serving

UDT = ("--transport", "udt")
GOING_ON = (*UDT, "--json", "--no-store", "-t", "60")


def record_of(home: Path, ticket: str, *arguments: str) -> dict[str, Any]:
    """The record of a run over UDT, which must be complete."""
    record = conftest.record_of(home, ticket, *UDT, "--no-store", *arguments)
    assert (record["status"], record.get("error")) == ("complete", None)
    return record


def streams_of(record: dict[str, Any], role: int) -> list[dict[str, Any]]:
    return [stream for stream in record["streams"] if stream["role"] == role]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("streams", [1, 3])
def test_every_direction_with_one_stream_and_several(
    home: Path, server: Serving, direction: str, streams: int
) -> None:
    record = record_of(
        home, server.ticket, "--direction", direction, "-P", str(streams), "-t", "0.6"
    )
    for way in ("forward", "reverse"):
        throughput = record["summary"][way]
        assert (throughput is not None) == (direction in (way, "bidirectional"))
        assert throughput is None or throughput["total_bps"] > 1e7
    senders = streams_of(record, 0)
    assert len(senders) == streams * (2 if direction == "bidirectional" else 1)
    assert all(stream["packets"] > 0 and stream["min_rtt_us"] > 0 for stream in senders)
    assert record["summary"]["sent_packets"] == sum(stream["packets"] for stream in senders)
    assert record["summary"]["retransmits"] is not None
    assert record["verdict"]["line"]


@pytest.mark.parametrize(
    "arguments",
    [(), ("-l", "1455", "--packet", "1472"), ("-P", "4", "-R"), ("-l", "3M", "-w", "1M")],
)
def test_what_was_sent_is_what_came(
    home: Path, server: Serving, arguments: tuple[str, ...]
) -> None:
    record = record_of(home, server.ticket, "-n", "32M", *arguments)
    for role in (0, 1):
        assert sum(stream["bytes"] for stream in streams_of(record, role)) == 32 << 20


@pytest.mark.alone
@pytest.mark.parametrize("control", ["bbr", "native", "reno", "fixed"])
def test_every_control_moves_bytes_and_is_granted(
    home: Path, server: Serving, control: str
) -> None:
    rate = ("-b", "200M") if control == "fixed" else ()
    record = record_of(home, server.ticket, "-C", control, "-t", "1", "--packet", "1472", *rate)
    for stream in record["streams"]:
        assert stream["granted"]["packet_bytes"] == 1472
    assert all(s["granted"]["congestion_control"] == control for s in streams_of(record, 0))
    assert record["summary"]["forward"]["total_bps"] > 5e7


@pytest.mark.alone
def test_a_rate_is_kept_and_named_as_the_limit(home: Path, server: Serving) -> None:
    record = record_of(home, server.ticket, "-b", "200M", "-t", "2")
    assert record["summary"]["forward"]["total_bps"] == pytest.approx(200e6, rel=0.1)
    assert record["verdict"]["limit"] == "rate"


def test_a_small_buffer_is_granted_and_the_run_goes_on(home: Path, server: Serving) -> None:
    record = record_of(
        home, server.ticket, "-w", "100K", "--flow-window", "32", "--packet", "1472", "-t", "1"
    )
    assert record["summary"]["forward"]["total_bps"] > 1e7


def test_ipv6_works_as_ipv4_does(tmp_path: Path) -> None:
    with serving(tmp_path, listen="::1") as running:
        record = record_of(tmp_path, running.ticket, "-t", "0.4", "-P", "2")
    assert all(stream["granted"]["local"].startswith("[::1]") for stream in record["streams"])


def test_a_rate_the_server_allows_is_not_exceeded(tmp_path: Path) -> None:
    with serving(tmp_path, "--anonymous", "--anonymous-rate", "100M") as running:
        for way in ("forward", "reverse"):
            record = record_of(tmp_path, running.address, "--direction", way, "-t", "1")
            assert 1e6 < record["summary"][way]["total_bps"] < 120e6


def test_a_time_the_server_does_not_allow_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path, "--limit-time", "1s") as running:
        assert record_of(tmp_path, running.ticket, "-t", "0.3")["streams"]
        done = farline(tmp_path, "probe", running.ticket, *UDT, "-t", "5", "--no-store")
    assert done.returncode == 8, done.stderr
    assert "5 s requested, but the server allows up to 1 s" in done.stderr


def test_text_shows_what_a_udt_run_has(home: Path, server: Serving) -> None:
    done = farline(home, "probe", server.ticket, *UDT, "-t", "1", "-i", "0.5", "--no-store")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    assert shown[0].startswith("udt to ") and "bbr" in shown[0]
    assert "resent" in shown[1] and "flight" in shown[1] and "lost" in shown[1]
    intervals = re.findall(r"^ +(\d\.\d\d-\d\.\d\d) s ", done.stdout, re.MULTILINE)
    # On a busy machine a run may end a little late, in an interval of its own.
    assert intervals[:2] == ["0.00-0.50", "0.50-1.00"] and len(intervals) <= 3
    assert any(re.match(r"packets +\d+ sent, \d+ of them retransmissions", line) for line in shown)


def test_the_iperf3_shape_of_a_real_run(home: Path, server: Serving) -> None:
    done = farline(home, "probe", server.ticket, *UDT, "--json=iperf3", "-t", "1", "--no-store")
    document = json.loads(done.stdout)
    assert document["start"]["test_start"]["protocol"] == "UDT"
    assert document["end"]["sum_received"]["bits_per_second"] > 1e7
    assert document["end"]["sum_sent"]["retransmits"] >= 0
    assert document["intervals"][0]["streams"][0]["rtt"] > 0


def test_a_kept_run_shows_perfmon_at_both_ends(home: Path, server: Serving) -> None:
    done = farline(home, "probe", server.ticket, *UDT, "-t", "1", "-i", "0.2", "--json")
    record = json.loads(done.stdout)
    shown = farline(home, "show", record["run_id"], "--perfmon", "--json")
    assert shown.returncode == 0, shown.stderr
    table: dict[str, list[Any]] = json.loads(shown.stdout)["perfmon"]
    sends = [index for index, role in enumerate(table["role"]) if role == 0]
    receives = [index for index, role in enumerate(table["role"]) if role == 1]
    assert len(sends) >= 5 and len(receives) >= 5
    last, there = sends[-1], receives[-1]
    assert table["pktSentTotal"][last] == streams_of(record, 0)[0]["packets"]
    assert table["pktRecvTotal"][there] == streams_of(record, 1)[0]["packets"]
    assert table["pktRecvACKTotal"][last] > 0 and table["pktSentACKTotal"][there] > 0
    for name in ("msRTT", "pktCongestionWindow", "pktFlowWindow", "byteAvailSndBuf"):
        assert table[name][sends[1]] > 0, name
    assert all(table["byteAvailRcvBuf"][index] >= 0 for index in receives)


def test_a_killed_client_leaves_the_server_ready(home: Path, server: Serving, start: Start) -> None:
    process = start(home, "probe", server.ticket, *GOING_ON, "-P", "2", "--bidir")
    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=2)
    process.kill()
    process.communicate()
    record_of(home, server.ticket, "-t", "0.3")


def test_a_killed_server_is_a_failure_in_a_moment(tmp_path: Path, start: Start) -> None:
    with serving(tmp_path) as running:
        process = start(tmp_path, "probe", running.ticket, *GOING_ON)
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=2)
        running.process.kill()
        began = time.monotonic()
        out, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert process.returncode not in (0, 130)
    assert json.loads(out)["status"] in ("partial", "failed")


def test_a_campaign_varies_udt_beside_tcp(server: Serving, tmp_path: Path) -> None:
    results_of(
        tmp_path,
        server.ticket,
        """
        [campaign]
        repetitions = 2
        [fixed]
        duration_s = 0.4
        [grid]
        transport = ["tcp", "udt"]
        streams = [1, 2]
        [grid.udt]
        congestion_control = ["bbr", "native"]
        [fixed.udt]
        packet_bytes = 1472
        """,
        "--report",
        str(tmp_path / "report"),
    )
    rows = rows_of(tmp_path / "store", transport="udt")
    assert {row["udt.packet_bytes"] for row in rows} == {1472}
    assert {row["udt.congestion_control"] for row in rows} == {"bbr", "native"}
    assert all(row["retransmits"] is not None and row["sent_packets"] > 0 for row in rows)
    assert (tmp_path / "report" / "report.html").stat().st_size > 10_000
