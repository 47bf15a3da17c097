"""A testbed of a script: up within the block, gone after it, its path in the record of a run."""

from __future__ import annotations

import json
import sys
from subprocess import PIPE

import pytest

import farline
from farline.testbeds import list_beds

pytestmark = pytest.mark.netns

FARLINE = (sys.executable, "-m", "farline")
SCRIPT = """
import json, sys, farline
run = farline.probe(sys.argv[1], duration_s=0.5, keep=False,
                    tcp={"congestion_control": "reno"}).wait()
print(json.dumps({"rtt_s": run.record["path"]["rtt_s"], "bps": run.throughput_bps}))
"""


def test_a_probe_over_a_testbed_knows_its_path() -> None:
    with farline.testbed(rate_bps="200Mbit", rtt_s="20ms") as bed:
        name = bed.name
        client, server = (bed.hosts[host] for host in list(bed.hosts)[:2])
        address = bed.address(server.name, client.name)
        words = [*FARLINE, "serve", "--anonymous", "--stop-after", "1"]
        with server.popen(words, stdout=PIPE) as serving:
            assert serving.stdout is not None and serving.stdout.readline()
            try:
                done = client.run([sys.executable, "-c", SCRIPT, address], check=True, timeout=60)
            finally:
                serving.terminate()
    found = json.loads(done.stdout)
    assert found["rtt_s"] == pytest.approx(0.02)
    assert 0 < found["bps"] < 200e6
    assert name not in [one.name for one in list_beds()]
