"""Traffic between hosts: this folder's programs, iperf3 and farline's server, started and read."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _iperf3 import FARLINE
from farline.testbeds import Host

HERE = Path(__file__).resolve().parent
IPERF3_PORT = 5201
# Beyond the time a run is meant to take: connecting, slow ends, results over a long path.
GRACE_S = 60.0
PAYLOAD_BYTES = 1472
DATAGRAM_WIRE_BYTES = PAYLOAD_BYTES + 66


def program(name: str, *options: object) -> list[str]:
    """Command line of a program of this folder."""
    return [sys.executable, str(HERE / f"{name}.py"), *map(str, options)]


def call(host: Host, command: Sequence[str], limit_s: float) -> str:
    """Output of a command in a host; its complaint if it fails."""
    done = host.run(list(command), capture_output=True, text=True, timeout=limit_s)
    if done.returncode and not done.stdout.strip():
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return str(done.stdout)


@dataclass
class Caught:
    """What a catcher received; filled in when it has ended."""

    datagrams: int = 0
    dropped: int = 0
    arrays: dict[str, NDArray[np.int64]] = field(default_factory=dict)


@contextmanager
def catcher(host: Host, keep: str) -> Iterator[Caught]:
    """A receiver of datagrams in a host; what it caught is there after the block."""
    caught = Caught()
    with tempfile.TemporaryDirectory(prefix="farline-bench-") as folder:
        output = Path(folder) / "caught.npz"
        command = program("catcher", output, "--keep", keep)
        process = host.popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError("the catcher did not start")
            yield caught
            process.send_signal(signal.SIGTERM)
            said = json.loads(process.communicate(timeout=GRACE_S)[0])
            caught.datagrams, caught.dropped = said["datagrams"], said["dropped"]
            with np.load(output) as found:
                caught.arrays = {name: found[name] for name in found.files}
        finally:
            process.kill()
            process.wait(timeout=GRACE_S)


@dataclass(frozen=True)
class Blast:
    """Datagrams to send: how many, how fast (per second, 0 as fast as it goes), how large."""

    count: int
    per_s: float = 0.0
    segments: int = 44
    payload: int = PAYLOAD_BYTES
    numbered: bool = False
    most_lag_ms: float = 5.0

    def command(self, address: str) -> list[str]:
        """How to send it."""
        size = ["--payload", self.payload, "--segments", self.segments]
        pace = ["--count", self.count, "--datagrams-per-s", self.per_s]
        pace += ["--most-lag-ms", self.most_lag_ms]
        numbered = ["--numbered"] if self.numbered else []
        return program("blaster", address, *size, *pace, *numbered)

    @property
    def limit_s(self) -> float:
        """Time to wait for its end."""
        return GRACE_S + (2 * self.count / self.per_s if self.per_s else 0.0)


def at_wire_rate(rate_bps: float, seconds: float, *, numbered: bool = False) -> Blast:
    """Datagrams of a full frame at MTU 1500, at a rate on the wire, for some seconds."""
    per_s = rate_bps / 8 / DATAGRAM_WIRE_BYTES
    # A call should last no longer than about a millisecond of the rate, or slow paths get gusts.
    segments = max(1, min(44, int(per_s / 1000)))
    return Blast(int(per_s * seconds), per_s, segments, numbered=numbered)


def blast(host: Host, address: str, load: Blast) -> dict[str, Any]:
    """Sends it all; what the program says of it."""
    said: dict[str, Any] = json.loads(call(host, load.command(address), load.limit_s))
    return said


@contextmanager
def background(host: Host, address: str, load: Blast) -> Iterator[None]:
    """Sends for as long as the block lasts."""
    process = host.popen(load.command(address), stdout=subprocess.DEVNULL)
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError("the load ended before what it was to load")
    finally:
        process.kill()
        process.wait(timeout=GRACE_S)


def ping_ms(host: Host, address: str, count: int, interval_ms: float, skip: int) -> list[float]:
    """Round trips in milliseconds, the first `skip` left out."""
    command = program("pinger", address, "--count", count, "--interval-ms", interval_ms)
    said = json.loads(call(host, command, GRACE_S + count * interval_ms / 1000))
    return [value / 1e6 for value in said["rtt_ns"][skip:]]


@contextmanager
def serving(start: Callable[..., subprocess.Popen[str]], address: str) -> Iterator[str]:
    """A farline server that `start` starts, on a port of the kernel's choice; a ticket to it."""
    with tempfile.TemporaryDirectory(prefix="farline-bench-") as state:
        command = [str(FARLINE), "serve", "--listen", address, "-p", "0", "--json"]
        server = start([*command, "--state-dir", state], stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            yield str(json.loads(server.stdout.readline())["ticket"])
        finally:
            server.terminate()
            server.communicate(timeout=GRACE_S)


@contextmanager
def iperf3_server(host: Host) -> Iterator[None]:
    """An iperf3 server in a host."""
    if shutil.which("iperf3") is None:
        raise SystemExit("iperf3 is missing: apt-get install iperf3")
    command = ["iperf3", "-s", "--forceflush"]
    process = host.popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "listening" in line:
                break
        with _drained(process):
            yield
    finally:
        process.kill()
        process.wait(timeout=GRACE_S)


@contextmanager
def _drained(process: subprocess.Popen[str]) -> Iterator[None]:
    """Throws away what a process prints, so that a full pipe never stops it."""
    from threading import Thread

    stream = process.stdout
    assert stream is not None
    reader = Thread(target=lambda: [None for _ in stream], daemon=True)
    reader.start()
    yield


def iperf3(host: Host, address: str, seconds: float, *options: str) -> dict[str, Any]:
    """One iperf3 client run in a host; its whole document."""
    command = iperf3_command(address, seconds, *options)
    document = json.loads(call(host, command, seconds * 2 + GRACE_S))
    return checked_iperf3(document)


def iperf3_command(address: str, seconds: float, *options: str) -> list[str]:
    """Command line of a client whose results are one JSON document."""
    return ["iperf3", "-c", address, "-J", "-t", str(int(seconds)), *options]


def checked_iperf3(document: dict[str, Any]) -> dict[str, Any]:
    """The same document, if the run did not fail."""
    if "error" in document:
        raise RuntimeError(f"iperf3: {document['error']}")
    return document


def tcp_counters(host: Host) -> dict[str, int]:
    """The host's TcpExt and Tcp counters by name."""
    text = call(host, ["cat", "/proc/net/netstat", "/proc/net/snmp"], GRACE_S)
    lines = [line.split() for line in text.splitlines()]
    found: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        if names[0] in ("TcpExt:", "Tcp:"):
            found |= dict(zip(names[1:], map(int, values[1:]), strict=True))
    return found


def increase(before: dict[str, int], after: dict[str, int], *names: str) -> int:
    """By how much counters rose, together."""
    return sum(after[name] - before[name] for name in names)
