"""What a user can rely on when files go over a path: losses, jumbo frames, NIC pairs, cut links."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from _copy import trees
from _copy.faults.check import read_receipt
from _copy.faults.ground import Server
from farline.testbeds import Host, Testbed
from farline.testbeds.fixture import MakeBed
from tests.netns.conftest import FARLINE, Ending
from tests.netns.test_paths import carried_bytes

pytestmark = pytest.mark.netns

MIB = 1 << 20
LIMIT_S = 60


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[[Host], Server]]:
    """Starts servers that take and give files; ends them with the test."""
    started: list[Server] = []

    def begin(host: Host) -> Server:
        folder = tmp_path / f"server-{len(started)}"
        folder.mkdir()
        started.append(Server(host, folder))
        started[-1].start()
        return started[-1]

    yield begin
    for one in started:
        one.kill()


@dataclass(frozen=True)
class Folders:
    """A tree of small and large files, and where it is to go."""

    source: Path
    target: Path
    receipt: Path


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """30 small files and one of 24 MiB."""
    source = tmp_path / "source"
    trees.small_files(source, 30, 5000, folders=3)
    (source / "large").write_bytes(os.urandom(24 * MIB))
    return Folders(source, tmp_path / "target", tmp_path / "receipt")


def command(source: object, target: object, *options: str) -> list[str]:
    return [str(FARLINE), "copy", "--no-store", "--json", str(source), str(target), *options]


def environment(folders: Folders) -> dict[str, str]:
    return {**os.environ, "XDG_CONFIG_HOME": str(folders.source.parent / "config")}


def copy(client: Host, folders: Folders, *words: str, code: int = 0) -> dict[str, Any]:
    """A copy to its end, its record."""
    run = command(*words, "--receipt", str(folders.receipt))
    done = client.run(run, timeout=LIMIT_S, env=environment(folders))
    assert done.returncode == code, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def push(client: Host, server: Server, folders: Folders, *options: str) -> dict[str, Any]:
    ticket = f"{server.tickets['write']}#{folders.target}"
    return copy(client, folders, f"{folders.source}/", ticket, *options)


def assert_whole(folders: Folders) -> None:
    """The same tree, and nothing of the copy's own is left."""
    assert trees.difference(folders.source, folders.target) is None
    assert not (folders.target / ".farline-partial").exists()
    for line in read_receipt(folders.receipt).lines.values():
        # A folder has its time at the very end: one that an earlier attempt made gets it now.
        statuses = {"copied", "present"} | ({"updated"} if line["kind"] == "folder" else set())
        assert line["status"] in statuses, line


TRANSPORTS = {"tcp": (), "udt": (), "quic": (), "rbudp": ("--rate", "400M", "--streams", "2")}
"""Options of each: RBUDP blasts at a stated rate."""


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("way", ["push", "pull"])
def test_a_long_lossy_path_changes_nothing_but_the_time(
    testbed: MakeBed, server: Callable[[Host], Server], folders: Folders, transport: str, way: str
) -> None:
    bed = testbed("back-to-back", rtt_s="50ms", loss="0.1%", mtu_bytes=1500, rate_bps="1Gbit")
    there = server(bed.hosts["server"])
    options = ("--transport", transport, *TRANSPORTS[transport])
    if way == "push":
        record = push(bed.hosts["client"], there, folders, *options)
    else:
        ticket = f"{there.tickets['read']}#{folders.source}/"
        record = copy(bed.hosts["client"], folders, ticket, f"{folders.target}/", *options)
    assert record["status"] == "complete"
    assert record["copy"]["copied"] == {"files": 31, "bytes": 24 * MIB + 150_000}
    assert_whole(folders)


def test_jumbo_frames_carry_files(
    testbed: MakeBed, server: Callable[[Host], Server], folders: Folders
) -> None:
    bed = testbed("back-to-back", mtu_bytes=9000)
    record = push(bed.hosts["client"], server(bed.hosts["server"]), folders)
    segments = {
        stream["granted"]["mss_bytes"] for stream in record["streams"] if stream["end"] == 0
    }
    assert segments == {8948}
    assert_whole(folders)


