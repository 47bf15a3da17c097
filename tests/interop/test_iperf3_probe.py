"""`farline probe iperf3://HOST` against iperf3's own server."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import _iperf3_sets as sets
from farline.cli import group
from farline.tools import never_stop
from farline.tools.native import Iperf3Server, NativeTool

PROGRAM = sets.client()
LOOPBACK = "127.0.0.1"
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="iperf3 is missing: apt-get install iperf3")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """iperf3's own server."""
    assert PROGRAM is not None
    number = free_port()
    server = subprocess.Popen(
        [PROGRAM.path, "-s", "-p", str(number), "-B", LOOPBACK],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection((LOOPBACK, number), 1).close()
            break
        except OSError:
            time.sleep(0.05)
    time.sleep(0.3)
    yield number
    server.kill()
    server.wait()


def once(port: int, spec: Any) -> Any:
    return NativeTool().run(f"iperf3://{LOOPBACK}:{port}", spec, lambda _: None, never_stop)


def measure(port: int, **spec: Any) -> Any:
    """One run; iperf3's server may be busy with the end of the last for a moment."""
    for attempt in range(20):
        result = once(port, spec)
        error = result.record.get("error")
        if error is None or error["kind"] != "busy" or attempt == 19:
            return result
        time.sleep(0.2)
    raise AssertionError


TCP: dict[str, Any] = {"tcp": {"congestion_control": "cubic"}}
UDP: dict[str, Any] = {"transport": "udp", "duration_s": 1.0}
CASES: dict[str, dict[str, Any]] = {
    "tcp": {"duration_s": 1.0, "rate_bps": 50_000_000, **TCP},
    "tcp reverse": {"duration_s": 1.0, "direction": "reverse", "rate_bps": 50_000_000, **TCP},
    "tcp both ways": {"duration_s": 1.0, "direction": "bidirectional", "rate_bps": 50_000_000},
    "tcp parallel": {"duration_s": 1.0, "streams": 3, "rate_bps": 20_000_000},
    "tcp bytes": {"total_bytes": 20_000_000},
    "tcp bytes reverse": {"total_bytes": 20_000_000, "direction": "reverse"},
    "tcp omitted": {"duration_s": 0.5, "omit_s": 0.5, "rate_bps": 50_000_000},
    "udp": {"transport": "udp", "duration_s": 1.0, "rate_bps": 20_000_000},
    "udp reverse": {**UDP, "rate_bps": 20_000_000, "direction": "reverse"},
    "udp parallel": {**UDP, "rate_bps": 5_000_000, "streams": 2},
    "udp both ways": {**UDP, "rate_bps": 5_000_000, "direction": "bidirectional"},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_run_has_our_samples_and_the_servers_counts(name: str, port: int) -> None:
    spec = CASES[name]
    result = measure(port, interval_s=0.1, **spec)
    record = result.record
    assert record["status"] == "complete", record["error"]
    assert len(next(iter(result.samples.values()))) > 3 or "total_bytes" in spec
    ways = 2 if spec.get("direction") == "bidirectional" else 1
    assert len(record["streams"]) == 2 * ways * spec.get("streams", 1)
    by_role = [[s for s in record["streams"] if s["role"] == role] for role in (0, 1)]
    sent, received = (sum(s["bytes"] for s in streams) for streams in by_role)
    assert received > 0 and sent >= received
    if name == "tcp bytes":
        # Its server reads no more once it hears of the end: its buffers then do not count.
        assert sent == spec["total_bytes"]
    if "rate_bps" in spec and ways == 1:
        wanted = spec["rate_bps"] * spec.get("streams", 1)
        sender = by_role[0]
        rate = sum(s["bytes"] * 8e6 / s["elapsed_us"] for s in sender)
        assert 0.25 * wanted < rate < 1.25 * wanted
    if spec.get("transport") == "udp":
        assert all(s["packets"] > 0 for s in record["streams"])
    # What an iperf3 server does not tell is not made up.
    assert record["server"]["host"]["hostname"] == ""
    assert record["server"]["cpu"]["wall_s"] > 0


def test_the_command_judges_and_keeps_it(
    port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", str(tmp_path)]
    target = f"iperf3://{LOOPBACK}:{port}"
    time.sleep(0.5)
    assert group.run(["probe", target, "-t", "1", "-b", "50M", *store]) == 0
    said = capsys.readouterr().out
    assert "limited by" in said.lower() or "rate" in said
    assert group.run(["show", "last", *store]) == 0
    assert f"{LOOPBACK}:{port}" in capsys.readouterr().out
    assert group.run(["runs", *store]) == 0


def test_what_an_iperf3_server_does_not_have_is_refused_by_name(port: int) -> None:
    record = measure(port, transport="udt").record
    assert record["error"]["kind"] == "spec" and record["error"]["message"].startswith("transport")


def test_a_busy_server_is_said_to_be_busy(port: int) -> None:
    assert PROGRAM is not None
    time.sleep(0.5)
    other = subprocess.Popen(
        [PROGRAM.path, "-c", LOOPBACK, "-p", str(port), "-t", "3", "-b", "1M"],
        stdout=subprocess.DEVNULL,
    )
    try:
        time.sleep(0.5)
        result = NativeTool().run(
            f"iperf3://{LOOPBACK}:{port}", {"duration_s": 1.0}, lambda _: None, never_stop
        )
        error = result.record["error"]
        assert error is not None and error["kind"] == "busy"
    finally:
        other.wait()


def test_a_server_that_is_no_iperf3_is_named() -> None:
    with socket.create_server((LOOPBACK, 0)) as stranger:
        number = stranger.getsockname()[1]

        def answer() -> None:
            there, _ = stranger.accept()
            there.recv(100)
            there.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            there.close()

        thread = threading.Thread(target=answer)
        thread.start()
        record = measure(number, duration_s=1.0).record
        thread.join()
    assert record["error"]["kind"] == "protocol"
    assert "iperf3" in record["error"]["message"]


def test_our_own_server_of_the_protocol_serves_our_own_client() -> None:
    server = Iperf3Server({"listen": [LOOPBACK], "port": 0, "limits": {"duration_s": 5.0}})
    try:
        number = int(server.addresses()[0].rpartition(":")[2])
        result = measure(number, total_bytes=5_000_000, streams=2)
        assert result.record["status"] == "complete", result.record["error"]
        assert measure(number, duration_s=9.0).record["error"]["kind"] == "limit"
    finally:
        server.stop()
        server.join()
