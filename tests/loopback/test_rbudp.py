"""RBUDP between two real ends on loopback: every direction and receiver, files, what is refused."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.loopback import conftest
from tests.loopback.conftest import Start, results_of, rows_of
from tests.support.serving import Serving, farline, serving

BENCHES = Path(__file__).resolve().parents[2] / "benches"
RBUDP = ("--transport", "rbudp")
RATED = (*RBUDP, "--rate", "2G", "--shared-path", "allow")
GOING_ON = (*RATED, "--json", "--no-store", "-t", "60")
# No whole number of packets, of blasts, of pages.
ODD_BYTES = (9 << 20) + 12_345


def record_of(home: Path, ticket: str, *arguments: str) -> dict[str, Any]:
    """The record of a run over RBUDP, held to the schema, which must be complete."""
    record = conftest.record_of(home, ticket, *RATED, "--no-store", *arguments)
    assert (record["status"], record.get("error")) == ("complete", None)
    return record


def streams_of(record: dict[str, Any], role: int) -> list[dict[str, Any]]:
    return [stream for stream in record["streams"] if stream["role"] == role]


def moved(record: dict[str, Any]) -> set[int]:
    """Bytes that each role counts: one value where all that was sent has come."""
    return {sum(stream["bytes"] for stream in streams_of(record, role)) for role in (0, 1)}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("streams", [1, 4])
def test_every_direction_with_one_stream_and_several(
    home: Path, server: Serving, direction: str, streams: int
) -> None:
    record = record_of(
        home, server.ticket, "--direction", direction, "-P", str(streams), "-n", "16M",
        "--payload", "3M", "--rate", "500M",
    )  # fmt: skip
    ways = 2 if direction == "bidirectional" else 1
    assert moved(record) == {ways * 16 << 20}
    assert len(streams_of(record, 0)) == streams * ways
    # Streams take what is left: one that began late may have found nothing.
    for stream in record["streams"]:
        blasts = stream.get("blasts", [])
        assert stream.get("whole_blasts", 0) == len(blasts)
        assert sum(blast["bytes"] for blast in blasts) == stream["bytes"]
    for way in ("forward", "reverse"):
        throughput = record["summary"][way]
        assert (throughput is not None) == (direction in (way, "bidirectional"))
        assert throughput is None or throughput["total_bps"] > 1e7
    assert record["verdict"]["line"]


@pytest.mark.parametrize("receiver", ["naive", "gather", "fake"])
@pytest.mark.parametrize("checksum", ["--checksum", "--no-checksum"])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_every_receiver_has_all_that_was_sent(
    home: Path, server: Serving, receiver: str, checksum: str, direction: str
) -> None:
    record = record_of(
        home, server.ticket, "--receiver", receiver, checksum, "--direction", direction,
        "-n", str(ODD_BYTES), "--payload", "1M", "--packet", "1472",
    )  # fmt: skip
    assert moved(record) == {ODD_BYTES}
    (sender,) = streams_of(record, 0)
    assert sender["granted"]["packet_bytes"] == 1472
    # 1456 bytes of payload in each packet, the last of a blast may be short.
    assert sum(blast["packets"] for blast in sender["blasts"]) == 9 * 721 + -(-12_345 // 1456)


@pytest.mark.parametrize("way", [("--no-early",), ("--in-flight", "1"), ("--no-gso", "--no-gro")])
def test_the_papers_way_and_plain_system_calls_work_too(
    home: Path, server: Serving, way: tuple[str, ...]
) -> None:
    record = record_of(home, server.ticket, *way, "-n", "8M", "--payload", "1M", "--packet", "1472")
    assert moved(record) == {8 << 20}
    (sender,) = streams_of(record, 0)
    assert [blast["bytes"] for blast in sender["blasts"]] == [1 << 20] * 8
    assert all(blast["passes"] >= 1 and blast["elapsed_us"] > 0 for blast in sender["blasts"])


@pytest.mark.alone
def test_a_run_of_a_stated_time_ends_in_that_time(home: Path, server: Serving) -> None:
    record = record_of(home, server.ticket, "--rate", "100M", "-t", "1")
    assert record["summary"]["forward"]["total_bps"] == pytest.approx(100e6, rel=0.1)
    assert record["verdict"]["limit"] == "rate"


@pytest.mark.alone
def test_without_a_rate_of_its_own_it_is_as_fast_as_the_host(home: Path, server: Serving) -> None:
    record = record_of(home, server.ticket, "--rate", "0", "-n", "64M")
    assert moved(record) == {64 << 20}
    assert record["summary"]["forward"]["total_bps"] > 5e7


@pytest.mark.alone
def test_a_loss_bound_is_no_hindrance_where_nothing_is_lost(home: Path, server: Serving) -> None:
    record = record_of(home, server.ticket, "--loss-bound", "1%", "--rate", "50M", "-t", "0.5")
    assert record["spec"]["rbudp"]["loss_bound"] == 0.01
    assert record["summary"]["forward"]["total_bps"] > 2e7


def test_ipv6_works_as_ipv4_does(tmp_path: Path) -> None:
    with serving(tmp_path, listen="::1") as running:
        record = record_of(tmp_path, running.ticket, "-n", "4M", "-P", "2", "--packet", "1452")
    assert moved(record) == {4 << 20}
    assert all(stream["granted"]["local"].startswith("[::1]") for stream in record["streams"])


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("length", [1, 1456, ODD_BYTES])
def test_a_file_is_sent_in_windows(
    home: Path, server: Serving, tmp_path: Path, length: int
) -> None:
    path = tmp_path / "sent"
    path.write_bytes(bytes(range(251)) * (length // 251 + 1))
    with path.open("r+b") as file:
        file.truncate(length)
    before = sha256(path)
    record = record_of(
        home, server.ticket, "-F", str(path), "-n", str(length), "--payload", "1M",
        "--in-flight", "2", "--packet", "1472",
    )  # fmt: skip
    assert moved(record) == {length}
    assert sha256(path) == before


def test_what_comes_into_a_file_is_the_payload_of_its_seed(
    home: Path, server: Serving, tmp_path: Path
) -> None:
    """Blasts of different sizes put packets and windows elsewhere: the bytes are the same."""
    found = []
    for number, payload in enumerate(("1M", "700001", "64M")):
        path = tmp_path / f"received-{number}"
        record = record_of(
            home, server.ticket, "-R", "-F", str(path), "-n", str(ODD_BYTES), "--seed", "7",
            "--receiver", "naive", "--payload", payload, "--packet", "1472",
        )  # fmt: skip
        assert moved(record) == {ODD_BYTES}
        assert path.stat().st_size == ODD_BYTES
        found.append(sha256(path))
    assert len(set(found)) == 1
    other = tmp_path / "other"
    record_of(
        home, server.ticket, "-R", "-F", str(other), "-n", str(ODD_BYTES), "--seed", "8",
        "--receiver", "naive",
    )  # fmt: skip
    assert sha256(other) != found[0]


def refusal(home: Path, ticket: str, *arguments: str) -> str:
    """The one line that a run is refused with."""
    done = farline(home, "probe", ticket, "--no-store", *arguments)
    assert done.returncode == 1, done.stdout
    complaint = [line for line in done.stderr.splitlines() if line.strip()]
    assert "Traceback" not in done.stderr
    return complaint[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (RBUDP, "--rate: rbudp sends at a stated rate: give one"),
        ((*RATED, "--receiver", "fast"), "naive, gather, fake"),
        ((*RATED, "--shared-path", "maybe"), "warn, refuse, allow"),
        ((*RATED, "--payload", "9G"), "1 byte to 8 GiB"),
        ((*RATED, "--payload", "8G", "--in-flight", "64"), "allowed: 16 GiB"),
        ((*RATED, "--in-flight", "0"), "1 to 64"),
        ((*RATED, "--loss-bound", "60%"), "0.6"),
        ((*RATED, "--packet", "63"), "64 to 65507"),
        (
            (*RATED, "-F", __file__, "-P", "2"),
            "-F: works only with one stream in one direction",
        ),
        ((*RATED, "-F", "/nowhere/x", "-n", "1M"), "/nowhere/x"),
        (("--transport", "tcp", "--payload", "1M"), "rbudp"),
    ],
)
def test_bad_input_gets_a_line_that_says_what_is_allowed(
    home: Path, server: Serving, arguments: tuple[str, ...], words: str
) -> None:
    line = refusal(home, server.ticket, *arguments)
    assert words in line or words.replace(", ", "', '") in line, line


def test_a_file_that_is_too_short_is_refused_before_anything_is_sent(
    home: Path, server: Serving, tmp_path: Path
) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"0123456789")
    line = refusal(home, server.ticket, *RATED, "-F", str(path), "-n", "11")
    assert "has 10 bytes, but 11 are to be sent" in line


def test_a_rate_above_what_the_server_allows_is_refused(tmp_path: Path) -> None:
    """A blast at another rate than the stated one would not be what was asked for."""
    with serving(tmp_path, "--anonymous", "--anonymous-rate", "100M") as running:
        for way in ("forward", "reverse"):
            refused = farline(
                tmp_path, "probe", running.address, *RATED, "--direction", way, "--no-store"
            )
            assert refused.returncode == 8
            assert "the server allows up to 100 Mbit/s" in refused.stderr
            slower = ("--direction", way, "--rate", "80M", "-n", "2M")
            assert moved(record_of(tmp_path, running.address, *slower)) == {2 << 20}


def test_text_shows_what_the_blasts_came_to(home: Path, server: Serving) -> None:
    words = ("-n", "8M", "--payload", "2M", "--rate", "100M", "-i", "0.2", "--no-store")
    done = farline(home, "probe", server.ticket, *RATED, *words)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    assert shown[0].startswith("rbudp to ") and "blasts of 2MiB" in shown[0]
    assert "missing" in shown[1] and "repeated" in shown[1]
    assert any(re.match(r"blasts +4 .*2\.00 MiB.* pass", line) for line in shown)


@pytest.mark.alone
def test_a_path_is_measured_before_the_blast_unless_that_is_not_wanted(
    home: Path, server: Serving
) -> None:
    words = ("--rate", "100M", "-n", "1M", "--no-store")
    record = conftest.record_of(home, server.ticket, *RBUDP, *words)
    (check,) = [s["path_check"] for s in streams_of(record, 0)]
    assert check["rate_bps"] == 100_000_000 and not check["shared"]
    assert check["carried_bps"] > 80_000_000
    assert all("path_check" not in s for s in record_of(home, server.ticket, *words)["streams"])


def test_a_kept_run_shows_its_blasts(home: Path, server: Serving) -> None:
    done = farline(home, "probe", server.ticket, *RATED, "-n", "3M", "--payload", "1M", "--json")
    record = json.loads(done.stdout)
    shown = farline(home, "show", record["run_id"], "--blasts")
    assert shown.returncode == 0, shown.stderr
    assert len(re.findall(r"1\.00 MiB", shown.stdout)) == 3


def test_a_killed_client_leaves_the_server_ready(home: Path, server: Serving, start: Start) -> None:
    process = start(home, "probe", server.ticket, *GOING_ON, "-P", "2", "--bidir")
    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=2)
    process.kill()
    process.communicate()
    assert moved(record_of(home, server.ticket, "-n", "1M")) == {1 << 20}


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


def test_a_campaign_varies_rbudp(server: Serving, tmp_path: Path) -> None:
    results_of(
        tmp_path,
        server.ticket,
        """
        [campaign]
        repetitions = 2
        reference = "none"
        [fixed]
        transport = "rbudp"
        rate_bps = "2G"
        [fixed.rbudp]
        in_flight = 1
        shared_path = "allow"
        packet_bytes = 1472
        [together.payload_bytes]
        options = ["rbudp.payload_bytes", "total_bytes"]
        values = ["1MB", "4MB"]
        [grid.rbudp]
        receiver = ["naive", "gather"]
        [[figure]]
        name = "payload"
        x = "payload_bytes"
        curves = "rbudp.receiver"
        y = ["blast_bps", "first_blast_loss", "blast_passes"]
        [[figure.model]]
        name = "model"
        rate_bps = "2G"
        rtt_s = "0.1ms"
        """,
        "--report",
        str(tmp_path / "report"),
    )
    rows = rows_of(tmp_path / "store", transport="rbudp")
    assert {row["rbudp.receiver"] for row in rows} == {"naive", "gather"}
    assert {row["total_bytes"] for row in rows} == {1_000_000, 4_000_000}
    assert {path.stem for path in (tmp_path / "report" / "figures").iterdir()} >= {"payload"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it forces large socket buffers")
def test_the_benches_sniffer_notes_each_batch_once_with_its_size_and_port(tmp_path: Path) -> None:
    """Loopback shows a packet twice: as it goes and as it comes."""
    output = tmp_path / "sniffed.npz"
    command = [sys.executable, str(BENCHES / "_rbudp" / "sniffer.py"), str(output), "lo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sniffer:
        try:
            assert sniffer.stdout is not None and sniffer.stdout.readline() == "ready\n"
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
                sink.bind(("127.0.0.1", 0))
                port = sink.getsockname()[1]
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
                    for size in (1, 700, 1472):
                        source.sendto(bytes(size), ("127.0.0.1", port))
            sniffer.send_signal(signal.SIGTERM)
            said = json.loads(sniffer.communicate(timeout=20)[0])
        finally:
            sniffer.kill()
    assert said["dropped"] == 0
    with np.load(output) as seen:
        ours = seen["port"] == port
        assert (seen["bytes"][ours] - 28).tolist() == [1, 700, 1472]
        assert (np.diff(seen["at_ns"][ours]) >= 0).all()
