"""RBUDP over emulated paths: every byte comes over any of them, and what breaks is said in time."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farline.testbeds import Host, Testbed
from farline.testbeds.fixture import MakeBed
from tests.netns.conftest import FARLINE, Ending, Served, probe, start
from tests.netns.test_paths import Probe, carried_bytes, failed_in_time

pytestmark = pytest.mark.netns

Serve = Callable[..., Served]

RBUDP = ("--transport", "rbudp", "--shared-path", "allow")
CLEAN: dict[str, Any] = {"loss": 0.0, "reorder": 0.0, "duplicate": 0.0, "corrupt": 0.0}
PATHS: dict[str, dict[str, Any]] = {
    "clean": CLEAN,
    "loss-1%": CLEAN | {"loss": 0.01},
    "loss-7%": CLEAN | {"loss": 0.07},
    "reordering": CLEAN | {"reorder": 0.02},
    "duplicates": CLEAN | {"duplicate": 0.02},
    "corruption": CLEAN | {"corrupt": 0.01},
    "all-of-them": {"loss": 0.02, "reorder": 0.01, "duplicate": 0.01, "corrupt": 0.005},
}
over_every_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)

TOTAL_BYTES = 12_000_001
PACKET_PAYLOAD = 1456
BLAST_BYTES = 4_000_000
SENT = ("-n", str(TOTAL_BYTES), "--payload", str(BLAST_BYTES), "--rate", "400M")


@pytest.fixture
def bed(testbed: MakeBed) -> Testbed:
    """A cable of 1 Gb/s and 20 ms, with packets of 1500 bytes."""
    return testbed("back-to-back", rtt_s="20ms", rate_bps="1Gbit", mtu_bytes=1500)


@pytest.fixture
def ticket(bed: Testbed, serve: Serve) -> str:
    """A ticket to the server on it."""
    return serve(bed.hosts["server"]).ticket


def run(bed: Testbed, ticket: str, *options: str) -> dict[str, Any]:
    """The record of a complete run from the bed's client."""
    record = probe(bed.hosts["client"], ticket, *RBUDP, *options)
    assert (record["status"], record.get("error")) == ("complete", None)
    return record


def stream(record: dict[str, Any], role: int) -> dict[str, Any]:
    (found,) = [one for one in record["streams"] if one["role"] == role]
    end: dict[str, Any] = found
    return end


def refused(host: Host, ticket: str, *options: str) -> tuple[int, str]:
    """Exit code and complaint of a run that must not come to its end."""
    done = host.run([FARLINE, "probe", ticket, "--no-store", *RBUDP, *options], timeout=60)
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@over_every_path
@pytest.mark.parametrize("way", [("--early",), ("--no-early", "--in-flight", "1")], ids=str)
def test_every_byte_comes_over_any_path(
    bed: Testbed, ticket: str, path: dict[str, Any], way: tuple[str, ...]
) -> None:
    bed.change(**path)
    record = run(bed, ticket, *SENT, *way)
    sender, receiver = stream(record, 0), stream(record, 1)
    assert sender["bytes"] == receiver["bytes"] == TOTAL_BYTES
    assert sum(blast["bytes"] for blast in receiver["blasts"]) == TOTAL_BYTES
    lost = sum(blast["first_pass_lost_packets"] for blast in sender["blasts"])
    hurt = path["loss"] + path["corrupt"]
    assert (lost > 0) == (hurt > 0) or path["reorder"] > 0
    if hurt:
        assert sum(b["sent_packets"] - b["packets"] for b in sender["blasts"]) >= lost


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_streams_share_a_path_that_loses(bed: Testbed, ticket: str, direction: str) -> None:
    bed.change(**PATHS["loss-1%"])
    record = run(
        bed, ticket, "-P", "3", "--direction", direction, "-n", "9M", "--payload", "1M",
        "--rate", "80M",
    )  # fmt: skip
    ways = 2 if direction == "bidirectional" else 1
    for role in (0, 1):
        moved = sum(one["bytes"] for one in record["streams"] if one["role"] == role)
        assert moved == ways * 9 << 20


@pytest.mark.alone
def test_the_first_pass_loses_what_the_path_does_and_the_next_repeat_it(
    bed: Testbed, ticket: str
) -> None:
    bed.change(**PATHS["loss-7%"])
    words = ("-n", str(3 * BLAST_BYTES), "--payload", str(BLAST_BYTES), "--rate", "400M")
    record = run(bed, ticket, "--no-early", "--in-flight", "1", *words)
    blasts = stream(record, 0)["blasts"]
    packets = sum(blast["packets"] for blast in blasts)
    lost = sum(blast["first_pass_lost_packets"] for blast in blasts)
    # Five standard deviations.
    assert lost / packets == pytest.approx(0.07, abs=5 * (0.07 * 0.93 / packets) ** 0.5)
    assert all(2 <= blast["passes"] <= 8 for blast in blasts)
    repeated = sum(blast["sent_packets"] for blast in blasts) / packets - 1
    assert repeated == pytest.approx(0.07 / 0.93, rel=0.25)


