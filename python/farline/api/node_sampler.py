"""Nodes of a testbed as two groups: `source-1` to `source-k`, and `sink-1` to `sink-k`.

Each stripe is a process of its own on its node, towards the node of the same number on the other
side; with a driven tool each node has one client, whose server spreads over the stripes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import datetime
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from farline.errors import SystemFailure, UnreachableError, UsageError
from farline.models.end_to_end import NodeSetting
from farline.tools import Stop
from farline.tools.native import TICKET_VARIABLE
from farline.tuning.node_job import NodeSurroundings
from farline.tuning.sampling import sample_seconds
from farline.tuning.situation import Situation

if TYPE_CHECKING:
    from farline.testbeds import Host, Testbed
    from farline.tools import StopQuestion
    from farline.tools.events import Steps

PRESET = "nodes"
LOOPBACK_S = 1.0
_FIRST_BYTES = 8 << 20
_POLL_S = 0.1
_LIMIT_S = 120.0
_TRIES = 3
_OVERLAP = 0.5
"""Share of a sample in which all of its processes must run."""


class BedNodes:
    """Tries settings on a testbed: one that is up, or one that it brings up and takes down."""

    def __init__(self, network: str, nodes: int, tool: str | None = None) -> None:
        """Nothing is begun."""
        self._network, self._nodes, self._tool = network, nodes, tool
        self._stack = ExitStack()
        self._tickets: list[str] = []
        self._bed: Testbed | None = None
        self._next_bytes = _FIRST_BYTES

    @property
    def network(self) -> str:
        """The testbed's name, with the tool's where another than farline is tuned."""
        return self._network if self._tool is None else f"{self._network} {self._tool}"

    def look(self, should_stop: StopQuestion) -> Steps[NodeSurroundings]:
        """Brings the testbed up, starts servers on the sinks, measures a process on its own.

        Raises:
            UsageError: when it has no hosts of these names.
            SystemFailure: when the machine lacks what a testbed needs.
        """
        from farline.testbeds.serving import serving

        yield None
        bed = self._bed = self._opened()
        sources, sinks = self._side("source"), self._side("sink")
        most = min(len(sources), len(sinks))
        if not most:
            raise UsageError(
                f"{self._network}: has no hosts source-1 and sink-1; use the preset {PRESET}"
            )
        path = bed.path(sources[0].name, sinks[0].name)
        if self._tool is None:
            for sink in sinks[: self._nodes]:
                _, ticket = self._stack.enter_context(serving(sink, sink.address))
                self._tickets.append(ticket)
                yield None
        rtt_ms, nic_bps = 1000 * path.rtt_s, self._nic_bps(sources[0])
        seconds = sample_seconds(Situation(rtt_ms=rtt_ms, capacity_bps=nic_bps))
        process_bps = self._process_bps(sources[0]) if self._tool is None else None
        return NodeSurroundings(most, rtt_ms, nic_bps, process_bps, round(seconds, 1))

    def sample(
        self, setting: NodeSetting, seconds: float, should_stop: StopQuestion
    ) -> Steps[float]:
        """Starts every process of the setting at once, and adds up what they reached.

        Where programs start so slowly that they run one after another, longer runs follow.

        Raises:
            SystemFailure: when a process failed, or they did not run at the same time after all.
        """
        for attempt in range(_TRIES):
            lasting_s = seconds * 2**attempt
            records = yield from self._run(setting, lasting_s, should_stop)
            self._lasted(records, lasting_s)
            if together_s(records) >= _OVERLAP * shortest_s(records):
                return sum(map(_rate_bps, records))
        raise SystemFailure(
            f"nodes: {len(records)} processes did not run at the same time; give the machine fewer "
            "tasks, or ask for fewer nodes"
        )

    def _lasted(self, records: list[dict[str, Any]], seconds: float) -> None:
        """Of a tool, the next run moves as much as lasts for its time."""
        if self._tool is not None:
            wanted = self._next_bytes * seconds / max(shortest_s(records), 0.1)
            self._next_bytes = whole_mib(min(wanted, 8 * self._next_bytes))

    def _run(
        self, setting: NodeSetting, seconds: float, should_stop: StopQuestion
    ) -> Steps[list[dict[str, Any]]]:
        """What each process of a setting printed."""
        commands = self._commands(setting, seconds)
        with ExitStack() as stack:
            running = [_Running(stack, *command) for command in commands]
            until = time.monotonic() + seconds + _LIMIT_S
            while any(one.process.poll() is None for one in running):
                yield None
                if should_stop() is not Stop.GO_ON or time.monotonic() > until:
                    break
                time.sleep(_POLL_S)
            return [one.record() for one in running]

    def close(self) -> None:
        """Ends servers, and the testbed if it was brought up for this."""
        self._stack.close()

    def _opened(self) -> Testbed:
        from farline.testbeds import Testbed, load

        try:
            bed = Testbed.attach(self._network)
        except (UnreachableError, UsageError):
            k = {"k": self._nodes} if self._network == PRESET else {}
            return self._stack.enter_context(Testbed.up(load(self._network, **k)))
        self._stack.callback(bed.close)
        return bed

    def _side(self, word: str) -> list[Host]:
        assert self._bed is not None  # `look` comes first
        hosts = self._bed.hosts
        found = [f"{word}-{number}" for number in range(1, len(hosts) + 1)]
        return [hosts[name] for name in found if name in hosts]

    def _nic_bps(self, host: Host) -> float | None:
        """Rate of the link that is the host's interface."""
        assert self._bed is not None  # `look` comes first
        links = {link["name"]: link for link in self._bed.topology()["links"]}
        rate: float | None = links[host.ports[0].link]["forward"].get("rate_bps")
        return rate

    def _process_bps(self, host: Host) -> float | None:
        """One stream from the host to itself; None where that fails, for it decides nothing."""
        from farline.testbeds.serving import serving

        with serving(host, "127.0.0.1") as (_, ticket):
            words = ["probe", "127.0.0.1", "-t", f"{LOOPBACK_S}s", "--json", "--no-store"]
            done = host.run(
                [sys.executable, "-m", "farline", *words],
                env={**os.environ, TICKET_VARIABLE: ticket},
            )
        try:
            return float(json.loads(done.stdout)["summary"]["forward"]["total_bps"])
        except (ValueError, KeyError, TypeError):
            return None

    def _commands(self, setting: NodeSetting, seconds: float) -> list[tuple[Host, list[str], str]]:
        """Host, words and ticket of each process."""
        sources, sinks = self._side("source"), self._side("sink")
        found = []
        for number in range(setting.nodes):
            base = ["probe", "--json", "--no-store", "--streams", str(setting.streams)]
            if self._tool is None:
                words = [*base, sinks[number].address, "-t", f"{seconds}s"]
                found += [(sources[number], words, self._tickets[number])] * setting.stripes
                continue
            words = [*base, sinks[number].address, "--tool", self._tool]
            words += ["--bytes", str(self._next_bytes)]
            if setting.stripes > 1:
                words += ["--tool-stripes", str(setting.stripes)]
            found.append((sources[number], words, ""))
        return found


