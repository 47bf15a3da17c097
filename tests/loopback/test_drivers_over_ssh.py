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
from farline.tools.ssh import SshCommand

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
