"""`farline probe` against a real server on loopback: every output, every ending."""

from __future__ import annotations

import json
import re
import signal
import time
from itertools import islice
from pathlib import Path

import pytest

from tests.loopback.conftest import Start, record_of
from tests.support.serving import Serving, farline


@pytest.mark.parametrize("transport", ["tcp", "udp", "udt", "quic", "null"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_every_transport_in_every_direction(
    home: Path, server: Serving, transport: str, direction: str
) -> None:
    record = record_of(
        home, server.ticket, "--transport", transport, "--direction", direction, "-t", "0.5",
        "-P", "2", "-b", "50M" if transport == "udp" else "0", "--no-store",
    )  # fmt: skip
    assert (record["status"], record.get("error")) == ("complete", None)
    for way in ("forward", "reverse"):
        runs = direction in (way, "bidirectional")
        throughput = record["summary"][way]
        assert (throughput is not None) == runs
        assert not runs or throughput["total_bps"] > 0
    assert record["verdict"]["line"]
    ends = 2 if direction != "bidirectional" else 4
    assert len(record["streams"]) == 2 * ends


def test_what_was_sent_is_what_came(home: Path, server: Serving) -> None:
    record = record_of(home, server.ticket, "-n", "64M", "-P", "2", "--no-store")
    received = sum(s["bytes"] for s in record["streams"] if s["role"] == 1)
    assert received == 64 << 20
    assert record["summary"]["forward"]["bytes"] == 64 << 20


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_user_timeout_stands_in_the_record_and_harms_no_run_that_moves(
    home: Path, server: Serving, direction: str
) -> None:
    record = record_of(
        home, server.ticket, "--user-timeout", "5s", "--direction", direction, "-t", "0.5",
        "--no-store",
    )  # fmt: skip
    assert record["status"] == "complete"
    assert record["spec"]["tcp"]["user_timeout_ms"] == 5000
    notes = [note for stream in record["streams"] for note in stream["granted"]["notes"]]
    assert not [note for note in notes if note.startswith("user timeout")]


@pytest.mark.alone
def test_a_rate_is_kept_and_named_as_the_limit(home: Path, server: Serving) -> None:
    record = record_of(home, server.ticket, "-b", "200M", "-t", "2", "--no-store")
    assert record["summary"]["forward"]["total_bps"] == pytest.approx(200e6, rel=0.05)
    assert record["verdict"]["limit"] == "rate"


def test_the_iperf3_shape_of_a_real_run(home: Path, server: Serving) -> None:
    done = farline(home, "probe", server.ticket, "-J", "-t", "1", "--no-store")
    document = json.loads(done.stdout)
    end = document["end"]
    assert end["sum_received"]["bits_per_second"] > 0
    assert end["sum_sent"]["bytes"] >= end["sum_received"]["bytes"]
    assert document["intervals"][0]["sum"]["bits_per_second"] > 0
    assert document["start"]["connected"][0]["remote_host"] == "127.0.0.1"
    assert end["sender_tcp_congestion"]


def test_text_is_plain_where_there_is_no_terminal(home: Path, server: Serving) -> None:
    done = farline(home, "probe", server.ticket, "-t", "1", "-i", "0.5", "--no-store")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    shown = done.stdout.splitlines()
    intervals = re.findall(r"^ +(\d\.\d\d-\d\.\d\d) s ", done.stdout, re.MULTILINE)
    # On a busy machine a run may end a little late, in an interval of its own.
    assert intervals[:2] == ["0.00-0.50", "0.50-1.00"] and len(intervals) <= 3
    assert any(line.startswith("forward ") and "total" in line for line in shown)
    assert any(line.startswith("limited by") or "no single limit" in line for line in shown)


def test_probes_are_kept_and_listed(home: Path, server: Serving) -> None:
    record = record_of(home, server.ticket, "-t", "0.2", "--title", "kept")
    listed = farline(home, "runs", "--json")
    assert listed.returncode == 0, listed.stderr
    assert record["run_id"] in listed.stdout


@pytest.mark.parametrize("transport", ["tcp", "udt"])
@pytest.mark.parametrize("signals", [1, 2])
def test_ctrl_c_leaves_a_valid_partial_record(
    home: Path, server: Serving, start: Start, transport: str, signals: int
) -> None:
    words = ("--transport", transport, "--json-stream", "-i", "0.1", "--no-store")
    process = start(home, "probe", server.ticket, *words, "-t", "60")
    assert process.stdout is not None and process.stderr is not None
    events = map(json.loads, process.stdout)
    begun = list(islice((one for one in events if one["event"] == "interval"), 3))
    assert len(begun) == 3, process.stderr.read()
    process.send_signal(signal.SIGINT)
    assert any("press Ctrl-C again to stop immediately" in line for line in process.stderr)
    if signals == 2:
        process.send_signal(signal.SIGINT)
    *_, last = events
    record = last["data"]["farline"]
    assert (process.wait(timeout=20), record["status"]) == (130, "partial")
    assert record["error"]["kind"] == "interrupted"
    if signals == 1:
        assert record["summary"]["forward"]["bytes"] > 0
    again = record_of(home, server.ticket, "--transport", transport, "-t", "0.3", "--no-store")
    assert again["status"] == "complete", "the server was reset"


def test_nobody_there_is_a_failed_record_and_exit_5(home: Path) -> None:
    done = farline(home, "probe", "127.0.0.1:1", "--json", "--no-store")
    record = json.loads(done.stdout)
    assert (done.returncode, record["status"], record["error"]["kind"]) == (
        5,
        "failed",
        "unreachable",
    )
    assert done.stderr.count("\n") == 1


def test_nobody_there_is_one_line_and_nothing_kept(tmp_path: Path) -> None:
    done = farline(tmp_path, "probe", "127.0.0.1:1", "--store", str(tmp_path / "store"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)
    assert done.stderr.startswith("farline: ")
    listed = farline(tmp_path, "runs", "--json", "--store", str(tmp_path / "store"))
    assert json.loads(listed.stdout)["runs"] == []


def test_without_a_ticket_nothing_is_served(home: Path, server: Serving) -> None:
    done = farline(home, "probe", server.address, "--json", "--no-store")
    record = json.loads(done.stdout)
    assert (done.returncode, record["error"]["kind"]) == (4, "auth")
    assert record["streams"] == []


def test_a_remembered_ticket_opens_the_door(home: Path, server: Serving) -> None:
    assert farline(home, "trust", server.ticket).returncode == 0
    try:
        done = farline(home, "probe", server.address, "-t", "0.2", "--no-store")
        assert done.returncode == 0, done.stderr
    finally:
        assert farline(home, "trust", "--forget", server.address).returncode == 0


def test_a_ticket_from_the_environment_opens_the_door(home: Path, server: Serving) -> None:
    done = farline(
        home, "probe", server.address, "-t", "0.2", "--no-store", FARLINE_TICKET=server.ticket
    )
    assert done.returncode == 0, done.stderr


def test_a_ticket_made_beside_the_server_works(home: Path, server: Serving) -> None:
    host, _, port = server.address.rpartition(":")
    made = farline(
        home, "ticket", host, "-p", port, "--limit-time", "1s", "--state-dir", str(home / "state")
    )
    ticket = made.stdout.strip()
    assert ticket.startswith("farline://"), made.stderr
    assert farline(home, "probe", ticket, "-t", "0.2", "--no-store").returncode == 0
    beyond = farline(home, "probe", ticket, "-t", "5", "--no-store")
    assert beyond.returncode in (0, 8), beyond.stderr


@pytest.mark.alone
def test_help_answers_at_once(home: Path) -> None:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        assert farline(home, "--help").returncode == 0
        times.append(time.perf_counter() - began)
    assert min(times) < 0.15
