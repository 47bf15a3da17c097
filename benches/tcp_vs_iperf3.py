"""TCP against iperf3: same path, block, streams and congestion control, interleaved.

Rows: payload Gb/s at the receiver (ours / peer) and CPU seconds of both ends per
10^9 payload bytes (peer / ours); then our receive by discard against iperf3's default.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from _contract import Row, finish, interleave, row
from _iperf3 import Arena, arena, paths
from _program import program

BLOCK = 131_072
CONGESTION = ("reno", "bbr")
STREAMS = (1, 4)


def compare(arena: Arena, congestion: str, streams: int, seconds: int, pairs: int) -> Iterator[Row]:
    """Speed and CPU of one case."""
    shared = ["-P", str(streams), "-C", congestion, "-l", str(BLOCK), "-t", str(seconds), "-i", "1"]
    runs = interleave(lambda: arena.ours(*shared), lambda: arena.peer(*shared), pairs)
    case = f"{arena.path.name} {congestion} {streams}str"
    yield row(case, "Gb/s", [(a.gbps, b.gbps) for a, b in runs])
    cpu = [(a.cpu_s_per_gb, b.cpu_s_per_gb) for a, b in runs]
    yield row(f"{case} cpu", "s/GB", cpu, less_is_better=True)


def discard(arena: Arena, congestion: str, seconds: int, pairs: int) -> Row:
    """Our receive by discard against what iperf3 does by default."""
    shared = ["-C", congestion, "-l", str(BLOCK), "-t", str(seconds), "-i", "1"]
    runs = interleave(
        lambda: arena.ours(*shared, "--receive-mode", "discard"),
        lambda: arena.peer(*shared),
        pairs,
    )
    case = f"{arena.path.name} {congestion} 1str discard"
    return row(case, "Gb/s", [(a.gbps, b.gbps) for a, b in runs], must=1.15)


def rows(seconds: int, pairs: int) -> Iterator[Row]:
    """Every row, one path after the other."""
    with paths((1500, 9000)) as found:
        for path in found:
            with arena(path) as up:
                for congestion in CONGESTION:
                    for streams in STREAMS:
                        yield from compare(up, congestion, streams, seconds, pairs)
                    yield discard(up, congestion, seconds, pairs)


def main() -> int:
    """Measures, prints a row as it comes, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    return finish("tcp-vs-iperf3", rows(options.seconds, options.pairs))


if __name__ == "__main__":
    program(main)
