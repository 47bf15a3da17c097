"""UDP through a link without a rate limit: single datagrams per second, and batches in Gb/s.

Senders are paced a little above what must arrive: faster than the emulator can take them, packets
would be dropped before it, and the stamp would rightly call the run invalid.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _emulator.figures import Figure, Label, at_least
from _emulator.results import Effort
from _emulator.runs import seen, up, valid_runs
from _emulator.traffic import GRACE_S, call, serving
from _iperf3 import FARLINE
from farline.testbeds import Testbed

GROUP = "udp"
PAYLOAD_BYTES = 1472
PLAIN_FLOOR_PER_S, PLAIN_OFFERED_PER_S = 200_000, 215_000
BATCHED_FLOOR_BPS, BATCHED_OFFERED_BPS = 15e9, 16.5e9


def rows(effort: Effort) -> Iterator[Figure]:
    """Both rows, at no delay."""
    seconds = int(effort.seconds(5, 2))
    with (
        up(pair(pipe(0, 0.0))) as bed,
        serving(bed.hosts[RECEIVER].popen, bed.hosts[RECEIVER].address) as ticket,
    ):
        runs = valid_runs(bed, lambda: _plain(bed, ticket, seconds), effort.repetitions)
        label = Label(GROUP, "datagrams of 1472 B, one by one", "pkt/s", "at the receiver")
        yield at_least(label, seen(runs, float), PLAIN_FLOOR_PER_S)
        runs = valid_runs(bed, lambda: _batched(bed, ticket, seconds), effort.repetitions)
        label = Label(GROUP, "datagrams of 1472 B, GSO and GRO", "Gb/s", "payload at the receiver")
        yield at_least(label, seen(runs, float), BATCHED_FLOOR_BPS / 1e9)


def _probe(
    bed: Testbed, ticket: str, rate_bps: float, seconds: int, *options: str
) -> dict[str, Any]:
    """Record of one run of `farline probe` at a rate of payload."""
    run = ["-u", "-b", str(int(rate_bps)), "--packet", str(PAYLOAD_BYTES), "-t", str(seconds)]
    command = [str(FARLINE), "probe", ticket, "--no-store", "--json", "-O", "0", *run, *options]
    record: dict[str, Any] = json.loads(call(bed.hosts[SENDER], command, GRACE_S + seconds))
    if record["status"] != "complete":
        raise RuntimeError(f"farline probe: {record['error']}")
    return record


def _plain(bed: Testbed, ticket: str, seconds: int) -> float:
    """Datagrams per second that arrived, each through the link by itself."""
    rate_bps = PLAIN_OFFERED_PER_S * PAYLOAD_BYTES * 8
    record = _probe(bed, ticket, rate_bps, seconds, "--no-gso", "--no-gro")
    received = sum(int(stream["packets"]) for stream in record["streams"] if stream["role"] == 1)
    return received / float(record["summary"]["forward"]["elapsed_s"])


def _batched(bed: Testbed, ticket: str, seconds: int) -> float:
    """Payload Gb/s that arrived."""
    record = _probe(bed, ticket, BATCHED_OFFERED_BPS, seconds, "--gso", "--gro")
    return float(record["summary"]["forward"]["total_bps"]) / 1e9