def whole_mib(size_bytes: float) -> int:
    """Bytes as whole MiB, at least one: a tool's stripes move nothing but whole blocks."""
    return max(1, round(size_bytes / (1 << 20))) << 20


def together_s(records: list[dict[str, Any]]) -> float:
    """For how long all of these runs ran at the same time; negative where they did not."""
    starts = [datetime.fromisoformat(one["started_at"]).timestamp() for one in records]
    ends = [start + _lasting_s(one) for start, one in zip(starts, records, strict=True)]
    return min(ends) - max(starts)


def shortest_s(records: list[dict[str, Any]]) -> float:
    """How long the shortest of these runs lasted."""
    return min(map(_lasting_s, records))


def _lasting_s(record: dict[str, Any]) -> float:
    return float(record["summary"]["forward"]["elapsed_s"])


def _rate_bps(record: dict[str, Any]) -> float:
    flow = record["summary"]["forward"]
    return float(flow["steady_bps"] or flow["total_bps"])


class _Running:
    """A process on a node. What it prints goes into files: a pipe holds too little of it."""

    def __init__(self, stack: ExitStack, host: Host, words: list[str], ticket: str) -> None:
        self._out = stack.enter_context(TemporaryFile())  # noqa: SIM115 (the stack closes it)
        self._said = stack.enter_context(TemporaryFile())  # noqa: SIM115
        self.process = host.popen(
            [sys.executable, "-m", "farline", *words], stdin=subprocess.DEVNULL,
            stdout=self._out, stderr=self._said, env={**os.environ, TICKET_VARIABLE: ticket},
        )  # fmt: skip
        stack.callback(self._end)

    def record(self) -> dict[str, Any]:
        """What it printed.

        Raises:
            SystemFailure: when it failed.
        """
        if self.process.poll() is None:
            raise SystemFailure("nodes: a process did not end in time")
        self._out.seek(0)
        try:
            record: dict[str, Any] = json.load(self._out)
        except ValueError:
            self._said.seek(0)
            said = self._said.read().decode("utf-8", "replace").strip().splitlines()
            why = (said or ["it said nothing"])[-1].removeprefix("farline: ")
            raise SystemFailure(f"a process on a node failed: {why}") from None
        if not (record.get("summary") or {}).get("forward"):
            why = (record.get("error") or {}).get("message") or "it moved nothing"
            raise SystemFailure(f"a process on a node failed: {why}")
        return record

    def _end(self) -> None:
        from farline.testbeds.serving import end

        if self.process.poll() is None:
            end(self.process)
