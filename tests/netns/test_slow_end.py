"""A measurement whose streams have queued more than the path carries in a long time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from farline.testbeds import Testbed, load
from farline.testbeds.serving import serving

RATE_BPS = 2_000_000
QUEUED = "4M"
"""Of each stream: eight take two minutes to arrive."""


@pytest.mark.parametrize(
    "options",
    [("-C", "cubic", "-w", QUEUED), ("--transport", "udt"), ("--transport", "quic")],
    ids=["tcp", "udt", "quic"],
)
def test_what_was_measured_is_told_though_much_is_still_under_way(
    options: tuple[str, ...],
) -> None:
    """TCP is ended with what has arrived; what UDT and QUIC hold arrives in time."""
    with (
        Testbed.up(load("back-to-back", rtt_s="20ms", rate_bps=RATE_BPS, mtu_bytes=1500)) as bed,
        serving(bed.hosts["server"], bed.hosts["server"].address) as (_, ticket),
    ):
        words = ["probe", ticket, "--json", "--no-store", "-t", "1", "-P", "8"]
        done = bed.hosts["client"].run(
            [sys.executable, "-m", "farline", *words, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["status"] == "complete"
    received = record["summary"]["forward"]
    assert 0 < received["total_bps"] <= 1.05 * RATE_BPS
