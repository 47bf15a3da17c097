"""Reno's and CUBIC's sawtooth in the queue: the computed period against the one seen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _emulator.figures import Figure, Label, Seen, within
from _emulator.results import Effort
from _emulator.runs import Run, forget_samples, forward_samples, up, valid_run
from _emulator.sawtooth import (
    CUBIC,
    RENO,
    Bottleneck,
    Growth,
    cubic_plateau_s,
    drop_intervals_s,
    main_period_s,
    period_s,
)
from _emulator.traffic import iperf3, iperf3_server
from farline.testbeds import Testbed

GROUP = "sawtooth"
MTU_BYTES = 9000
WIRE_BYTES = MTU_BYTES + 38
INTERVAL_S = 0.01
ALLOWED = 0.10
# Left out at the start: slow start and two teeth.
SKIPPED_PERIODS = 3


@dataclass(frozen=True)
class Tooth:
    """A flow over a bottleneck with a queue of one bandwidth-delay product."""

    growth: Growth
    rate_bps: float
    rtt_s: float

    @property
    def path(self) -> Bottleneck:
        """The bottleneck as the formula has it."""
        bdp_bytes = self.rate_bps * self.rtt_s / 8
        return Bottleneck(self.rate_bps, self.rtt_s, bdp_bytes, WIRE_BYTES)

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.growth.name} {self.rate_bps / 1e9:g} Gb/s {self.rtt_s * 1000:g} ms"


TEETH = (Tooth(RENO, 1e9, 0.01), Tooth(CUBIC, 1e9, 0.01), Tooth(CUBIC, 5e9, 0.004))

Series = dict[str, NDArray[np.int64]]


def rows(effort: Effort) -> Iterator[Figure]:
    """Two rows per flow: by drops, and by the occupancy's autocorrelation."""
    for tooth in TEETH:
        queue = {"capacity_bdp": 1.0}
        forward = pipe(tooth.rate_bps, tooth.rtt_s, queue=queue, mtu_bytes=MTU_BYTES)
        with up(pair(forward, interval_s=INTERVAL_S)) as bed:
            yield from _rows(bed, tooth, effort)


def _rows(bed: Testbed, tooth: Tooth, effort: Effort) -> Iterator[Figure]:
    computed = period_s(tooth.path, tooth.growth)
    if tooth.growth is CUBIC and cubic_plateau_s(tooth.path) < 1.5 * computed:
        raise ValueError(f"{tooth.name}: CUBIC's own curve decides here, the formula does not hold")
    periods = SKIPPED_PERIODS + effort.seconds(14, 4)
    done: Run[Series] = valid_run(bed, lambda: _flow(bed, tooth, periods * computed))
    steady = _steady(done.value, SKIPPED_PERIODS * computed)
    intervals = drop_intervals_s(
        steady["end_us"] / 1e6, steady["tail_drop_packets"], 10 * tooth.rtt_s
    )
    label = Label(GROUP, f"{tooth.name}, by drops", "s", "median interval between losses")
    yield within(label, Seen(intervals.tolist(), [done.stamp]), computed, ALLOWED * computed)
    period = _period_s(steady)
    label = Label(GROUP, f"{tooth.name}, by queue", "s", "autocorrelation; 0: none is clear")
    yield within(label, Seen([period], [done.stamp]), computed, ALLOWED * computed)


def _period_s(steady: Series) -> float:
    """Period of the queue's occupancy; 0 if it has no clear one."""
    try:
        return main_period_s(steady["backlog_bytes"].astype(float), INTERVAL_S)
    except ValueError:
        return 0.0


def _flow(bed: Testbed, tooth: Tooth, seconds: float) -> Series:
    sender, receiver = bed.hosts[SENDER], bed.hosts[RECEIVER]
    forget_samples(bed)
    with iperf3_server(receiver):
        iperf3(sender, receiver.address, seconds, "-C", tooth.growth.name)
    time.sleep(2 * INTERVAL_S)
    return forward_samples(bed)


def _steady(samples: Series, skip_s: float) -> Series:
    """Samples from some seconds after the first byte to the last busy interval."""
    busy = np.flatnonzero(samples["in_bytes"] > WIRE_BYTES)
    start = int(np.searchsorted(samples["end_us"], samples["end_us"][busy[0]] + skip_s * 1e6))
    return {name: column[start : busy[-1]] for name, column in samples.items()}
