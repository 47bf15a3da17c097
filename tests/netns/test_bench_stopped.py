"""A bench of copies that is stopped in one leaves no server, namespace, control group or file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"

# As the cases of copy-vs-peers: a namespace, a control group, a server, files in memory, a client.
BENCH = """
import subprocess
from pathlib import Path
from _copy.loopback import MEMORY
from _copy.ours import serving
from _copy.place import loopback
from _copy.rounds import scratch
from _program import program

def main():
    with loopback() as place, serving(place) as server, scratch(MEMORY, "farline-bench") as folder:
        (folder / "source").write_bytes(bytes(1 << 20))
        print(folder, place.meter.group, server.pid, flush=True)
        subprocess.run(place.call(["sleep", "600"]), check=True)
    return 0

program(main, any_build=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_bench_that_is_stopped_leaves_nothing(number: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": str(BENCHES)}
    with subprocess.Popen(
        [sys.executable, "-c", BENCH], env=environment, stdout=subprocess.PIPE, text=True
    ) as bench:
        try:
            assert bench.stdout is not None
            folder, group, server = bench.stdout.readline().split()
            namespace = Path(f"/run/netns/fl-copy-{bench.pid}")
            made = [Path(folder, "source"), Path(group), Path("/proc", server), namespace]
            assert all(path.exists() for path in made)
            bench.send_signal(number)
            assert bench.wait(timeout=60) == 128 + number
        finally:
            bench.kill()
    left = [path for path in (Path(folder), *made) if path.exists()]
    assert not left
