"""QUIC on paths: losses, and a client whose address changes in the middle of a copy."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest

from farline.store import Store
from farline.testbeds.fixture import MakeBed
from tests.netns.conftest import FARLINE, Ending, Served

pytestmark = pytest.mark.netns

BYTES = 30_000_000
NEW = "10.88.0.77"


# Of a host that is late for long, QUIC takes a burst of late packets for a path with a smaller MTU.
@pytest.mark.alone
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_long_lossy_path_is_used(
    testbed: MakeBed, serve: Callable[..., Served], tmp_path: Path, direction: str
) -> None:
    bed = testbed("back-to-back", rtt_s="40ms", loss="0.05%", mtu_bytes=1500, rate_bps="100Mbit")
    served = serve(bed.hosts["server"])
    options = ("--transport", "quic", "--direction", direction, "-C", "bbr", "-t", "3")
    words = ("probe", served.ticket, "--store", tmp_path / "store", "--json", *options)
    done = bed.hosts["client"].run([FARLINE, *words], timeout=60)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    sender = next(stream for stream in record["streams"] if stream["role"] == 0)
    assert sender["retransmits"] > 0 and sender["min_rtt_us"] >= 40_000
    # Losses in a row look like a smaller MTU now and then; longer packets come back soon.
    samples = Store(tmp_path / "store").samples([record["run_id"]])
    assert pc.max(samples["path_mtu_bytes"]).as_py() == 1500, "probed up to the path's MTU"
    assert record["summary"][direction]["total_bps"] > 10e6


LONG = """
name = "long"
[[hosts]]
name = "client"
[[hosts]]
name = "server"
[[links]]
name = "wan"
a = "client"
b = "server"
rtt_s = "100ms"
both = { rate_bps = "1Gbit", mtu_bytes = 1500, queue = { capacity_bdp = 1.0 } }
"""


# At the end of the start-up thousands of pieces wait behind as many gaps.
@pytest.mark.alone
def test_a_start_up_that_overfills_the_queue_of_a_long_path_is_survived(
    testbed: MakeBed, serve: Callable[..., Served], tmp_path: Path
) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    bed = testbed(tmp_path / "long.toml")
    served = serve(bed.hosts["server"])
    options = ("--transport", "quic", "-C", "cubic", "-t", "5", "--no-store", "--json")
    done = bed.hosts["client"].run([FARLINE, "probe", served.ticket, *options], timeout=60)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    sender = next(stream for stream in record["streams"] if stream["role"] == 0)
    assert sender["retransmits"] > 1024
    assert record["summary"]["forward"]["total_bps"] > 100e6


@pytest.fixture
def cable() -> Iterator[tuple[str, str]]:
    """Two namespaces with a cable between them; the second has two addresses and uses the first.

    Not a testbed: its emulator carries to no address but those that it knows.
    """
    here, there = (f"fl-quic-{os.getpid()}-{end}" for end in ("a", "b"))
    slow = ("tc", "-n", there, "qdisc", "add", "dev", "vb", "root", "tbf")
    steps = [
        ("ip", "netns", "add", here),
        ("ip", "netns", "add", there),
        ("ip", "-n", here, "link", "add", "va", "type", "veth", "peer", "name", "vb"),
        ("ip", "-n", here, "link", "set", "vb", "netns", there),
        ("ip", "-n", here, "addr", "add", "10.88.0.1/24", "dev", "va"),
        ("ip", "-n", there, "addr", "add", "10.88.0.2/24", "dev", "vb"),
        ("ip", "-n", there, "addr", "add", f"{NEW}/24", "dev", "vb"),
        *(
            ("ip", "-n", name, "link", "set", dev, "up")
            for name, dev in ((here, "va"), (there, "vb"))
        ),
        *(("ip", "-n", name, "link", "set", "lo", "up") for name in (here, there)),
        (*slow, "rate", "50mbit", "burst", "200kb", "latency", "50ms"),
    ]
    try:
        for step in steps:
            subprocess.run(step, check=True, capture_output=True)
        yield here, there
    finally:
        for name in (here, there):
            subprocess.run(("ip", "netns", "del", name), capture_output=True, check=False)


def test_a_copy_goes_on_when_the_address_of_its_client_changes(
    cable: tuple[str, str], tmp_path: Path, ending: Ending
) -> None:
    """Datagrams leave by the new address from the moment on at which routes say so."""
    here, there = cable
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    def run(name: str, *words: str) -> subprocess.Popen[str]:
        command = ["ip", "netns", "exec", name, str(FARLINE), *words]
        return ending(subprocess.Popen(command, env=environment, **pipes))  # type: ignore[call-overload]

    state = ("--state-dir", str(tmp_path / "state"), "--write", str(tmp_path))
    serving = run(here, "serve", "--listen", "10.88.0.1", "-p", "0", "--json", *state)
    assert serving.stdout is not None
    ticket = json.loads(serving.stdout.readline())["tickets"]["write"]
    volume = tmp_path / "volume"
    volume.write_bytes(os.urandom(BYTES))
    words = ("--no-store", "--json", str(volume), f"{ticket}#target/", "--transport", "quic")
    copying = run(there, "copy", *words)
    partial = tmp_path / "target"
    while copying.poll() is None and not partial.exists():
        time.sleep(0.05)
    time.sleep(1.0)
    assert copying.poll() is None, "it was to be in the middle"
    route = ("ip", "-n", there, "route", "replace", "10.88.0.1/32", "dev", "vb", "src", NEW)
    subprocess.run(route, check=True)
    printed, said = copying.communicate(timeout=60)
    assert copying.returncode == 0, said
    record = json.loads(printed)
    assert (tmp_path / "target" / "volume").read_bytes() == volume.read_bytes()
    receivers = [one for one in record["streams"] if (one["end"], one["role"]) == (1, 1)]
    remotes = [one["granted"]["remote"] for one in receivers if one["bytes"] > 1_000_000]
    assert remotes and all(remote.startswith(f"{NEW}:") for remote in remotes), remotes
    assert record["copy"].get("attempts", 1) == 1, "no session was lost over it"
