"""Ours against libudt on loopback: one run each way, pairs of runs, rows.

The sender has CPU 0 and the receiver CPU 1, each with all its threads. Payload is counted at the
receiver after a first part that is left out, until the sender's time is over: a transfer that
stands still counts as what it moved. CPU time is that of both processes over all they moved.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from _emulator.figures import Figure, Label, Seen, bounded, figure
from _udt.peers import End, PeerFailed, Said, exchange

SENDER_CPU, RECEIVER_CPU = 0, 1
IP_UDP_BYTES = 28
MIB = 2**20


@dataclass(frozen=True)
class Cell:
    """One combination of what both ends are told."""

    mss_bytes: int = 1500
    streams: int = 1
    block_bytes: int = 65_536
    buffer_mib: int = 10

    @property
    def name(self) -> str:
        """For the table."""
        size = f"mss{self.mss_bytes} {self.streams}str"
        return f"lo {size} block{self.block_bytes} buf{self.buffer_mib}M"

    def words(self) -> list[object]:
        """Options of both ends: UDT's buffers are both of the same size."""
        size = ["--packet", self.mss_bytes - IP_UDP_BYTES, "--block", self.block_bytes]
        buffers = ["--send-buffer", self.buffer_mib * MIB, "--receive-buffer"]
        return [*size, *buffers, self.buffer_mib * MIB, "--connections", self.streams]


@dataclass(frozen=True)
class Length:
    """How long a run is."""

    seconds: float
    omit_s: float

    def words(self) -> list[object]:
        """Options of both ends."""
        span = ["--seconds", self.seconds, "--omit", self.omit_s]
        return ["--bytes", 0, "--pattern", "constant", "--linger", 0, *span]


@dataclass(frozen=True)
class Run:
    """What a run came to."""

    gbps: float
    cpu_s_per_gb: float


NOTHING = Run(0.0, math.inf)


@dataclass(frozen=True)
class Duel(Figure):
    """A row of two contenders, with all values of both."""

    peer_measured: list[float] = field(default_factory=list)


Contender = Callable[[], Run]


def contender(sender: Path, receiver: Path, cell: Cell, length: Length) -> Contender:
    """Runs of two programs in a cell."""
    return lambda: measure(sender, receiver, cell, length)


def measure(sender: Path, receiver: Path, cell: Cell, length: Length) -> Run:
    """One run; one in which an end does not come to its end moved nothing."""
    near = End(sender, cpu=SENDER_CPU)
    far = End(receiver, cpu=RECEIVER_CPU)
    try:
        words = [*cell.words(), *length.words()]
        server, client = exchange(far, near, *words, limit_s=length.seconds)
    except PeerFailed as problem:
        print(f"#   {cell.name}, {sender.name} to {receiver.name}: {problem}", file=sys.stderr)
        return NOTHING
    return figures(server, client)


def figures(server: Said, client: Said) -> Run:
    """Rate at the receiver, and CPU time of both ends."""
    moved = server.total("received_bytes")
    if not moved:
        return NOTHING
    return Run(server.steady_bps / 1e9, (server.cpu_s + client.cpu_s) / (moved / 1e9))


def interleaved(contenders: Sequence[Contender], rounds: int) -> list[tuple[Run, ...]]:
    """A B C A B C ...: runs of each contender, round by round."""
    return [tuple(run() for run in contenders) for _ in range(rounds)]


def speed(label: Label, ours: Sequence[Run], peer: Sequence[Run], must: float) -> Duel:
    """A row of Gb/s: ours over the peer's, pair by pair."""
    pairs = [(a.gbps, b.gbps) for a, b in zip(ours, peer, strict=True)]
    ratios = [a / b if b else math.inf if a else 0.0 for a, b in pairs]
    return duel(label, pairs, ratios, must)


def cost(label: Label, ours: Sequence[Run], peer: Sequence[Run], must: float) -> Duel:
    """A row of CPU seconds per 10^9 bytes: the peer's over ours; a run without bytes loses."""
    pairs = [(a.cpu_s_per_gb, b.cpu_s_per_gb) for a, b in zip(ours, peer, strict=True)]
    ratios = [b / a if math.isfinite(a) else 0.0 for a, b in pairs]
    return duel(label, [(bounded(a), bounded(b)) for a, b in pairs], ratios, must)


def duel(
    label: Label, pairs: Sequence[tuple[float, float]], ratios: Sequence[float], must: float
) -> Duel:
    """A row from pairs of values and what each pair's ratio is."""
    ours, peer = zip(*pairs, strict=True)
    allowed = f"at least {must:g} times libudt's"
    row = figure(label, Seen(ours), statistics.median(peer), ratios, must, allowed)
    return Duel(**vars(row), peer_measured=list(peer))
