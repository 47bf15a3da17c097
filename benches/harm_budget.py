"""Copies with a budget of harm beside one CUBIC flow: what it loses, what is used of the free line.

In a model (`_fairness/line.py`), and with `--emulated` over the testbed's dumbbell by the counters
of its router, where iperf3 is the other flow (needs root; two minutes a row). `ours` is harm or use
measured, `peer` what it may be or must be: harm of at most 0.25 with a budget of 0.2, nine tenths
of what is left free. `--way` compares other options of a copy, such as `--yield`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from _contract import Row, finish
from _fairness.line import Line, shared
from _program import program
from farline.fairness.wire import seen_by, wires_between
from farline.testbeds import Testbed, load
from farline.testbeds.serving import serving

BUDGET, ALLOWED, USE = 0.2, 0.25, 0.9
RTTS_S = (0.001, 0.004, 0.01, 0.05, 0.1)
LOADS = (0.0, 0.3, 0.5, 0.8, 1.0)
NOWHERE = subprocess.DEVNULL
RATE_BPS = 1e8
EMULATED_BPS = 50e6
OVERHEAD = 0.95
"""Payload of a line's rate."""
LEAD_S, SETTLE_S, WINDOW_S = 4.0, 8.0, 16.0
BEGINS_S, ENDS_S, SENDING_BPS = 60.0, 30.0, 1e6
SOURCE_BYTES = 400_000_000
SIDES = {"copy": ("source", "sink"), "flow": ("background-source", "background-sink")}


def harm_row(case: str, alone_bps: float, beside_bps: float) -> Row:
    """Harm to the other flow."""
    harm = max(0.0, 1 - beside_bps / alone_bps)
    ratio = ALLOWED / max(harm, 0.01)
    return Row(f"{case}: harm", harm, ALLOWED, "", ratio, ratio, ratio)


def use_row(case: str, copy_bps: float, free_bps: float) -> Row:
    """What the copy has of what is left free."""
    use = copy_bps / free_bps
    return Row(f"{case}: use of what is free", use, USE, "", use / USE, use / USE, use / USE)


def modelled() -> Iterator[Row]:
    """Rows of the model."""
    for rtt_s in RTTS_S:
        for load_ in LOADS:
            line = Line(RATE_BPS, rtt_s, load_)
            case = f"model {1000 * rtt_s:g} ms load {load_:g}"
            _, alone = shared(line, None)
            copy, beside = shared(line, BUDGET)
            if load_ > 0:
                yield harm_row(case, alone, beside)
            if load_ < 1:
                yield use_row(case, copy, RATE_BPS - alone)


