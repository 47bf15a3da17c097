"""One TCP flow over an emulated path, and its window between losses.

The path is two hosts and one link without a limit of its rate unless one is asked for, so that the
round-trip time stays what it is and losses come only where they were ordered.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from farline.testbeds import Testbed, load

ENDPOINT = Path(__file__).with_name("endpoint.py")
PORT = 5201
FIRST_ON_CPU = ["chrt", "--rr", "1"]
"""A sender that waits for a CPU does not use its window, which is then another experiment."""
SLACK_S = 30.0
EVERY_S = 0.01
OPEN_STATES = (0, 1)
"""TCP_CA_Open and TCP_CA_Disorder of linux/tcp.h: no congestion event is being worked off."""

Array = npt.NDArray[np.float64]


def topology(
    rtt_s: float,
    *,
    rate: str | None = None,
    packets: list[int] | None = None,
    every: int | None = None,
    random: float | None = None,
    queue_bdp: float = 1.0,
    seed: int = 1,
) -> Any:
    """Two hosts and a link; losses on the way from sender to receiver only."""
    both = "mtu_bytes = 1500"
    if rate:
        both += f', rate_bps = "{rate}", queue = {{ capacity_bdp = {queue_bdp} }}'
    loss = [f"packets = {packets}"] if packets else []
    loss += [f"every = {every}"] if every else []
    loss += [f"random = {random}"] if random else []
    text = f"""
name = "window"
seed = {seed}
[[hosts]]
name = "sender"
[[hosts]]
name = "receiver"
[[links]]
name = "path"
a = "sender"
b = "receiver"
rtt_s = "{rtt_s * 1000}ms"
both = {{ {both} }}
forward = {{ loss = {{ {", ".join(loss)} }} }}
"""
    return load(text)


@dataclass(frozen=True)
class Epoch:
    """From one congestion event to the next: the part in which the window may grow."""

    event_s: float
    """When the event was seen."""
    window_before: float
    threshold: float
    """What the congestion control made of it."""
    at_s: Array
    """Times since the event, after recovery."""
    window: Array
    rtt_s: Array
    delivered: Array

    @property
    def kept(self) -> float:
        """Share of the window that was kept."""
        return self.threshold / self.window_before


@dataclass(frozen=True)
class Run:
    """What a sender saw of its own socket."""

    control: str
    seen: dict[str, Array]
    stamp: dict[str, Any]

    def events(self) -> list[int]:
        """Rows at which a congestion event was first seen."""
        is_open = np.isin(self.seen["ca_state"], OPEN_STATES)
        return [int(row) + 1 for row in np.flatnonzero(is_open[:-1] & ~is_open[1:])]

    def epochs(self) -> list[Epoch]:
        """Every stretch between two events, and the one from the last event to the end."""
        bounds = [*self.events(), len(self.seen["at_s"])]
        return [self._epoch(start, end) for start, end in itertools.pairwise(bounds)]

    def _epoch(self, start: int, end: int) -> Epoch:
        rows = np.arange(start, end)
        rows = rows[np.isin(self.seen["ca_state"][rows], OPEN_STATES)]
        event_s = float(self.seen["at_s"][start])
        return Epoch(
            event_s=event_s,
            window_before=float(self.seen["cwnd"][start - 1]),
            threshold=float(self.seen["ssthresh"][start]),
            at_s=self.seen["at_s"][rows] - event_s,
            window=self.seen["cwnd"][rows],
            rtt_s=self.seen["rtt_us"][rows] / 1e6,
            delivered=self.seen["delivered"][rows],
        )

    def mean_window(self, from_event: int) -> float:
        """Packets in flight by throughput times RTT, from one event to the last."""
        events = self.events()
        first, last = events[from_event], events[-1]
        seen = {name: column[first : last + 1] for name, column in self.seen.items()}
        packets = seen["delivered"][-1] - seen["delivered"][0]
        elapsed_s = seen["at_s"][-1] - seen["at_s"][0]
        return float(packets / elapsed_s * np.mean(seen["rtt_us"]) / 1e6)


def run(bed: Testbed, control: str, seconds: float, every_s: float = EVERY_S) -> Run:
    """Sends for so long over the bed and watches the window."""
    receiver, sender = bed.hosts["receiver"], bed.hosts["sender"]
    place = [receiver.address, str(PORT)]
    program = [*FIRST_ON_CPU, sys.executable, str(ENDPOINT)]
    sink = receiver.popen([*program, "sink", *place], stdout=subprocess.PIPE)
    try:
        assert sink.stdout is not None and sink.stdout.readline(), "the receiver did not start"
        words = ["send", *place, control, str(seconds), str(every_s)]
        with bed.stamped() as stamp:
            done = sender.run([*program, *words], timeout=seconds + SLACK_S)
        assert done.returncode == 0, done.stderr
        sink.wait(SLACK_S)
    finally:
        sink.kill()
        sink.communicate()
    seen = {name: np.array(values) for name, values in json.loads(done.stdout).items()}
    return Run(control, seen, dict(stamp.value))


def watch(control: str, seconds: float, path: Any, every_s: float = EVERY_S) -> Run:
    """The same over a bed of its own."""
    with Testbed.up(path) as bed:
        return run(bed, control, seconds, every_s)
