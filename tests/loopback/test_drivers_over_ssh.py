"""Tools whose other end ssh leads to: servers started there, ended there, files proved there."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from farline.campaign.settings import sampled_spec
from farline.drivers import DrivenTool, OverSsh
from farline.tools import RunResult, ignore_event, never_stop
from farline.tools.ssh_command import SshCommand
from tests.loopback.test_driver_names import ODD, full_of
from tests.loopback.test_drivers import same

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OverSsh]:
    """This host by ssh, under a name of its own."""
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("host", "user"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    (folder / "sshd").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nStrictModes no\n"
        f"AuthorizedKeysFile {folder}/user.pub\nUsePAM no\nPidFile none\n"
        "Subsystem sftp internal-sftp\nMaxStartups 100\n"
    )
    (folder / "ssh").write_text(
        f"Host far\nHostName 127.0.0.1\nPort {port}\nIdentityFile {folder}/user\n"
        f"UserKnownHostsFile {folder}/known\nStrictHostKeyChecking no\nLogLevel ERROR\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "sshd"], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 10
    while not _listens(port):
        assert server.poll() is None and time.monotonic() < until, "sshd does not listen"
        time.sleep(0.02)
    try:
        yield OverSsh("far", SshCommand(config=str(folder / "ssh")))
    finally:
        server.terminate()
        server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def run(name: str, far: OverSsh, **document: object) -> RunResult:
    """One run towards this host's address."""
    spec = sampled_spec({"tool": name, "tool_server": "ssh", **document})
    return DrivenTool(name, far).run("127.0.0.1", spec, ignore_event, never_stop)


def test_a_testers_server_starts_there_and_ends(far: OverSsh) -> None:
    result = run("iperf3", far, duration_s=1, rate_bps=20_000_000)
    assert result.record["status"] == "complete", result.record.get("error")
    driven = result.record["driven"]
    assert driven is not None and driven["server"] == "far"
    # What runs there has CPU time that nobody here has counted.
    assert result.record["server"] is None and result.record["client"] is not None
    port = driven["server_command"][driven["server_command"].index("-p") + 1]
    until = time.monotonic() + 10
    while subprocess.run(["pgrep", "-f", f"iperf3 -s -p {port}"], capture_output=True).stdout:
        assert time.monotonic() < until, "it is still there"
        time.sleep(0.1)


@pytest.mark.parametrize("name", ["gridftp", "rsync", "scp"])
def test_files_are_proved_there(name: str, far: OverSsh, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "two words").write_bytes(os.urandom(200_000))
    copy = {"sources": [f"{source}/"], "destination": str(tmp_path / "copy")}
    result = run(name, far, copy=copy)
    assert result.record["status"] == "complete", result.record.get("error")
    driven = result.record["driven"]
    assert driven is not None and (driven["proof"], driven["files"]) == ("hash", 1)
    assert (tmp_path / "copy" / "two words").read_bytes() == (source / "two words").read_bytes()


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("name", ["gridftp", "rsync", "scp"])
def test_odd_names_arrive_there_and_come_back(
    name: str, direction: str, far: OverSsh, tmp_path: Path
) -> None:
    """Two shells read what ssh carries: ours of the client's words, and the one over there."""
    source, there = full_of(tmp_path / "a $HOME; 'b'", ODD), tmp_path / 'c "d" & e'
    copy = {"sources": [f"{source}/"], "destination": str(there)}
    result = run(name, far, copy=copy, direction=direction)
    assert result.record["status"] == "complete", result.record.get("error")
    assert same(source, there)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("name", ["gridftp", "rsync", "scp"])
@pytest.mark.parametrize("odd", ["-dash", "per%cent%20x", "$HOME", "col:on", "it's", "star*"])
def test_a_file_with_an_odd_name_arrives_there(
    odd: str, name: str, direction: str, far: OverSsh, tmp_path: Path
) -> None:
    (tmp_path / odd).write_bytes(os.urandom(5000))
    copy = {"sources": [str(tmp_path / odd)], "destination": f"{tmp_path}/there/"}
    result = run(name, far, copy=copy, direction=direction)
    assert result.record["status"] == "complete", result.record.get("error")
    assert (tmp_path / "there" / odd).read_bytes() == (tmp_path / odd).read_bytes()
