"""Cases of `rbudp-speed` about the pace: do data arrive at the stated rate, and in what bursts?

One blast on loopback at each rate, the sender on one CPU and the receiver on the other. The
receiving kernel's timestamps of every batch of datagrams say when it came (`sniffer`). Delivered:
payload of all batches but the first, over the time from the first to the last. Burst: the most
that would wait in a queue which the stated rate drains, less what came at once in one batch: the
sender's batches take a tenth of a millisecond of the rate, or are eight datagrams where that is
more, up to 2 ms (crates/transport, rbudp/options.rs); what it was late by it makes up for, at most
eight milliseconds of the rate, at a tenth above it (crates/proto, pace.rs, `Pacer::strict`). So the
queue that a path must have is stated as ten milliseconds of the rate.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from _emulator.figures import Figure, Label, Seen, figure, spread
from _emulator.results import Effort
from _emulator.traffic import serving
from _rbudp.probing import RBUDP_HEADER_BYTES, one_blast, probe, rbudp
from _udt.probing import pinned
from _udt.versus import RECEIVER_CPU, SENDER_CPU

GROUP = "pacing"
DEVICE = "lo"
RATES_BPS = (0.1e9, 0.6e9, 1e9, 5e9, 9e9)
DATAGRAM_BYTES = 1472
IP_UDP_BYTES = 28
ALLOWED = 0.005
QUEUE_S = 0.01
SECONDS, SHORT_SECONDS = 2.0, 0.3
RUNS = 5
GRACE_S = 20.0

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Arrivals:
    """When how much payload came, batch by batch."""

    at_ns: Ints
    payload_bytes: Ints

    @property
    def delivered_bps(self) -> float:
        """Payload after the first batch over the time to the last."""
        span_s = float(self.at_ns[-1] - self.at_ns[0]) / 1e9
        return 8 * float(self.payload_bytes[1:].sum()) / span_s

    def most_waiting_bytes(self, rate_bps: float) -> float:
        """Deepest queue in front of a line of `rate_bps`, the batch that comes not counted."""
        since_s = (self.at_ns - self.at_ns[0]) / 1e9
        before = np.concatenate(([0], np.cumsum(self.payload_bytes)[:-1]))
        backlog = before - since_s * rate_bps / 8
        # A queue is never less than empty: what the line could have carried meanwhile is gone.
        return float(np.max(backlog - np.minimum.accumulate(backlog)))


@dataclass
class Sniffed:
    """What a sniffer noted; filled in when it has ended."""

    at_ns: Ints = field(default_factory=lambda: np.array([], np.int64))
    bytes: Ints = field(default_factory=lambda: np.array([], np.int64))
    port: Ints = field(default_factory=lambda: np.array([], np.int64))

    def arrivals(self, port: int, datagram_bytes: int) -> Arrivals:
        """Full batches towards a port; openings and questions have no full datagram."""
        udp = self.bytes - IP_UDP_BYTES
        data = (self.port == port) & (udp >= datagram_bytes)
        datagrams = -(-udp[data] // datagram_bytes)
        return Arrivals(self.at_ns[data], udp[data] - datagrams * RBUDP_HEADER_BYTES)


@contextmanager
def sniffing() -> Iterator[Sniffed]:
    """Notes what comes over loopback for as long as the block lasts."""
    sniffed = Sniffed()
    with tempfile.TemporaryDirectory(prefix="farline-bench-") as folder:
        output = Path(folder) / "sniffed.npz"
        program = str(Path(__file__).with_name("sniffer.py"))
        process = subprocess.Popen(
            [sys.executable, program, str(output), DEVICE], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError("the sniffer did not start")
            yield sniffed
            process.send_signal(signal.SIGTERM)
            said = json.loads(process.communicate(timeout=GRACE_S)[0])
            if said["dropped"]:
                raise RuntimeError(f"the sniffer missed {said['dropped']} batches")
            with np.load(output) as found:
                sniffed.at_ns, sniffed.bytes = found["at_ns"], found["bytes"]
                sniffed.port = found["port"]
        finally:
            process.kill()
            process.wait(timeout=GRACE_S)


def rows(effort: Effort) -> Iterator[Figure]:
    """Rate and burst at each stated rate."""
    with serving(pinned(RECEIVER_CPU), "127.0.0.1") as ticket:
        for rate_bps in RATES_BPS:
            seconds = effort.seconds(SECONDS, SHORT_SECONDS)
            runs = [
                measure(ticket, rate_bps, seconds) for _ in range(1 if effort.is_short else RUNS)
            ]
            yield rate_row(rate_bps, runs)
            yield burst_row(rate_bps, runs)


def measure(ticket: str, rate_bps: float, seconds: float) -> Arrivals:
    """Arrivals of one blast that takes about so long."""
    size = int(rate_bps / 8 * seconds)
    with sniffing() as sniffed:
        way = ["--packet", DATAGRAM_BYTES, *one_blast(size)]
        done = probe(pinned(SENDER_CPU), ticket, seconds, *rbudp(rate_bps, *way))
    port = int(done.sender["granted"]["remote"].rpartition(":")[2])
    return sniffed.arrivals(port, DATAGRAM_BYTES)


def rate_row(rate_bps: float, runs: list[Arrivals]) -> Figure:
    """Delivered payload rate against the stated one."""
    found = Seen([run.delivered_bps / 1e9 for run in runs])
    off = [abs(value * 1e9 / rate_bps - 1) for value in found.values]
    ratios = [ALLOWED / one if one else 1000.0 for one in off]
    label = Label(GROUP, f"lo paced {rate_bps / 1e9:g}G", "Gb/s")
    return figure(label, found, rate_bps / 1e9, ratios, 1.0, f"± {100 * ALLOWED:g} %")


def burst_row(rate_bps: float, runs: list[Arrivals]) -> Figure:
    """Deepest queue in milliseconds of the rate; the quartiles are those of the runs."""
    drained = rate_bps * (1 + ALLOWED)
    found = Seen([8e3 * run.most_waiting_bytes(drained) / rate_bps for run in runs])
    stated = 1e3 * QUEUE_S
    ratios = [stated / value if value else 1000.0 for value in found.values]
    low, middle, high = spread([8e3 * float(run.payload_bytes.max()) / rate_bps for run in runs])
    note = f"batches of up to {middle:.3g} ms ({low:.3g} to {high:.3g})"
    label = Label(GROUP, f"lo paced {rate_bps / 1e9:g}G burst", "ms", note)
    return figure(label, found, stated, ratios, 1.0, f"at most {stated:g}")