def test_streams_take_nic_pairs_in_turn(
    testbed: MakeBed, server: Callable[[Host], Server], folders: Folders
) -> None:
    """Three links and three streams: files cross all of them."""
    bed = testbed("multi-nic", k=3, mtu_bytes=1500, rate_bps="300Mbit")
    client, far = bed.hosts["client"], bed.hosts["server"]
    pairs = [
        word
        for ours, theirs in zip(client.addresses, far.addresses, strict=True)
        for word in ("--pair", f"{ours}={theirs}")
    ]
    there = server(far)
    before = carried_bytes(bed)
    push(client, there, folders, "--streams", "3", *pairs)
    moved = [now - then for now, then in zip(carried_bytes(bed), before, strict=True)]
    assert_whole(folders)
    assert sum(moved) > 24 * MIB
    assert all(one > 3 * MIB for one in moved), moved


@dataclass
class Going:
    """A copy under way that has moved something."""

    process: subprocess.Popen[str]
    told: list[dict[str, Any]]

    def end(self) -> dict[str, Any]:
        """Waits for its end; its record."""
        assert self.process.stdout is not None
        self.told += map(json.loads, self.process.stdout)
        _, complaint = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == 0, complaint
        record: dict[str, Any] = self.told[-1]["data"]["farline"]
        return record


def going(bed: Testbed, there: Server, folders: Folders, ending: Ending, *options: str) -> Going:
    """Starts a push, and returns when data move; on a line so slow that seconds of it are left."""
    ticket = f"{there.tickets['write']}#{folders.target}"
    words = command(f"{folders.source}/", ticket, "--json-stream", *options)
    words.remove("--json")
    words += ["--receipt", str(folders.receipt)]
    client = bed.hosts["client"]
    process = ending(
        client.popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(folders)
        )
    )
    assert process.stdout is not None
    told = []
    for line in process.stdout:
        told.append(json.loads(line))
        # Each of two streams may have most of a chunk of 2 MiB of it that is not whole.
        if told[-1]["event"] == "progress" and told[-1]["data"]["settled_bytes"] > 8 * MIB:
            return Going(process, told)
    raise AssertionError(process.communicate()[1])


def test_a_copy_goes_on_by_itself_after_a_cut_and_sends_little_twice(
    testbed: MakeBed, server: Callable[[Host], Server], folders: Folders, ending: Ending
) -> None:
    bed = testbed("back-to-back", mtu_bytes=1500, rate_bps="25Mbit")
    there = server(bed.hosts["server"])
    copying = going(bed, there, folders, ending, "--stall-timeout", "1s", "--retry-for", "60s")
    bed.cut()
    for line in copying.process.stdout or ():
        copying.told.append(json.loads(line))
        if copying.told[-1]["event"] == "error":
            break
    bed.restore()
    copy = copying.end()["copy"]
    assert copy["resumed_bytes"] > 2 * MIB, "the journal knew what was there"
    # Small files may have been whole before the cut.
    assert copy["copied"]["bytes"] >= 24 * MIB
    assert copy["copied"]["bytes"] + copy["present"]["bytes"] == 24 * MIB + 150_000
    assert_whole(folders)


def test_the_next_command_goes_on_where_a_killed_one_was(
    testbed: MakeBed, server: Callable[[Host], Server], folders: Folders, ending: Ending
) -> None:
    bed = testbed("back-to-back", mtu_bytes=1500, rate_bps="25Mbit")
    there = server(bed.hosts["server"])
    copying = going(bed, there, folders, ending)
    copying.process.kill()
    copying.process.communicate()
    assert not (folders.target / "large").exists(), "no name before it is whole"
    record = push(bed.hosts["client"], there, folders)
    assert record["copy"]["resumed_bytes"] > 2 * MIB
    assert_whole(folders)


@pytest.mark.parametrize(
    ("transport", "way"), [("tcp", "push"), ("udt", "push"), ("udt", "pull"), ("rbudp", "push")]
)
def test_one_spoiled_packet_in_a_thousand_is_healed_under_a_cipher(
    testbed: MakeBed, server: Callable[[Host], Server], folders: Folders, transport: str, way: str
) -> None:
    """No checksum of a packet shows it: only the seal does."""
    link = {"rate_bps": "1Gbit", "corrupt": 0.001, "corrupt_hidden": True}
    bed = testbed("back-to-back", rtt_s="5ms", mtu_bytes=1500, **link)
    there = server(bed.hosts["server"])
    options = ("--transport", transport, *TRANSPORTS[transport])
    if way == "push":
        record = push(bed.hosts["client"], there, folders, *options)
    else:
        ticket = f"{there.tickets['read']}#{folders.source}/"
        record = copy(bed.hosts["client"], folders, ticket, f"{folders.target}/", *options)
    assert record["status"] == "complete"
    assert_whole(folders)