def test_a_file_over_a_bad_path_is_the_file_over_a_clean_one(
    bed: Testbed, ticket: str, tmp_path: Path
) -> None:
    found = []
    for name in ("clean", "all-of-them"):
        bed.change(**PATHS[name])
        path = tmp_path / name
        run(bed, ticket, "-R", "-F", str(path), "--receiver", "naive", "--seed", "3", *SENT)
        assert path.stat().st_size == TOTAL_BYTES
        found.append(sha256(path))
    assert found[0] == found[1]


def test_streams_take_nic_pairs_in_turn(testbed: MakeBed, serve: Serve) -> None:
    bed = testbed("multi-nic", k=2, mtu_bytes=1500)
    client, server = bed.hosts["client"], bed.hosts["server"]
    served = serve(server)
    pairs = [
        option
        for source, destination in zip(client.addresses, server.addresses, strict=True)
        for option in ("--pair", f"{source}={destination}")
    ]
    before = carried_bytes(bed)
    record = run(bed, served.ticket, "-P", "2", "-n", "20M", "--rate", "400M", *pairs)
    moved = [now - then for now, then in zip(carried_bytes(bed), before, strict=True)]
    streams = [one for one in record["streams"] if one["role"] == 1]
    assert sum(one["bytes"] for one in streams) == 20 << 20
    for link, one in enumerate(sorted(streams, key=lambda one: int(one["stream"]))):
        assert one["granted"]["local"].startswith(server.addresses[link])
        assert moved[link] >= one["bytes"] > 0


MakeProbe = Callable[..., Probe]


@pytest.fixture
def going(bed: Testbed, ending: Ending) -> MakeProbe:
    """Starts a run on the client that goes on for long; it has carried data when this returns."""

    def begin(ticket: str, *options: str) -> Probe:
        words = ("--no-store", "--json-stream", "-i", "0.1", *RBUDP, "--rate", "200M", *options)
        return Probe(ending(start(bed.hosts["client"], FARLINE, "probe", ticket, *words)))

    return begin


def test_a_path_that_loses_a_third_loses_reports_and_questions_too(
    bed: Testbed, ticket: str, going: MakeProbe
) -> None:
    """In the middle of the run, both ways: TCP alone would hardly move there."""
    running = going(ticket, "-n", "3M", "--payload", "256K", "--rate", "20M")
    bed.change(**(CLEAN | {"loss": 0.33}))
    time.sleep(5.0)  # the length of the bad time: TCP's own waits double with every loss in a row
    bed.change(**CLEAN)
    record = running.end(within_s=60)
    assert record["status"] == "complete", record["error"]
    assert stream(record, 1)["bytes"] == 3 << 20
    assert max(blast["passes"] for blast in stream(record, 0)["blasts"]) > 2


@pytest.mark.parametrize("way", ["forward", "reverse"], ids=["receiver", "sender"])
def test_a_killed_end_is_a_failure_in_a_moment(
    bed: Testbed, serve: Serve, going: MakeProbe, way: str
) -> None:
    served = serve(bed.hosts["server"])
    running = going(served.ticket, "--direction", way, "-t", "60")
    served.process.kill()
    record = failed_in_time(running, within_s=15)
    assert record["error"]["kind"] in {"protocol", "unreachable", "timeout"}


@pytest.mark.parametrize("way", ["forward", "reverse"], ids=["sender", "receiver"])
def test_a_killed_client_leaves_the_server_ready(
    bed: Testbed, ticket: str, going: MakeProbe, way: str
) -> None:
    running = going(ticket, "--direction", way, "-t", "60")
    running.process.kill()
    running.process.communicate()
    assert stream(run(bed, ticket, "-n", "1M", "--rate", "200M"), 1)["bytes"] == 1 << 20


def test_a_cut_that_ends_is_made_up_for(bed: Testbed, ticket: str, going: MakeProbe) -> None:
    running = going(ticket, "-n", "40M", "--payload", "4M")
    bed.cut()
    time.sleep(1.0)  # the length of the cut, not a wait for something
    bed.restore()
    record = running.end(within_s=45)
    assert (running.process.returncode, record["status"]) == (0, "complete"), record["error"]
    assert stream(record, 1)["bytes"] == 40 << 20
    assert stream(record, 0)["retransmits"] > 0


def test_connections_that_are_cut_are_an_error_and_no_data_are_made_up(
    bed: Testbed, ticket: str, going: MakeProbe
) -> None:
    """Control channel and reports both: the kernel closes every TCP connection of the client."""
    running = going(ticket, "-t", "60")
    bed.hosts["client"].run(["ss", "-K", "-t", "state", "established"], check=True)
    record = failed_in_time(running, within_s=20)
    assert record["error"]["kind"] in {"protocol", "unreachable", "timeout", "system"}


