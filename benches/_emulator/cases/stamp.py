"""The stamp itself: an engine kept from running must say so, and one that is not must not."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _emulator.figures import Figure, Label, Seen, always
from _emulator.results import Effort
from _emulator.runs import run as stamped_run
from _emulator.runs import up, valid_run
from _emulator.traffic import at_wire_rate, blast, catcher
from farline.testbeds import Testbed

GROUP = "stamp"
RATE_BPS = 1e9
RTT_S = 0.01
SECONDS = 2.0
STOPPED_S = 0.05


def rows(effort: Effort) -> Iterator[Figure]:
    """A quiet run is valid; one with the engine stopped for 50 ms is not."""
    with up(pair(pipe(10e9, RTT_S))) as bed:
        quiet = [valid_run(bed, lambda: _traffic(bed)).stamp for _ in range(effort.repetitions)]
        label = Label(GROUP, "undisturbed run is valid", "", "1 Gb/s of UDP, 2 s")
        yield always(label, Seen([float(stamp["valid"]) for stamp in quiet]))
        marked = [_disturbed(bed) for _ in range(effort.repetitions)]
        label = Label(GROUP, "disturbed run is marked", "", "engine stopped for 50 ms of 2 s")
        yield always(label, Seen([float(is_marked) for is_marked in marked]))


def _traffic(bed: Testbed) -> None:
    sender, receiver = bed.hosts[SENDER], bed.hosts[RECEIVER]
    with catcher(receiver, "nothing"):
        blast(sender, receiver.address, at_wire_rate(RATE_BPS, SECONDS))


def _disturbed(bed: Testbed) -> bool:
    """Whether the stamp of a run in which the engine stood still is invalid, and says why."""
    stopper = threading.Timer(SECONDS / 2, _stop_for_a_moment, [int(bed.describe()["pid"])])
    stopper.start()
    try:
        stamp = stamped_run(bed, lambda: _traffic(bed)).stamp
    finally:
        stopper.join()
    late_us = STOPPED_S * 1e6 / 2
    return not stamp["valid"] and bool(stamp["reasons"]) and stamp["lateness_max_us"] > late_us


def _stop_for_a_moment(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(STOPPED_S)
    finally:
        os.kill(pid, signal.SIGCONT)
