"""Cases of `rbudp-speed` on loopback: how fast each receiver is, and what it costs its host.

One stream of datagrams of 1472 bytes, as fast as it goes, the sender on one CPU and the receiver
on the other, memory to memory. Receivers take turns. What is counted is payload at the receiver
over the whole run, and CPU time of the receiving process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from _emulator.figures import Figure, Label, Seen, figure
from _emulator.results import Effort
from _emulator.traffic import serving
from _rbudp.probing import Probe, probe, rbudp
from _udt.probing import pinned
from _udt.versus import RECEIVER_CPU, SENDER_CPU

RECEIVERS = ("naive", "gather", "fake")
PLACED = ("naive", "gather")
"""Receivers that leave the data in memory."""

DATAGRAM_BYTES = 1472
TOTAL_BYTES, SHORT_BYTES = 2 << 30, 256 << 20
FLOOR_GBPS = 25.0
ROUNDS = 7
LIMIT_S = 30.0

Round = Sequence[Probe]


def rows(effort: Effort, checksum: bool) -> Iterator[Figure]:
    """Speeds of the receivers that place data, and what each costs beside the next."""
    group = "checksum" if checksum else "plain"
    rounds = runs(effort, checksum)
    for index, receiver in enumerate(RECEIVERS):
        if receiver in PLACED:
            speeds = Seen([one[index].total_bps / 1e9 for one in rounds])
            label = Label(
                group, f"lo 1472 {receiver}{_word(checksum)}", "Gb/s", _cost(rounds, index)
            )
            ratios = [speed / FLOOR_GBPS for speed in speeds.values]
            allowed = f"at least {FLOOR_GBPS:g}"
            yield figure(label, speeds, FLOOR_GBPS, ratios, 1.0, allowed)
    for index, (dearer, cheaper) in enumerate(pairwise(RECEIVERS)):
        label = Label(group, f"lo 1472 {cheaper} cpu, {dearer}'s{_word(checksum)}", "s/GB")
        yield cost_row(label, rounds, index)


def runs(effort: Effort, checksum: bool) -> list[tuple[Probe, ...]]:
    """Rounds of runs, one of each receiver in each."""
    total = SHORT_BYTES if effort.is_short else TOTAL_BYTES
    flag = "--checksum" if checksum else "--no-checksum"
    with serving(pinned(RECEIVER_CPU), "127.0.0.1") as ticket:

        def run(receiver: str) -> Probe:
            way = ["--receiver", receiver, flag, "--packet", DATAGRAM_BYTES, "-n", total]
            return probe(pinned(SENDER_CPU), ticket, LIMIT_S, *rbudp(0, *way))

        rounds = 1 if effort.is_short else ROUNDS
        return [tuple(run(name) for name in RECEIVERS) for _ in range(rounds)]


def cost_row(label: Label, rounds: Sequence[Round], index: int) -> Figure:
    """CPU seconds of receiver `index + 1`: those of receiver `index` over them, round by round."""
    pairs = [
        (one[index + 1].receiver_cpu_s_per_gb, one[index].receiver_cpu_s_per_gb) for one in rounds
    ]
    ours, peer = zip(*pairs, strict=True)
    middle = sorted(peer)[len(peer) // 2]
    ratios = [dearer / cheaper for cheaper, dearer in pairs]
    return figure(label, Seen(ours), middle, ratios, 1.0, "no more than that")


def _cost(rounds: Sequence[Round], index: int) -> str:
    found = sorted(one[index].receiver_cpu_s_per_gb for one in rounds)
    return f"receiver {found[len(found) // 2]:.3f} CPU s per GB"


def _word(checksum: bool) -> str:
    return " sum" if checksum else ""
