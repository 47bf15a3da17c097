"""iperf3's clients against our server and against iperf3's own, interleaved.

The first part runs every set of options of `_iperf3_sets`, forward and in reverse, by Debian's
client and by the one that FARLINE_IPERF3 names, over a path of 300 Mbit/s: the rate that the client
prints must be within 3 %, so the ratio is that of the smaller to the larger and must be 0.97. The
second is speed over loopback without a limit, where ours must be at least as fast.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from _contract import Row, finish, row
from _copy.place import ending
from _iperf3 import FARLINE
from _iperf3_sets import SETS, Client, clients, run, totals, words
from _program import program

NAMESPACE = "fl-bench-iperf3"
OURS, PEERS = 5301, 5302
PATH = "300mbit"
WITHIN = 0.97
LIFTED = ("--iperf3-rate", "0bit", "--iperf3-per-address", "4")
IN = ("ip", "netns", "exec", NAMESPACE)
SPEEDS = {
    "receives": "-t 1",
    "sends": "-t 1 -R",
    "receives 4 streams": "-t 1 -P 4",
    "sends 4 streams": "-t 1 -R -P 4",
    "receives udp": "-u -b 0 -t 1",
    "sends udp": "-u -b 0 -t 1 -R",
}


@dataclass(frozen=True)
class Arena:
    """Both servers, for the clients of one version."""

    client: Client

    def pair(self, options: str, pairs: int) -> list[tuple[float, float]]:
        """Rates in Mbit/s as the client prints them, ours and iperf3's in turn."""
        return [(self._rate(options, OURS), self._rate(options, PEERS)) for _ in range(pairs)]

    def _rate(self, options: str, port: int) -> float:
        for attempt in range(5):
            try:
                chosen = words(options, 1, 40_000 + os.getpid() % 10_000 + 2 * attempt)
                document = run(self.client, "127.0.0.1", port, ["-C", "cubic", *chosen], IN)
                break
            except RuntimeError as error:
                # iperf3's own server is still busy with the last test's end.
                if "busy" not in str(error) or attempt == 4:
                    raise
                time.sleep(0.2)
        return statistics.fmean(one["bits_per_second"] for one in totals(document)[1::2]) / 1e6


@contextmanager
def arena(client: Client, rate: str | None) -> Iterator[Arena]:
    """Our server and the client's own, in a namespace whose loopback has this rate."""
    with ExitStack() as stack:
        subprocess.run(["ip", "netns", "delete", NAMESPACE], capture_output=True)
        _ip("netns", "add", NAMESPACE)
        stack.callback(_ip, "netns", "delete", NAMESPACE)
        _ip("-n", NAMESPACE, "link", "set", "lo", "up")
        if rate is not None:
            shape = ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", rate]
            subprocess.run([*IN, *shape, "burst", "256kb", "latency", "30ms"], check=True)
        for server in (
            [str(FARLINE), "serve", "--iperf3-only", "--iperf3", str(OURS), *LIFTED],
            [client.path, "-s", "-p", str(PEERS)],
        ):
            process = subprocess.Popen([*IN, *server], stdout=subprocess.DEVNULL, text=True)
            stack.enter_context(ending(process))
        time.sleep(1.5)
        yield Arena(client)


def _ip(*words_: str) -> None:
    subprocess.run(["ip", *words_], check=True, capture_output=True, timeout=20)


def same(case: str, pairs: list[tuple[float, float]]) -> Row:
    """A row whose ratio says how alike the two are, whichever is larger."""
    found = row(case, "Mb/s", pairs, must=WITHIN)
    alike = sorted(min(a, b) / max(a, b) for a, b in pairs)
    middle = min(found.ours, found.peer) / max(found.ours, found.peer)
    return Row(case, found.ours, found.peer, "Mb/s", middle, alike[0], alike[-1], WITHIN)


def matrix(client: Client, names: list[str], pairs: int) -> Iterator[Row]:
    """Every set of options by one client, over the shaped path."""
    with arena(client, PATH) as up:
        for name in names:
            yield same(f"{client.version} {name}", up.pair(SETS[name], pairs))


def speed(client: Client, pairs: int) -> Iterator[Row]:
    """Speed without a limit."""
    with arena(client, None) as up:
        for name, options in SPEEDS.items():
            yield row(f"{client.version} {name}", "Mb/s", up.pair(options, pairs))


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """All of both parts, a client after the other."""
    for client in clients():
        print(f"client and peer: iperf3 {client.version} ({client.path})", file=sys.stderr)
        if not options.speed_only:
            yield from matrix(client, options.sets or list(SETS), options.pairs)
        if not options.sets:
            yield from speed(client, max(options.pairs, 5))


def main() -> int:
    """Measures, prints a row as it comes, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--speed-only", action="store_true")
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=[])
    return finish("iperf3-server", rows(parser.parse_args()))


if __name__ == "__main__":
    program(main)
