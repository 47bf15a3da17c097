"""Cases of `udt-long-haul`: steady payload of one UDT stream over a 10 Gb/s link, 0 to 366 ms.

Steady: from max(3 s, 25 round trips) after the start, counted at the receiver from its samples;
the stamp is about that time too, since packets that wait for cold memory at the start are late.
The link's payload rate is the part of a full frame on the wire that is UDT payload: 44 bytes of
headers and 38 of framing are not. The queue is one bandwidth-delay product; buffers are farline's
own.

Both ends share one CPU and the emulator has the others: it goes before every program on its own,
and would hold up a sender there after each burst.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _emulator.figures import Figure, Label, share_of
from _emulator.results import Effort
from _emulator.runs import seen, up, valid_runs
from _emulator.traffic import serving
from _udt.probing import Probe, probe
from farline.testbeds import Testbed

RATE_BPS = 10_000_000_000
MTUS = (1500, 9000)
RTTS_MS = (0, 10, 50, 100, 366)
LOSS_RTT_MS, LOSS = 100, 0.001
MUST, LOSS_MUST = 0.9, 0.8
HEADER_BYTES, FRAMING_BYTES = 44, 38
HOST_CPUS = [min(os.sched_getaffinity(0))]


@dataclass(frozen=True)
class Cell:
    """One combination."""

    mtu_bytes: int
    rtt_ms: int
    loss: float = 0.0

    @property
    def name(self) -> str:
        """For the table; the loss in per cent."""
        return f"rtt{self.rtt_ms} mtu{self.mtu_bytes} loss{100 * self.loss:g}"

    @property
    def group(self) -> str:
        """Name of its group: a group is one cell."""
        return self.name.replace(" ", "-")

    @property
    def must(self) -> float:
        """Part of the payload rate that it must reach."""
        return LOSS_MUST if self.loss else MUST

    @property
    def omit_s(self) -> float:
        """Seconds at the start that are left out."""
        return max(3.0, 25 * self.rtt_ms / 1000)

    def seconds(self, effort: Effort) -> float:
        """Seconds that count."""
        return effort.seconds(40 if self.rtt_ms > LOSS_RTT_MS else 20, 3)

    def pipe(self) -> dict[str, Any]:
        """The way from the sender to the receiver."""
        queue = {"queue": {"capacity_bdp": 1.0}} if self.rtt_ms else {}
        loss = {"loss": {"random": self.loss}} if self.loss else {}
        return pipe(RATE_BPS, self.rtt_ms / 1000, mtu_bytes=self.mtu_bytes, **queue, **loss)


def cells() -> list[Cell]:
    """Every combination without loss, and one round trip with it."""
    plain = [Cell(mtu, rtt) for mtu in MTUS for rtt in RTTS_MS]
    return plain + [Cell(mtu, LOSS_RTT_MS, LOSS) for mtu in MTUS]


def groups() -> dict[str, Callable[[Effort], Iterator[Figure]]]:
    """A group per cell, so that a run can go on after any of them."""
    return {cell.group: partial(rows, cell=cell) for cell in cells()}


def payload_bps(mtu_bytes: int) -> float:
    """UDT payload that a saturated link carries."""
    return RATE_BPS * (mtu_bytes - HEADER_BYTES) / (mtu_bytes + FRAMING_BYTES)


def rows(effort: Effort, cell: Cell) -> Iterator[Figure]:
    """The row of a cell; a run whose stamp does not hold is done again, up to three times."""
    with up(pair(cell.pipe(), cpus=HOST_CPUS)) as bed:
        receiver = bed.hosts[RECEIVER]
        with serving(receiver.popen, receiver.address) as ticket:
            measure = partial(_measure, bed, ticket, cell, effort)
            runs = valid_runs(bed, measure, 1, settle_s=cell.omit_s)
    stamp = runs[0].stamp
    lateness = f"99 % less than {stamp['lateness_p99_us']:.0f} us late"
    cpu = f"{runs[0].value.cpu_s_per_gb:.2f} CPU s per GB"
    word = "valid" if stamp["valid"] else "NOT VALID"
    label = Label(cell.group, cell.name, "Gb/s", f"path {word}, {lateness}; {cpu}")
    found = seen(runs, lambda run: run.steady_bps / 1e9)
    yield share_of(label, found, payload_bps(cell.mtu_bytes) / 1e9, cell.must)


def _measure(bed: Testbed, ticket: str, cell: Cell, effort: Effort) -> Probe:
    seconds = cell.seconds(effort)
    return probe(bed.hosts[SENDER].popen, ticket, seconds, cell.omit_s)
