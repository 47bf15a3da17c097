"""Cases of `rbudp-model`: time of single blasts, and their passes, against the corrected model.

A cell has a path of its own: stated delay, stated loss on the way of the data alone, no rate limit,
since the sender has one. Its round trip is the stated one and what hosts and emulator add, which
is measured with nothing else under way. What is compared is the sender's own time, T_total of
He et al. 2002: from its first packet until it knows that everything came.

Where packets are lost the time is left to chance. The mean of the runs may differ from the model's
mean by 3 % and by what chance allows a mean of so many runs, `CONFIDENCE` of them; the note of a
row says how much that is. Passes are counted in the same runs: their sum must lie in the middle
of its own distribution.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from _emulator.beds import RECEIVER, SENDER, pair
from _emulator.figures import Figure, Label, Seen, figure
from _emulator.results import Effort
from _emulator.runs import Run, seen, up, valid_runs
from _emulator.traffic import ping_ms, serving
from _rbudp.cells import Cell
from _rbudp.probing import Probe, one_blast, probe, rbudp
from _udt.haul import HOST_CPUS
from farline.models.rbudp import Prediction
from farline.models.rbudp_corrected import Floats, PassDistribution
from farline.testbeds import Testbed

ALLOWED = 0.03
RUNS, SHORT_RUNS = 5, 2
# Blasts that take longer are run less often, and where chance decides short ones more often: for
# so long in all, with what starting a run costs.
LONG_S, LONG_RUNS = 8.0, 3
CHANCE_S, START_S, MOST_RUNS = 40.0, 0.6, 60
# Of all rows with chance in them, one in a hundred benches has one outside by chance.
CONFIDENCE = 0.999
CONFIDENCE_Z = 3.29
# 5 % to 95 % of a normal distribution, in standard deviations.
MIDDLE_WIDTH_Z = 3.29
PINGS, PINGS_SKIPPED, PING_INTERVAL_MS = 60, 10, 5


def groups(cells: Sequence[Cell]) -> dict[str, Callable[[Effort], Iterator[Figure]]]:
    """A group per cell, so that a run can go on after any of them."""
    return {cell.group: partial(rows, cell=cell) for cell in cells}


def rows(effort: Effort, cell: Cell) -> Iterator[Figure]:
    """Time of a cell's blasts, and where packets are lost between reports, their passes."""
    count = SHORT_RUNS if effort.is_short else runs_of(cell)
    with up(pair(cell.pipe(), cpus=HOST_CPUS)) as bed:
        base_s = base_rtt_s(bed, cell)
        receiver = bed.hosts[RECEIVER]
        with serving(receiver.popen, receiver.address) as ticket:
            runs = valid_runs(bed, partial(_measure, bed, ticket, cell), count)
    yield time_row(cell, runs, base_s)
    if cell.loss and not cell.early:
        yield passes_row(cell, runs)


def runs_of(cell: Cell) -> int:
    """How often a cell's blast is sent."""
    time_s = cell.prediction().time_s
    if time_s > LONG_S:
        return LONG_RUNS
    often = int(CHANCE_S / (time_s + START_S)) if cell.loss else RUNS
    return min(max(often, RUNS), MOST_RUNS)


def base_rtt_s(bed: Testbed, cell: Cell) -> float:
    """What hosts and emulator add to the stated round trip of an idle path."""
    address = bed.hosts[RECEIVER].address
    found = ping_ms(bed.hosts[SENDER], address, PINGS, PING_INTERVAL_MS, PINGS_SKIPPED)
    return max(0.0, statistics.median(found) - cell.rtt_ms) / 1000


def _measure(bed: Testbed, ticket: str, cell: Cell) -> Probe:
    way = "--early" if cell.early else "--no-early"
    options = rbudp(cell.rate_bps, way, *one_blast(cell.payload_bytes))
    return probe(bed.hosts[SENDER].popen, ticket, 3 * cell.prediction().time_s, *options)


def time_row(cell: Cell, runs: Sequence[Run[Probe]], base_s: float) -> Figure:
    """Payload over time in Gb/s, the runs' and the model's."""
    predicted = cell.prediction(base_s, runs[0].value.packet_payload_bytes)
    times = [run.value.blast_s for run in runs]
    middle = statistics.fmean(times) if cell.loss else statistics.median(times)
    chance = chance_s(cell, predicted, len(times)) / predicted.time_s
    bits = 8 * cell.payload_bytes
    speeds = Seen([bits / time / 1e9 for time in times], seen(runs, lambda _: 1.0).stamps)
    ratio = deviation_ratio(predicted.time_s / middle - 1, ALLOWED + chance)
    note = f"round trip {1000 * base_s:.2f} ms over the stated one"
    note += f"; chance {100 * chance:.1f} %" if chance else ""
    label = Label(cell.group, cell.name, "Gb/s", note)
    stated = predicted.throughput_bps / 1e9
    return figure(label, speeds, stated, [ratio], 1.0, f"± {100 * (ALLOWED + chance):.1f} %")


def chance_s(cell: Cell, predicted: Prediction, count: int) -> float:
    """How far from the model's the mean time of so many blasts may be by chance alone."""
    if not cell.loss:
        return 0.0
    if cell.early:
        spread_s = (predicted.time_high_s - predicted.time_low_s) / MIDDLE_WIDTH_Z
        return CONFIDENCE_Z * spread_s / math.sqrt(count)
    distribution = PassDistribution(predicted.case.packets, cell.loss)
    limits = sum_limits(distribution.probabilities(), count, CONFIDENCE)
    most = max(abs(limit / count - distribution.mean) for limit in limits)
    return most * (predicted.case.rtt_s + predicted.case.settling_s)


def deviation_ratio(deviation: float, allowed: float) -> float:
    """Allowed over seen, as the contract has it."""
    return allowed / abs(deviation) if deviation else math.inf


def passes_row(cell: Cell, runs: Sequence[Run[Probe]]) -> Figure:
    """Mean number of passes; allowed is what chance does to a sum of so many."""
    packets = cell.case(packet_payload_bytes=runs[0].value.packet_payload_bytes).packets
    distribution = PassDistribution(packets, cell.loss)
    low, high = sum_limits(distribution.probabilities(), len(runs), CONFIDENCE)
    found = seen(runs, lambda run: float(run.blast["passes"]))
    mean = distribution.mean + 1
    off = statistics.fmean(found.values) - mean
    # The limits are whole numbers and stand for themselves: just inside counts as inside.
    limit = (high if off > 0 else low) / len(runs) + 1
    ratio = 1.0 if not off else min(abs(limit - mean) / abs(off), 1000.0)
    label = Label(cell.group, f"{cell.name} passes", "passes", f"{len(runs)} runs")
    allowed = f"{low / len(runs) + 1:.3g} to {high / len(runs) + 1:.3g}"
    return figure(label, found, mean, [ratio], 1.0, allowed)


def sum_limits(probabilities: Floats, count: int, share: float) -> tuple[int, int]:
    """Middle `share` of the sum of `count` independent draws: first and last value in it."""
    whole = np.array([1.0])
    for _ in range(count):
        whole = np.convolve(whole, probabilities)
    reached = np.cumsum(whole)
    tail = (1 - share) / 2
    return int(np.searchsorted(reached, tail)), int(np.searchsorted(reached, 1 - tail))
