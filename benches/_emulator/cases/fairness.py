"""Two CUBIC flows over one bottleneck: Jain's index over the second half of the run."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from _emulator.chance import jain_index
from _emulator.figures import Figure, Label, at_least, none_of
from _emulator.ledger import worst_imbalance
from _emulator.results import Effort
from _emulator.runs import forget_samples, seen, up, valid_runs
from _emulator.traffic import GRACE_S, checked_iperf3, iperf3_command, iperf3_server
from farline import testbeds
from farline.testbeds import Testbed

GROUP = "fairness"
PATH = {"rate_bps": 5_000_000_000, "rtt_s": 0.02, "mtu_bytes": 9000}
FLOWS = (("source", "sink"), ("background-source", "background-sink"))
LEAST = 0.95


def rows(effort: Effort) -> Iterator[Figure]:
    """Jain's index, and whether links in a row lose count of a packet."""
    with up(testbeds.load("dumbbell", **PATH)) as bed:
        seconds = effort.seconds(24, 10)
        runs = valid_runs(bed, lambda: _share(bed, seconds), effort.repetitions)
    label = Label(GROUP, "two cubic flows, Jain's index", "", "dumbbell 5 Gb/s 20 ms, second half")
    yield at_least(label, seen(runs, lambda run: jain_index(run[0])), LEAST)
    label = Label(GROUP, "two cubic flows, packets astray", "pkt", "any of 6 links, any interval")
    yield none_of(label, seen(runs, lambda run: run[1]))


def _share(bed: Testbed, seconds: float) -> tuple[list[float], int]:
    """Bytes of each flow in the second half, and the worst imbalance of any link's count."""
    forget_samples(bed)
    with ExitStack() as stack:
        for _, receiver in FLOWS:
            stack.enter_context(iperf3_server(bed.hosts[receiver]))
        documents = _together(bed, seconds)
    time.sleep(0.3)  # two of the links' intervals
    shares = [second_half_bytes(document, seconds) for document in documents]
    return shares, worst_imbalance(bed.link_samples())


def _together(bed: Testbed, seconds: float) -> list[dict[str, Any]]:
    clients = []
    for sender, receiver in FLOWS:
        address = bed.address(receiver, seen_from=sender)
        command = iperf3_command(address, seconds, "-C", "cubic")
        clients.append(bed.hosts[sender].popen(command, stdout=subprocess.PIPE, text=True))
    try:
        limit_s = seconds * 2 + GRACE_S
        printed = [client.communicate(timeout=limit_s)[0] for client in clients]
    finally:
        for client in clients:
            client.kill()
            client.wait(timeout=GRACE_S)
    return [checked_iperf3(json.loads(text)) for text in printed]


def second_half_bytes(document: dict[str, Any], seconds: float) -> float:
    """Bytes that a client sent in the intervals of the second half of its run."""
    sums = [interval["sum"] for interval in document["intervals"]]
    return float(sum(part["bytes"] for part in sums if part["start"] >= seconds / 2 - 0.01))
