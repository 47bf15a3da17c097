"""Round trips as a host sees them, against those the topology states, at every preset's RTT."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace

from _emulator.beds import LINK, RECEIVER, SENDER, pair, pipe, preset_rtts_s
from _emulator.figures import Figure, Label, within
from _emulator.results import Effort
from _emulator.runs import forget_samples, forward_samples, seen, up, valid_runs
from _emulator.traffic import at_wire_rate, background, catcher, ping_ms
from farline.testbeds import Testbed

GROUP = "rtt"
RATE_BPS = 10e9
SHORT_RTTS_S = (0.0, 0.0226, 0.366)
INTERVAL_MS = 10.0
# The first packets touch memory that nobody touched before.
SKIPPED_PINGS = 10
LOAD_S, MOST_LAG_MS = 3600.0, 0.2
LEAST_PART_OF_LOAD = 0.95


@dataclass(frozen=True)
class Condition:
    """How the emulator waits, what else is under way, and the error that is allowed."""

    name: str
    mode: str
    load_bps: float
    allowed_ms: float


@dataclass(frozen=True)
class Pings:
    """Mean round trip, and the rate on the wire meanwhile."""

    mean_ms: float
    load_bps: float


CONDITIONS = (
    Condition("precise idle", "precise", 0.0, 0.15),
    Condition("shared idle", "shared", 0.0, 0.25),
    Condition("shared 50 % load", "shared", RATE_BPS / 2, 0.25),
)


def rows(effort: Effort) -> Iterator[Figure]:
    """A row for every condition and RTT: mean round trip."""
    rtts_s = SHORT_RTTS_S if effort.is_short else preset_rtts_s()
    for condition in CONDITIONS:
        largest = pipe(RATE_BPS, max(rtts_s))
        with up(pair(largest, mode=condition.mode)) as bed, _load(bed, condition):
            # From the longest to the shortest: the bed is made with room for the longest.
            for rtt_s in sorted(rtts_s, reverse=True):
                yield _row(bed, condition, rtt_s * 1000, effort)


def _load(bed: Testbed, condition: Condition) -> AbstractContextManager[object]:
    if not condition.load_bps:
        return nullcontext()
    stack = ExitStack()
    stack.enter_context(catcher(bed.hosts[RECEIVER], "nothing"))
    # What a sender makes up for in a burst would wait in the queue, and pings behind it.
    load = replace(at_wire_rate(condition.load_bps, LOAD_S), most_lag_ms=MOST_LAG_MS)
    stack.enter_context(background(bed.hosts[SENDER], bed.hosts[RECEIVER].address, load))
    return stack


def _row(bed: Testbed, condition: Condition, rtt_ms: float, effort: Effort) -> Figure:
    bed.change(LINK, rtt_s=rtt_ms / 1000)
    time.sleep(1.0)  # what left with the delay before is still on its way
    count = int(effort.seconds(210, 60))

    def obstacle(pings: Pings) -> str:
        if pings.load_bps < condition.load_bps * LEAST_PART_OF_LOAD:
            return f"the load was {pings.load_bps / 1e9:.2f} Gb/s"
        return ""

    runs = valid_runs(bed, lambda: _ping(bed, count), effort.repetitions, obstacle)
    label = Label(GROUP, f"{condition.name} {rtt_ms:g} ms", "ms", "mean RTT, ICMP")
    return within(label, seen(runs, lambda pings: pings.mean_ms), rtt_ms, condition.allowed_ms)


def _ping(bed: Testbed, count: int) -> Pings:
    forget_samples(bed)
    host, address = bed.hosts[SENDER], bed.hosts[RECEIVER].address
    found = ping_ms(host, address, count, INTERVAL_MS, SKIPPED_PINGS)
    if len(found) != count - SKIPPED_PINGS:
        raise RuntimeError(f"{count - SKIPPED_PINGS - len(found)} echo replies are missing")
    link = forward_samples(bed)
    seconds = float(link["end_us"][-1] - link["start_us"][0]) / 1e6
    return Pings(statistics.fmean(found), float(link["out_bytes"].sum()) * 8 / seconds)
