"""UDP at 1472-byte payloads against `iperf3 -u -b 0 -l 1472`, on loopback, interleaved.

Rows: datagrams per second that arrived (ours / peer), with our batches from the
receiver's own count, so that what was lost on the way is nobody's gain.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from _contract import Row, finish, interleave, row
from _iperf3 import Arena, arena, paths
from _program import program

PAYLOAD = "1472"


def compare(arena: Arena, streams: int, seconds: int, pairs: int) -> Row:
    """Datagrams per second of one case."""
    shared = ["-u", "-b", "0", "-l", PAYLOAD, "-P", str(streams), "-t", str(seconds), "-i", "1"]
    runs = interleave(lambda: arena.ours(*shared), lambda: arena.peer(*shared), pairs)
    values = [(ours.packets_per_s / 1e3, peer.packets_per_s / 1e3) for ours, peer in runs]
    return row(f"{arena.path.name} udp{PAYLOAD} {streams}str", "kpkt/s", values, must=10.0)


def rows(seconds: int, pairs: int) -> Iterator[Row]:
    """One stream and four, on loopback."""
    with paths(()) as found, arena(found[0]) as up:
        for streams in (1, 4):
            yield compare(up, streams, seconds, pairs)


def main() -> int:
    """Measures, prints a row as it comes, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    return finish("udp-vs-iperf3", rows(options.seconds, options.pairs))


if __name__ == "__main__":
    program(main)
