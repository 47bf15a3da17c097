"""Cases of `udt-vs-libudt`: the one that must be ten times as fast, peers mixed, and the grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from _emulator.figures import Figure, Label
from _emulator.results import Effort
from _emulator.traffic import serving
from _udt import peers
from _udt.probing import pinned, probe
from _udt.versus import (
    MIB,
    RECEIVER_CPU,
    SENDER_CPU,
    Cell,
    Contender,
    Length,
    Run,
    contender,
    cost,
    interleaved,
    speed,
)

MSS_BYTES = (1500, 9000, 65_000)
STREAMS = (1, 2, 4)
BLOCKS_BYTES = (1455, 8955, 65_536, 89_559, 179_119)
BUFFERS_MIB = (1, 10)
SPEED_MUST, CPU_MUST = 10.0, 5.0
# The figures that much hangs on are measured longer and more often than a cell of the grid.
LONG, BRIEF, SHORT = Length(2.5, 0.5), Length(1.3, 0.3), Length(0.6, 0.2)
MANY_PAIRS, FEW_PAIRS = 5, 3


def groups() -> dict[str, Callable[[Effort], Iterator[Figure]]]:
    """The headline, peers mixed, and a part of the grid per packet size and number of streams."""
    parts = {
        f"mss{mss}-{streams}str": partial(part, mss_bytes=mss, streams=streams)
        for mss in MSS_BYTES
        for streams in STREAMS
    }
    return {"headline": headline, "mixed": mixed, **parts}


@cache
def programs() -> tuple[Path, Path]:
    """Ours and libudt's, built."""
    if lacking := peers.missing():
        raise SystemExit(f"udt-vs-libudt: {lacking}")
    return peers.farline_peer(), peers.libudt_peer()


def headline(effort: Effort) -> Iterator[Figure]:
    """Speed and cost in the one cell, with the peers and with `farline probe`."""
    cell, length, rounds = Cell(), _length(effort, LONG), _pairs(effort, MANY_PAIRS)
    ours, libudt = programs()
    sides = [contender(ours, ours, cell, length), contender(libudt, libudt, cell, length)]
    yield from _rows("headline", cell.name, interleaved(sides, rounds), "")
    with serving(pinned(RECEIVER_CPU), "127.0.0.1") as ticket:
        sides[0] = _probing(ticket, cell, length)
        runs = interleaved(sides, rounds)
    yield from _rows("headline", f"{cell.name} probe", runs, "ours by farline probe")


def _rows(group: str, case: str, runs: list[tuple[Run, ...]], note: str) -> Iterator[Figure]:
    ours, peer = zip(*runs, strict=True)
    yield speed(Label(group, case, "Gb/s", note), ours, peer, SPEED_MUST)
    yield cost(Label(group, f"{case} cpu", "s/GB", note), ours, peer, CPU_MUST)


def _probing(ticket: str, cell: Cell, length: Length) -> Contender:
    """Runs of `farline probe` in a cell."""
    size = ["--packet", cell.mss_bytes - 28, "--block", cell.block_bytes, "-P", cell.streams]
    buffers = ["--send-buffer", cell.buffer_mib * MIB, "--receive-buffer", cell.buffer_mib * MIB]

    def run() -> Run:
        seconds = length.seconds - length.omit_s
        done = probe(pinned(SENDER_CPU), ticket, seconds, length.omit_s, *size, *buffers)
        return Run(done.steady_bps / 1e9, done.cpu_s_per_gb)

    return run


def mixed(effort: Effort) -> Iterator[Figure]:
    """One end ours, the other libudt: no slower than libudt to libudt."""
    ours, libudt = programs()
    length = _length(effort, LONG)
    for cell in (Cell(1500), Cell(1500, buffer_mib=1), Cell(9000)):
        sides = [
            contender(ours, libudt, cell, length),
            contender(libudt, libudt, cell, length),
            contender(libudt, ours, cell, length),
        ]
        to, among, since = zip(*interleaved(sides, _pairs(effort, MANY_PAIRS)), strict=True)
        case = f"lo mss{cell.mss_bytes} buf{cell.buffer_mib}M"
        note = "against libudt to itself"
        label = Label("mixed", f"{case} ours to libudt", "Gb/s", note)
        yield speed(label, to, among, 1.0)
        label = Label("mixed", f"{case} libudt to ours", "Gb/s", note)
        yield speed(label, since, among, 1.0)


def part(effort: Effort, mss_bytes: int, streams: int) -> Iterator[Figure]:
    """Every block and buffer size with one packet size and number of streams."""
    ours, libudt = programs()
    length, rounds = _length(effort, BRIEF), _pairs(effort, FEW_PAIRS)
    note = f"{rounds} pairs of {length.seconds:g} s"
    for block in BLOCKS_BYTES:
        for buffer in BUFFERS_MIB:
            cell = Cell(mss_bytes, streams, block, buffer)
            sides = [contender(one, one, cell, length) for one in (ours, libudt)]
            mine, theirs = zip(*interleaved(sides, rounds), strict=True)
            label = Label(f"mss{mss_bytes}-{streams}str", cell.name, "Gb/s", note)
            yield speed(label, mine, theirs, 1.0)


def _length(effort: Effort, whole: Length) -> Length:
    return SHORT if effort.is_short else whole


def _pairs(effort: Effort, whole: int) -> int:
    return 1 if effort.is_short else whole