def ended(program: subprocess.Popen[str]) -> None:
    """Ends a program in good order, else at once."""
    program.send_signal(signal.SIGINT)
    try:
        program.wait(timeout=ENDS_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


class Dumbbell:
    """A path that a copy shares with a flow of iperf3."""

    def __init__(self, bed: Testbed, ticket: str, folder: Path, source: Path) -> None:
        """The server of the copies is there."""
        self._bed, self._ticket, self._folder, self._source = bed, ticket, folder, source

    def rates(self, load_: float, words: list[str] | None) -> tuple[float, float]:
        """Rates of copy and flow by the router; without `words` there is no copy."""
        started: list[subprocess.Popen[str]] = []
        try:
            if load_ > 0:
                started += self._flow(load_)
            time.sleep(LEAD_S)
            if words is not None:
                started.append(self._copy(words))
                self._await_copy()
            time.sleep(SETTLE_S)
            row = self._bed.sample_row()
            time.sleep(WINDOW_S)
            found = self._seen(row)
        finally:
            for one in reversed(started):
                ended(one)
        return found["copy"], found["flow"]

    def _await_copy(self) -> None:
        """Waits until data of the copy arrive: on a busy host it takes long to begin."""
        until = time.monotonic() + BEGINS_S
        while time.monotonic() < until:
            row = self._bed.sample_row()
            time.sleep(0.5)
            if self._seen(row)["copy"] > SENDING_BPS:
                return
        raise RuntimeError(f"the copy did not begin within {BEGINS_S:g} s")

    def _seen(self, row: int) -> dict[str, float]:
        """Rates of both since a row of the router's samples."""
        columns = self._bed.link_samples(row)
        samples = {name: values.tolist() for name, values in columns.items()}
        if not samples["start_us"]:
            return dict.fromkeys(SIDES, 0.0)
        window = min(samples["start_us"]), max(samples["end_us"])
        topology, main = self._bed.topology(), self._bed.main_link
        found = {}
        for name, (near, far) in SIDES.items():
            seen = seen_by(samples, wires_between(topology, near, far, main, 0.0), window)
            found[name] = 0.0 if seen is None else seen.rate_bps
        return found

    def _flow(self, load_: float) -> list[subprocess.Popen[str]]:
        near, far = (self._bed.hosts[name] for name in SIDES["flow"])
        to = self._bed.address("background-sink", "background-source")
        rate = ["-b", str(int(OVERHEAD * EMULATED_BPS * load_))] if load_ < 1 else []
        server = far.popen(["iperf3", "-s", "-1"], stdout=NOWHERE, stderr=NOWHERE)
        time.sleep(0.6)
        flow = ["iperf3", "-c", to, "-C", "cubic", "-t", "600", *rate]
        return [server, near.popen(flow, stdout=NOWHERE, stderr=NOWHERE)]

    def _copy(self, words: list[str]) -> subprocess.Popen[str]:
        # Every server is another one at the same address: nothing is remembered of the last.
        home = self._folder / f"home-{time.time_ns()}"
        places = {name: str(home / name) for name in ("state", "config", "data")}
        env = {**os.environ, **{f"XDG_{name.upper()}_HOME": at for name, at in places.items()}}
        command = [
            *(
                sys.executable,
                "-m",
                "farline",
                "copy",
                "--write-engine",
                "null",
                "--no-store",
                "-q",
            ),
            *(*words, str(self._source), f"{self._ticket}#copy-{time.time_ns()}"),
        ]
        return self._bed.hosts["source"].popen(command, env=env, stderr=subprocess.DEVNULL)


def emulated(rtt: str, load_: float, words: list[str], folder: Path) -> Iterator[Row]:
    """Rows of one path and load."""
    source = folder / "source"
    if not source.exists():
        source.write_bytes(os.urandom(SOURCE_BYTES))
    rate = f"{EMULATED_BPS / 1e6:g}Mbit"
    with Testbed.up(load("dumbbell", rtt_s=rtt, rate_bps=rate)) as bed:
        to = bed.address("sink", "source")
        with serving(bed.hosts["sink"], to, write=str(folder)) as (_, ticket):
            line = Dumbbell(bed, ticket.partition("#")[0], folder, source)
            _, alone = line.rates(load_, None)
            copy, beside = line.rates(load_, words)
    case = f"emulated {rtt} load {load_:g}"
    if load_ > 0:
        yield harm_row(case, alone, beside)
    if load_ < 1:
        yield use_row(case, copy, 0.97 * EMULATED_BPS - alone)


def main() -> int:
    """The bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--way", default=f"--max-harm {BUDGET:g}")
    parser.add_argument("--rtt", default="1ms,10ms,50ms,100ms")
    parser.add_argument("--load", default="0.5,1")
    asked = parser.parse_args()

    def rows() -> Iterator[Row]:
        yield from modelled()
        if not asked.emulated:
            return
        with tempfile.TemporaryDirectory(prefix="farline-harm-", dir="/dev/shm") as name:
            for rtt in asked.rtt.split(","):
                for load_ in map(float, asked.load.split(",")):
                    yield from emulated(rtt, load_, shlex.split(asked.way), Path(name))

    return finish("harm-budget", rows())


if __name__ == "__main__":
    program(main, any_build=True)
