"""`farline nodes`: what is read as nodes, what is shown of them, and what is said of those away."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from farline.cli.group import run
from farline.cli.nodes import command, row
from farline.cluster.survey import SurveyedNode, read_place
from farline.copying.locations import SshHost, ThisHost
from farline.copying.pools import NodePool
from farline.errors import UsageError


@pytest.mark.parametrize(
    ("text", "engine", "path"),
    [
        ("dtn[1-8]", "ssh", "/"),
        ("dtn[1-8]:/data", "ssh", "/data"),
        ("slurm:xfer:2-4", "slurm", "/"),
        ("slurm:xfer:2/scratch/", "slurm", "/scratch/"),
        ("testbed:nodes:sink-[1-2]", "testbed", "/"),
    ],
)
def test_nodes_are_written_as_for_a_copy_and_may_have_no_path(
    text: str, engine: str, path: str
) -> None:
    location = read_place(text)
    assert isinstance(location.host, NodePool)
    assert (location.host.engine, location.path) == (engine, path)


def test_one_host_is_asked_too_but_no_server() -> None:
    assert read_place("alice@dtn1").host == SshHost("dtn1", "alice")
    assert read_place("/data").host == read_place("./data").host == ThisHost()
    with pytest.raises(UsageError, match="a server cannot be asked what it has; name nodes"):
        read_place("farline://dtn1/ticket?key=secret#data")


@pytest.fixture
def pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two nodes that are this host, and one more that does not start."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "farline"
    folder.mkdir()
    script = folder / "on-node"
    script.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = away ]; then echo "away is down" >&2; exit 255; fi\n'
        f'shift 2; exec "{sys.executable}" -m farline "$@"\n'
    )
    script.chmod(0o755)
    template = f"{script} {{node}} {{argv}}"
    (folder / "pools.toml").write_text(
        f'[site]\nnodes = ["n1%10.0.0.1", "n2"]\ncommand = "{template}"\n'
        f'[partly]\nnodes = ["n1", "away"]\ncommand = "{template}"\n'
    )
    return folder


def test_each_node_says_what_it_has(pools: Path) -> None:
    done = CliRunner().invoke(command, ["--json", f"site:{pools}/none"], catch_exceptions=False)
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["missing_nodes"] == 0
    first, second = document["nodes"]
    assert (first["node"], first["address"]) == ("n1", "10.0.0.1")
    assert (second["node"], second["address"]) == ("n2", "n2")
    assert first["has_path"] is False
    assert 0 < first["free_bytes"] <= first["disk_bytes"]
    assert min(first["cpus"], first["cores"], first["numa_nodes"], first["memory_bytes"]) > 0
    done = CliRunner().invoke(command, [f"site:{pools}"], catch_exceptions=False)
    assert done.stdout.startswith(f"site:{pools}\n")
    assert "n2" in done.stdout


def test_a_node_that_does_not_answer_is_named_and_gives_its_exit_code(
    pools: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["nodes", "partly"]) == 5
    told = capfd.readouterr()
    assert "n1" in told.out
    assert told.err == "farline: away: away is down\n"
    assert run(["nodes", "--json", "partly"]) == 5
    nodes = json.loads(capfd.readouterr().out)["nodes"]
    assert "error" not in nodes[0]
    assert nodes[1]["error"] == {"kind": "unreachable", "message": "away: away is down"}


def test_what_a_node_does_not_say_is_unknown() -> None:
    assert row(SurveyedNode("n1", "n1", {})) == ("n1", "n1", *["unknown"] * 4)
    has = {"cpus": 8, "numa_nodes": 2, "nic_bps": 10**11, "free_bytes": 1 << 30}
    cells = row(SurveyedNode("n1", "10.0.0.1", has, has_path=False))
    assert cells[2:] == (
        "8 in 2 NUMA nodes", "unknown", "100 Gbit/s", "1.00 GiB free; no such path yet",
    )  # fmt: skip


def test_ctrl_c_ends_what_was_started_on_nodes(pools: Path) -> None:
    started = pools / "started"
    script = pools / "hangs"
    script.write_text(f"#!/bin/sh\necho $$ > {started}.draft; mv {started}.draft {started}\n"
                      "exec sleep 300\n")  # fmt: skip
    script.chmod(0o755)
    (pools / "pools.toml").write_text(f'[slow]\nnodes = ["n1"]\ncommand = "{script} {{argv}}"\n')
    words = [sys.executable, "-m", "farline", "nodes", "slow:/"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        until = time.monotonic() + 30
        while not started.exists() and time.monotonic() < until:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=30)[1] == "farline: stopped\n"
    assert running.returncode == 130
    assert not Path("/proc", started.read_text().strip()).exists()
