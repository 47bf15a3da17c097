"""Both contenders of the speed benches, each as its user runs it: server and client of its own.

Ours is `farline serve` with `farline probe --json`, the peer is `iperf3 -s` with
`iperf3 -c -J`. Figures are each tool's own for the same quantities: payload bits
per second at the receiver, and CPU seconds of both ends per 10^9 payload bytes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _copy.place import ending

FARLINE = Path(sys.executable).with_name("farline")
IPERF3_PORT = 5201
RUN_TIMEOUT_S = 60


@dataclass(frozen=True)
class Figures:
    """What one run came to."""

    gbps: float
    cpu_s_per_gb: float
    packets_per_s: float


@dataclass(frozen=True)
class Link:
    """A path between two namespaces (the same one twice for loopback)."""

    name: str
    client: str
    server: str
    address: str


@dataclass(frozen=True)
class Arena:
    """A path with both servers up."""

    path: Link
    ticket: str

    def ours(self, *options: str) -> Figures:
        """One `farline probe` over the path."""
        command = [str(FARLINE), "probe", self.ticket, "--no-store", "--json", *options]
        record = json.loads(_in(self.path.client, command))
        if record["status"] != "complete":
            raise RuntimeError(f"farline probe: {record['error']}")
        summary = record["summary"]
        forward = summary["forward"]
        received = sum(s["packets"] for s in record["streams"] if s["role"] == 1)
        return Figures(
            gbps=forward["total_bps"] / 1e9,
            cpu_s_per_gb=summary["cpu_s_per_gb"],
            packets_per_s=received / forward["elapsed_s"],
        )

    def peer(self, *options: str) -> Figures:
        """One iperf3 client run over the path."""
        command = ["iperf3", "-c", self.path.address, "-J", *options]
        document = json.loads(_in(self.path.client, command))
        if "error" in document:
            raise RuntimeError(f"iperf3: {document['error']}")
        return _iperf3_figures(document["end"])


def _iperf3_figures(end: dict[str, Any]) -> Figures:
    """Figures at the receiver; a UDP run reports what was sent and what was lost of it."""
    is_udp = "packets" in end["sum"] if "sum" in end else False
    total = end["sum"] if is_udp else end["sum_received"]
    arrived = total["packets"] - total["lost_packets"] if is_udp else 0
    arrived_bytes = total["bytes"] * arrived / total["packets"] if is_udp else total["bytes"]
    cpu = end["cpu_utilization_percent"]
    cpu_s = (cpu["host_total"] + cpu["remote_total"]) / 100 * total["seconds"]
    return Figures(
        gbps=arrived_bytes * 8 / total["seconds"] / 1e9,
        cpu_s_per_gb=cpu_s / (arrived_bytes / 1e9),
        packets_per_s=arrived / total["seconds"],
    )


def _in(namespace: str, command: list[str]) -> str:
    """Output of a command run in a namespace; iperf3 exits 1 on errors it also reports in JSON."""
    done = subprocess.run(
        ["ip", "netns", "exec", namespace, *command],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
    )
    if not done.stdout.strip():
        raise RuntimeError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


@contextmanager
def paths(mtus: tuple[int, ...]) -> Iterator[list[Link]]:
    """Loopback, and a veth pair for every MTU, in namespaces that go away afterwards."""
    if shutil.which("iperf3") is None:
        raise SystemExit("iperf3 is missing: apt-get install iperf3")
    with ExitStack() as stack:
        for namespace in ("fl-bench-c", "fl-bench-s"):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)
            _ip("netns", "add", namespace)
            stack.callback(_ip, "netns", "delete", namespace)
            _ip("-n", namespace, "link", "set", "lo", "up")
        found = [Link("lo", "fl-bench-c", "fl-bench-c", "127.0.0.1")]
        for number, mtu in enumerate(mtus):
            found.append(_veth(number, mtu))
        yield found


def _veth(number: int, mtu: int) -> Link:
    near, far = f"c{number}", f"s{number}"
    _ip("-n", "fl-bench-c", "link", "add", near, "type", "veth", "peer", "name", far)
    _ip("-n", "fl-bench-c", "link", "set", far, "netns", "fl-bench-s")
    for namespace, device, last in (("fl-bench-c", near, 1), ("fl-bench-s", far, 2)):
        _ip("-n", namespace, "address", "add", f"10.98.{number}.{last}/24", "dev", device)
        _ip("-n", namespace, "link", "set", device, "mtu", str(mtu), "up")
    return Link(f"veth{mtu}", "fl-bench-c", "fl-bench-s", f"10.98.{number}.2")


@contextmanager
def arena(path: Link) -> Iterator[Arena]:
    """Both servers up on a path; both down afterwards."""
    enter = ["ip", "netns", "exec", path.server]
    with tempfile.TemporaryDirectory(prefix="farline-bench-") as state, ExitStack() as stack:
        peer = [*enter, "iperf3", "-s"]
        stack.enter_context(ending(subprocess.Popen(peer, stdout=subprocess.DEVNULL, text=True)))
        serve = [*enter, str(FARLINE), "serve", "--listen", path.address, "--state-dir", state]
        ours = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
        stack.enter_context(ending(ours))
        yield Arena(path, _ticket(ours))


def _ticket(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        for word in line.split():
            if word.startswith("farline://"):
                time.sleep(0.2)  # iperf3 needs a moment more to listen
                return word
    raise RuntimeError("farline serve printed no ticket")
