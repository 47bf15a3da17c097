"""QUIC end to end over loopback: copies both ways, one port for all, encrypted once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.loopback.conftest import record_of
from tests.support.serving import Serving, farline, serving

QUIC = ("--transport", "quic", "--packet", "1472")


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root that the server's tickets open."""
    return tmp_path_factory.mktemp("there")


@pytest.fixture(scope="module")
def one_port(home: Path, there: Path) -> Iterator[Serving]:
    """A server that has one port, for TCP and UDP alike."""
    with serving(home, "--write", str(there), "--read", str(there), "--single-port") as running:
        yield running


def copied(home: Path, *arguments: str) -> dict[str, Any]:
    """The record of a copy in which nothing fails."""
    done = farline(home, "copy", *arguments, *QUIC, "--json")
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    assert record["copy"]["failed"]["files"] == 0
    return record


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def server_port(server: Serving) -> int:
    return port_of(server.address)


def data_ports(record: dict[str, Any]) -> set[int]:
    """Ports of the server that data streams went to."""
    client = [stream["granted"] for stream in record["streams"] if stream["end"] == 0]
    return {port_of(granted["remote"]) for granted in client}


def test_files_go_and_come_back_encrypted_once_through_one_port(
    tmp_path: Path, there: Path, one_port: Serving
) -> None:
    volume = tmp_path / "volume"
    volume.write_bytes(os.urandom(5_000_003))
    push = copied(tmp_path, str(volume), f"{one_port.tickets['write']}#up/", "--streams", "3")
    assert (there / "up" / "volume").read_bytes() == volume.read_bytes()
    pull = copied(tmp_path, f"{one_port.tickets['read']}#up/volume", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == volume.read_bytes()
    for record in (push, pull):
        report = record["copy"]
        assert (report["cipher"], report["encrypted_by"]) == ("aes128-gcm", "quic")
        assert report["hash"] == "xxh3", "under a cipher, whoever puts it on"
        assert data_ports(record) == {server_port(one_port)}


def test_the_last_lines_say_who_encrypted(tmp_path: Path, one_port: Serving) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    target = f"{one_port.tickets['write']}#said/"
    done = farline(
        tmp_path, "copy", str(tmp_path / "file"), target, *QUIC, "--cipher", "aes256-gcm"
    )
    assert done.returncode == 0, done.stderr
    assert "aes256-gcm by QUIC" in done.stdout


def test_between_two_folders_of_this_host_as_well(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    record = copied(tmp_path, str(tmp_path / "file"), str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "file").read_bytes()
    report = record["copy"]
    assert (report["cipher"], report["encrypted_by"]) == ("aes128-gcm", "quic")


def test_no_cipher_is_refused_by_name(tmp_path: Path, one_port: Serving) -> None:
    (tmp_path / "file").write_bytes(b"x")
    target = f"{one_port.tickets['write']}#clear/"
    done = farline(tmp_path, "copy", str(tmp_path / "file"), target, *QUIC, "--cipher", "none")
    assert done.returncode == 1
    assert "QUIC always encrypts" in done.stderr


def test_runs_at_once_share_the_port(home: Path, one_port: Serving) -> None:
    def run(direction: str) -> dict[str, Any]:
        options = ("--direction", direction, "-P", "2", "-t", "0.5", "--no-store")
        return record_of(home, one_port.ticket, *QUIC, *options)

    with ThreadPoolExecutor(3) as pool:
        records = list(pool.map(run, ("forward", "reverse", "bidirectional")))
    ports = set().union(*(data_ports(record) for record in records))
    assert [record["status"] for record in records] == ["complete"] * 3
    assert len(ports) == 1


def test_a_run_says_what_quic_knows(home: Path, one_port: Serving) -> None:
    record = record_of(home, one_port.ticket, *QUIC, "-C", "newreno", "-t", "0.5", "--no-store")
    sender = next(stream for stream in record["streams"] if stream["role"] == 0)
    assert sender["granted"]["congestion_control"] == "newreno"
    assert sender["granted"]["packet_bytes"] == 1472
    assert sender["packets"] > 0 and sender["min_rtt_us"] > 0
    assert record["verdict"]["line"]
