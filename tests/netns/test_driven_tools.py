"""Driven tools over an emulated path: their servers on its hosts, figures beside the wire's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farline.campaign.settings import sampled_spec
from farline.drivers import DrivenTool, InHost
from farline.testbeds import Testbed, load
from farline.tools import ignore_event, never_stop

MTU_BYTES = 1500
HEADER_BYTES = 52
"""IPv4 and TCP with timestamps, of every full segment."""


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    """100 Mb/s and 10 ms between two hosts."""
    topology = load("back-to-back", rate_bps="100Mbit", rtt_s="10ms", mtu_bytes=MTU_BYTES)
    with Testbed.up(topology) as bed:
        yield bed


def received_bytes(bed: Testbed, host: str) -> int:
    """What the host's device has received, in whole packets of IP."""
    device = bed.hosts[host].devices[0]
    done = bed.hosts[host].run(["cat", "/proc/net/dev"], check=True)
    line = next(one for one in done.stdout.splitlines() if f"{device}:" in one)
    return int(line.split(":")[1].split()[0])


@pytest.mark.parametrize("name", ["iperf3", "nuttcp", "gridftp", "rsync", "scp"])
def test_its_figure_is_that_of_the_wire(name: str, bed: Testbed, tmp_path: Path) -> None:
    client, server = list(bed.hosts)[:2]
    what: dict[str, object] = {"duration_s": 2}
    if name in ("gridftp", "rsync", "scp"):
        (tmp_path / "file").write_bytes(os.urandom(4 << 20))
        target = str(tmp_path / "copy" / "file")
        what = {"copy": {"sources": [str(tmp_path / "file")], "destination": target}}
    before = received_bytes(bed, server)
    tool = DrivenTool(name, InHost(bed.hosts[server]), InHost(bed.hosts[client]))
    spec = sampled_spec({"tool": name, **what})
    result = tool.run(bed.address(server, client), spec, ignore_event, never_stop)
    record = result.record
    assert record["status"] == "complete", record.get("error")
    on_wire = received_bytes(bed, server) - before
    payload = on_wire * (MTU_BYTES - HEADER_BYTES) / MTU_BYTES
    driven: Any = record["driven"]
    flow = driven["forward"]
    # Retransmissions and ssh's own bytes are on the wire and in no figure.
    assert flow is not None and payload * 0.95 < flow["bytes"] < payload * 1.02
    assert flow["bytes"] * 8 / flow["elapsed_s"] < 100e6
