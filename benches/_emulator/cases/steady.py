"""Steady throughput of kernel TCP over a 10 Gb/s link with a queue of one bandwidth-delay product.

Steady: from max(3 s, 25 round trips) after the start, which is beyond slow start and the first
recovery. A row is payload at iperf3's receiver against the link's payload rate, that is the part
of a full frame on the wire that is TCP payload (with timestamps, 52 bytes of headers and 38 of
framing). A cell is one long run; a run that was not valid is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _emulator.figures import Figure, Label, none_of, share_of
from _emulator.results import Effort
from _emulator.runs import seen, up, valid_runs
from _emulator.traffic import increase, iperf3, iperf3_server, tcp_counters
from farline.testbeds import Host, Testbed

RATE_BPS = 10_000_000_000
MTUS = (1500, 9000)
RTTS_MS = (0, 10, 50, 100, 366)
STREAMS = (1, 4, 10)
MUST = 0.93
LONGEST_MS = 366
LONGEST_STREAMS_MUST = 0.80
TCP_IP_BYTES, FRAMING_BYTES = 52, 38

GAVE_UP = ("PruneCalled", "RcvPruned", "OfoPruned", "TCPMemoryPressures", "TCPRcvQDrop")


@dataclass(frozen=True)
class Cell:
    """One combination."""

    mtu_bytes: int
    rtt_ms: int
    streams: int

    @property
    def name(self) -> str:
        """For the table."""
        return f"mtu{self.mtu_bytes} rtt{self.rtt_ms} {self.streams}str"

    @property
    def must(self) -> float:
        """Part of the payload rate that it must reach."""
        is_hard = self.rtt_ms == LONGEST_MS and self.streams > 1
        return LONGEST_STREAMS_MUST if is_hard else MUST

    @property
    def omitted_s(self) -> int:
        """Seconds at the start that are left out."""
        return max(3, round(25 * self.rtt_ms / 1000))

    def seconds(self, effort: Effort) -> int:
        """Seconds that count."""
        whole = 50 if self.rtt_ms == LONGEST_MS else 20
        return int(effort.seconds(whole, 5))


@dataclass(frozen=True)
class Steady:
    """What a run came to."""

    payload_gbps: float
    timeouts: int
    given_up: int


def payload_bps(mtu_bytes: int) -> float:
    """TCP payload that a saturated link carries."""
    return RATE_BPS * (mtu_bytes - TCP_IP_BYTES) / (mtu_bytes + FRAMING_BYTES)


def groups() -> dict[str, Callable[[Effort], Iterator[Figure]]]:
    """A group per MTU and RTT."""
    return {
        f"mtu{mtu}-rtt{rtt}": partial(rows, mtu_bytes=mtu, rtt_ms=rtt)
        for mtu in MTUS
        for rtt in RTTS_MS
    }


def rows(effort: Effort, mtu_bytes: int, rtt_ms: int) -> Iterator[Figure]:
    """Rows of all numbers of streams."""
    queue = {"capacity_bdp": 1.0} if rtt_ms else {}
    forward = pipe(RATE_BPS, rtt_ms / 1000, mtu_bytes=mtu_bytes, queue=queue)
    with up(pair(forward)) as bed, iperf3_server(bed.hosts[RECEIVER]):
        for streams in STREAMS:
            yield from _rows(bed, Cell(mtu_bytes, rtt_ms, streams), effort)


def _rows(bed: Testbed, cell: Cell, effort: Effort) -> Iterator[Figure]:
    runs = valid_runs(bed, lambda: _measure(bed, cell, effort), 1)
    group = f"mtu{cell.mtu_bytes}-rtt{cell.rtt_ms}"
    whole = payload_bps(cell.mtu_bytes) / 1e9
    label = Label(group, cell.name, "Gb/s", f"cubic, after {cell.omitted_s} s")
    yield share_of(label, seen(runs, lambda run: run.payload_gbps), whole, cell.must)
    label = Label(group, f"{cell.name}, time-outs", "", "and prunes for want of memory")
    yield none_of(label, seen(runs, lambda run: run.timeouts + run.given_up))


def _measure(bed: Testbed, cell: Cell, effort: Effort) -> Steady:
    sender, receiver = bed.hosts[SENDER], bed.hosts[RECEIVER]
    before = _both(sender, receiver)
    options = ["-C", "cubic", "-P", str(cell.streams), "-O", str(cell.omitted_s)]
    document = iperf3(sender, receiver.address, cell.seconds(effort), *options)
    after = _both(sender, receiver)
    total = document["end"]["sum_received"]
    return Steady(
        payload_gbps=total["bytes"] * 8 / total["seconds"] / 1e9,
        timeouts=increase(before[0], after[0], "TCPTimeouts"),
        given_up=sum(increase(*sides, *GAVE_UP) for sides in zip(before, after, strict=True)),
    )


def _both(sender: Host, receiver: Host) -> tuple[dict[str, int], dict[str, int]]:
    return tcp_counters(sender), tcp_counters(receiver)