def test_a_full_disk_is_the_local_systems_fault(bed: Testbed, ticket: str, tmp_path: Path) -> None:
    client, folder = bed.hosts["client"], tmp_path / "small"
    folder.mkdir()
    client.run(["mount", "-t", "tmpfs", "-o", "size=4M", "none", str(folder)], check=True)
    path = folder / "received"
    words = ("-R", "-F", str(path), "--receiver", "naive", "-n", "32M", "--rate", "400M")
    code, complaint = refused(client, ticket, *words)
    assert code == 2 and "No space left on device" in complaint, complaint
    assert str(path) in complaint
    listed = client.run(["ls", str(folder)], check=True).stdout.split()
    assert "received" not in listed, "a file that is not whole has not its name"
    assert stream(run(bed, ticket, "-n", "1M", "--rate", "200M"), 1)["bytes"] == 1 << 20


FOREIGN = """
import os, random, socket, struct, sys
server, port, source_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
forger = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
chance = random.Random(5)
for number in range(3000):
    body = chance.randbytes(chance.choice([0, 1, 15, 16, 17, 40, 1455, 1472]))
    stranger.sendto(body, (server, port))
    udp = struct.pack("!HHHH", source_port, port, 8 + len(body), 0) + body
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(body), 0, 0, 64, 17, 0,
        socket.inet_aton(sys.argv[4]), socket.inet_aton(server))
    forger.sendto(head + udp, (server, 0))
"""


def data_ports(host: Host, server: Host) -> tuple[int, int]:
    """Local and remote port of the UDP socket that is connected to the server."""
    (line,) = host.run(["ss", "-Hun", "dst", server.address], check=True).stdout.splitlines()
    local, remote = line.split()[-2:]
    return int(local.rpartition(":")[2]), int(remote.rpartition(":")[2])


def test_datagrams_of_others_never_become_data(
    bed: Testbed, ticket: str, going: MakeProbe, tmp_path: Path
) -> None:
    """Strangers' datagrams, and forged ones with the sender's own address, of any length."""
    client, server = bed.hosts["client"], bed.hosts["server"]
    running = going(ticket, "-n", "60M", "--payload", "4M")
    local, remote = data_ports(client, server)
    words = [server.address, str(remote), str(local), client.address]
    client.run([sys.executable, "-c", FOREIGN, *words], check=True)
    record = running.end(within_s=30)
    assert record["status"] == "complete", record["error"]
    receiver = stream(record, 1)
    assert receiver["bytes"] == 60 << 20
    assert any("did not belong to this stream" in note for note in receiver["granted"]["notes"])


@pytest.mark.alone
def test_a_path_that_others_fill_is_refused_and_an_idle_one_is_not(
    bed: Testbed, serve: Serve, ending: Ending, tmp_path: Path
) -> None:
    client, server = bed.hosts["client"], bed.hosts["server"]
    served = serve(server)
    careful = (
        "--no-store", "--json", "--transport", "rbudp", "--shared-path", "refuse",
        "--rate", "300M", "-n", "4M",
    )  # fmt: skip

    def check(want_refused: bool) -> subprocess.CompletedProcess[str]:
        """The first of three runs that ends as wanted, else the last.

        A check lasts half a second. A router that is off its CPU for most of it has a queue like a
        full one, and cubic makes room after a loss: nine of ten find the flow
        (docs/design/rbudp-path-check.md).
        """
        for _ in range(3):
            done = client.run([FARLINE, "probe", served.ticket, *careful], timeout=60)
            if (done.returncode != 0) == want_refused:
                break
        return done

    idle = check(want_refused=False)
    assert idle.returncode == 0, idle.stderr
    assert not stream(json.loads(idle.stdout), 0)["path_check"]["shared"]
    greedy = ("--no-store", "--json-stream", "-i", "0.1", "-C", "cubic", "-t", "60")
    background = Probe(ending(start(client, FARLINE, "probe", served.ticket, *greedy)))
    time.sleep(1.0)  # until cubic fills the queue
    done = check(want_refused=True)
    document = json.loads(done.stdout)
    checks = [one.get("path_check") for one in document["streams"]]
    assert done.returncode not in (0, 130), checks
    assert document["error"]["message"], checks
    assert sum(one["bytes"] for one in document["streams"]) == 0
    background.process.kill()
    background.process.communicate()


@pytest.mark.alone
def test_a_loss_bound_slows_down_on_a_path_that_is_too_slow(bed: Testbed, ticket: str) -> None:
    bed.change(rate_bps="50Mbit", capacity_bytes="128K")
    words = ("--rate", "100M", "-t", "3", "--payload", "512K", "--packet", "1472")
    shares = []
    for bound in ((), ("--loss-bound", "2%")):
        sender = stream(run(bed, ticket, *words, *bound), 0)
        shares.append(sender["retransmits"] / sender["packets"])
    assert shares[0] > 0.3 > 2 * shares[1], shares
