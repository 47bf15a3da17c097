"""What a change costs a copy that runs over a long path: no pause, and nothing sent twice."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from _copy.faults.ground import Server
from farline.testbeds import Host
from farline.testbeds.fixture import MakeBed

pytestmark = [pytest.mark.netns, pytest.mark.alone]

RTT_S = 0.2
BYTES = 40_000_000
SCRIPT = """
import json, sys, farline
from farline.tools.events import Adjusted, Progress, StreamSamples

source, target, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
options |= {"interval_s": 0.02, "total_rate_bps": 100_000_000}
job = farline.copy(source, target, keep=False, **options)
asked, wanted, rows, told = [], [9, 2, 5], [], []
for event in job:
    if isinstance(event, Progress) and len(asked) == len(told) and wanted:
        if event.report["elapsed_us"] > 1_000_000:
            asked.append(event.report["elapsed_us"])
            job.set_streams(wanted.pop(0))
    elif isinstance(event, Adjusted):
        told.append(event.change)
    elif isinstance(event, StreamSamples):
        one = event.columns
        kept = ("end", "role", "stream", "start_us", "end_us", "bytes")
        rows += zip(*(one[name] for name in kept))
job.wait()
print(json.dumps({"asked": asked, "told": told, "rows": rows, "report": job.report}))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[[Host], Server]]:
    started: list[Server] = []

    def begin(host: Host) -> Server:
        folder = tmp_path / "server"
        folder.mkdir()
        started.append(Server(host, folder))
        started[-1].start()
        return started[-1]

    yield begin
    for one in started:
        one.kill()


def longest_silence_s(rows: list[list[int]], first_us: int, last_us: int) -> float:
    """Longest time between two moments at which data left the client, within a span."""
    sent: dict[int, int] = {}
    for end, role, stream, _start_us, end_us, bytes_ in rows:
        if (end, role) == (0, 0) and stream not in (2, 3) and first_us <= end_us <= last_us:
            sent[end_us] = sent.get(end_us, 0) + max(bytes_, 0)
    moments = [at for at, amount in sorted(sent.items()) if amount > 0]
    ends = [first_us, *moments, last_us]
    return max(after - before for before, after in pairwise(ends)) / 1e6


@pytest.mark.parametrize("transport", ["tcp", "udt", "quic"])
def test_streams_that_come_and_go_stop_nothing_for_two_round_trips(
    testbed: MakeBed,
    server: Callable[[Host], Server],
    tmp_path: Path,
    transport: str,
) -> None:
    bed = testbed("back-to-back", rtt_s="200ms", rate_bps="1Gbit")
    there = server(bed.hosts["server"])
    volume = tmp_path / "volume"
    volume.write_bytes(os.urandom(BYTES))
    ticket = f"{there.tickets['write']}#{tmp_path / 'target'}/"
    words = [str(volume), ticket, json.dumps({"streams": 2, "transport": transport})]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = bed.hosts["client"].run(
        [sys.executable, "-c", SCRIPT, *words], timeout=60, env=environment
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [change["after"] for change in found["told"]] == [9, 2, 5]
    for asked_us, change in zip(found["asked"], found["told"], strict=True):
        assert not change.get("refused")
        until_us = change["at_us"] + int(2e6 * RTT_S)
        silence_s = longest_silence_s(found["rows"], asked_us, until_us)
        assert silence_s < 2 * RTT_S, (change, silence_s)
    report = found["report"]
    assert report["repeated_chunks"] == 0 and report["copied"]["bytes"] == BYTES
    assert (tmp_path / "target" / "volume").read_bytes() == volume.read_bytes()
