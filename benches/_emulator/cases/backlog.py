"""The queue in front of a link: never deeper than stated, and as deep."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _emulator.figures import Figure, Label, at_most, within
from _emulator.results import Effort
from _emulator.runs import forget_samples, forward_samples, seen, up, valid_runs
from _emulator.traffic import (
    DATAGRAM_WIRE_BYTES,
    at_wire_rate,
    blast,
    catcher,
    iperf3,
    iperf3_server,
)
from farline.testbeds import Testbed

GROUP = "backlog"
RATE_BPS = 1e9
RTT_S = 0.02
BDP_BYTES = RATE_BPS * RTT_S / 8
PACKETS = 500
OVERDRIVE = 1.3

# The queue as stated, and what it holds of full frames at MTU 1500.
QUEUES: dict[str, tuple[dict[str, Any], float]] = {
    "1 MB": ({"capacity_bytes": 1_000_000}, 1e6),
    "500 packets": ({"capacity_packets": PACKETS}, PACKETS * DATAGRAM_WIRE_BYTES),
    "0.5 BDP": ({"capacity_bdp": 0.5}, BDP_BYTES / 2),
    "1 BDP": ({"capacity_bdp": 1.0}, BDP_BYTES),
}


def rows(effort: Effort) -> Iterator[Figure]:
    """Overdriven by UDP, filled by TCP; each against the stated capacity."""
    for name, (queue, capacity_bytes) in QUEUES.items():
        with up(pair(pipe(RATE_BPS, RTT_S, queue=queue))) as bed:
            yield from _rows(bed, name, capacity_bytes, effort)


def _rows(bed: Testbed, name: str, capacity_bytes: float, effort: Effort) -> Iterator[Figure]:
    seconds = effort.seconds(4.0, 2.0)
    runs = valid_runs(bed, lambda: _overdriven(bed, seconds), effort.repetitions)
    deepest = seen(runs, float)
    yield at_most(Label(GROUP, f"{name}, UDP x 1.3, deepest", "B"), deepest, capacity_bytes)
    label = Label(GROUP, f"{name}, UDP x 1.3, all of it used", "B", "within one frame")
    yield within(label, deepest, capacity_bytes, DATAGRAM_WIRE_BYTES)
    runs = valid_runs(bed, lambda: _tcp(bed, seconds), effort.repetitions)
    yield at_most(
        Label(GROUP, f"{name}, TCP cubic, deepest", "B"), seen(runs, float), capacity_bytes
    )


def _deepest(bed: Testbed) -> int:
    time.sleep(0.3)  # the last interval must have ended
    return int(forward_samples(bed)["backlog_max_bytes"].max())


def _overdriven(bed: Testbed, seconds: float) -> int:
    sender, receiver = bed.hosts[SENDER], bed.hosts[RECEIVER]
    forget_samples(bed)
    with catcher(receiver, "nothing"):
        blast(sender, receiver.address, at_wire_rate(RATE_BPS * OVERDRIVE, seconds))
    return _deepest(bed)


def _tcp(bed: Testbed, seconds: float) -> int:
    sender, receiver = bed.hosts[SENDER], bed.hosts[RECEIVER]
    forget_samples(bed)
    with iperf3_server(receiver):
        iperf3(sender, receiver.address, seconds, "-C", "cubic")
    return _deepest(bed)
