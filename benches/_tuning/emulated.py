"""Paths of the emulator, drawn at random, and what is done on one: all settings, and two searches.

Round-trip time 1 to 366 ms, 5 to 60 Mbit/s (what a small and busy machine emulates two of side by
side), loss 0 to 1e-3, stated buffers around the bandwidth-delay product, flows of iperf3 under
CUBIC beside.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farline.testbeds import Host

INSIDE = "FARLINE_TESTBED"
"""Names the testbed to runs inside, which then ask whether it was accurate."""

COUNTS = (1, 2, 4, 8, 16, 32)
PASSES = 2
"""Times that every count is measured, for judging."""
CONSTANT = 8
_LOSSLESS = 0.4


@dataclass(frozen=True)
class EmulatedPath:
    """One path: what is emulated, the buffers that both ends state, how many flows are beside."""

    rtt_ms: float
    rate_bps: int
    loss: float
    buffer_bytes: int
    others: int

    @property
    def text(self) -> str:
        """For a line of the table."""
        return (
            f"{self.rtt_ms:.0f} ms, {self.rate_bps / 1e6:.0f} Mbit/s, loss {self.loss:.0e}, "
            f"buffers {self.buffer_bytes >> 10} KiB, {self.others} beside"
        )


def draw_paths(count: int, seed: int) -> list[EmulatedPath]:
    """The first `count` paths of a seed: more of them begin with the same ones."""
    return [_draw(random.Random(f"{seed}-{number}")) for number in range(count)]


def _draw(draw: random.Random) -> EmulatedPath:
    rtt_ms = _between(draw, 1, 366)
    rate_bps = round(_between(draw, 5e6, 60e6))
    bdp_bytes = rate_bps * rtt_ms / 8000
    return EmulatedPath(
        rtt_ms=round(rtt_ms, 1),
        rate_bps=rate_bps,
        loss=0.0 if draw.random() < _LOSSLESS else _between(draw, 1e-6, 1e-3),
        # Half of a buffer becomes window, and the kernel doubles what it is asked for.
        buffer_bytes=round(max(32 << 10, bdp_bytes * _between(draw, 1 / 8, 8))),
        others=draw.choice([0, 0, 0, 2, 8]),
    )


def _between(draw: random.Random, low: float, high: float) -> float:
    return float(low * (high / low) ** draw.random())


@dataclass(frozen=True)
class Outcome:
    """What came of one path: rates of every count, and what each search chose with how many."""

    number: int
    path: EmulatedPath
    rates: Mapping[int, tuple[float, ...]]
    chosen: Mapping[str, tuple[int, int, str]]
    """Of `cold` and `warm`: streams, samples, reason."""
    default: int

    def mean(self, streams: int) -> float:
        """Mean rate of a count, bit/s."""
        found = self.rates[streams]
        return sum(found) / len(found)

    def regret(self, streams: int) -> float:
        """What is lost of the best count of the grid, in percent."""
        best = max(self.mean(count) for count in self.rates)
        return 100 * (1 - self.mean(streams) / best)

    def document(self) -> dict[str, Any]:
        """For a line of JSON."""
        return asdict(self)

    @classmethod
    def of_document(cls, found: Mapping[str, Any]) -> Outcome:
        """From one."""
        return cls(
            found["number"],
            EmulatedPath(**found["path"]),
            {int(count): tuple(rates) for count, rates in found["rates"].items()},
            {name: tuple(one) for name, one in found["chosen"].items()},
            found["default"],
        )


def measure(number: int, path: EmulatedPath, program: Path) -> Outcome:
    """Brings the path up, and has `program` (`--worker`) try everything from its sending host."""
    from farline.testbeds import Testbed, load
    from farline.testbeds.serving import serving

    link = {"rtt_s": f"{path.rtt_ms}ms", "rate_bps": path.rate_bps, "loss": path.loss}
    with ExitStack() as stack:
        bed = stack.enter_context(Testbed.up(load("back-to-back", mtu_bytes=1500, **link)))
        sender, receiver = bed.hosts.values()
        _, ticket = stack.enter_context(serving(receiver, receiver.address))
        if path.others:
            beside = stack.enter_context(competing(sender, receiver, path.others))
        asked = json.dumps({"number": number, "path": asdict(path)})
        done = sender.run(
            [sys.executable, program, "--worker", ticket, asked],
            check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        if path.others and beside.poll() is not None:
            raise RuntimeError("the competing flows ended before the path was measured")
    return Outcome.of_document(json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def competing(sender: Host, receiver: Host, flows: int) -> Iterator[subprocess.Popen[str]]:
    """CUBIC flows of iperf3 that last as long as the block."""
    with ExitStack() as stack:
        client = ["iperf3", "-c", receiver.address, "-P", str(flows), "-C", "cubic", "-t", "86400"]
        for host, command in ((receiver, ["iperf3", "-s"]), (sender, client)):
            one = host.popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(one.wait)
            stack.callback(one.kill)
            time.sleep(1.0)
        yield one


def work(ticket: str, asked: str) -> Outcome:
    """On the sending host: one pass over all counts, both searches, the other passes."""
    # Packets that a busy machine hands over a millisecond late change no choice: no stamp is asked.
    os.environ.pop(INSIDE, None)
    found = json.loads(asked)
    number, path = found["number"], EmulatedPath(**found["path"])
    trial = _Trial(ticket, path, random.Random(number))
    rates: dict[int, list[float]] = {count: [] for count in trial.counts}
    trial.judge(rates)
    with tempfile.TemporaryDirectory(prefix="farline-tune-") as folder:
        chosen = {name: trial.search(Path(folder)) for name in ("cold", "warm")}
    for _ in range(1, PASSES):
        trial.judge(rates)
    judged = {count: tuple(values) for count, values in rates.items()}
    return Outcome(number, path, judged, chosen, trial.default)


class _Trial:
    """Samples of one path."""

    def __init__(self, ticket: str, path: EmulatedPath, draw: random.Random) -> None:
        from farline.tools import never_stop

        buffers = {f"{end}_buffer_bytes": path.buffer_bytes for end in ("send", "receive")}
        self._spec = {"tcp": {"congestion_control": "cubic", **buffers}}
        self._ticket, self._draw = ticket, draw
        found = _ended(self._sampler(None).look(never_stop))
        self.default: int = found.default.streams
        self._situation = found.situation
        self.counts = sorted({*COUNTS, *((64,) if found.most_streams > 32 else ()), self.default})

    def _sampler(self, store: Any) -> Any:
        from farline.api.samplers import ProbeSampler

        return ProbeSampler(self._ticket, self._spec, store)

    def judge(self, rates: dict[int, list[float]]) -> None:
        """One run of every count, in an order that is drawn."""
        from farline.errors import TimeoutFailure
        from farline.tools import never_stop
        from farline.tuning.sampling import sample_seconds
        from farline.tuning.situation import Setting

        seconds = sample_seconds(self._situation)
        for count in self._draw.sample(self.counts, len(self.counts)):
            steps = self._sampler(None).sample(Setting(count), seconds, never_stop)
            try:
                rates[count].append(_ended(steps).sample.rate_bps)
            except TimeoutFailure:
                # A run that does not end, or that gets nothing among others, is one without a rate.
                rates[count].append(0.0)

    def search(self, folder: Path) -> tuple[int, int, str]:
        """A search as `farline tune` makes it, with what earlier ones have left in the store."""
        from farline.store import Store
        from farline.tuning.job import TuneJob, TuneRequest

        store = Store(folder)
        request = TuneRequest(budget_s=600.0)
        choice = TuneJob(request, self._sampler(store), store).wait().checked()
        return choice.setting.streams, len(choice.samples), choice.reason


def _ended(steps: Iterator[Any]) -> Any:
    """What steps come to."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
