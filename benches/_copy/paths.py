"""Cases of `copy-vs-peers` over emulated paths of 100 ms, memory to memory, nothing tuned by hand.

Large files: steady payload, that is what settled at the destination from max(3 s, 25 round trips)
after the first byte until nine tenths are over, against the payload rate of the link at 5 Gb/s, and
at 10 Gb/s against what `farline probe` carries there with as many streams, by default and plain:
the probe hashes and seals nothing. Small files: files per second of the whole client, beside rsync
and scp over ssh. scp waits several round trips for each file, so its rate is that of forty.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from _copy import peers, trees
from _copy.loopback import GIB, MEMORY
from _copy.machine import warm
from _copy.ours import PLAIN, Serving, Told, serving, told
from _copy.place import Place, hosts
from _copy.rounds import LIMIT_S, Contest, Target, contest, files_per_s, rounds, scratch
from _copy.rounds import run as run_one
from _copy.trees import Tree
from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _emulator.figures import Figure, Label, Seen, figure, share_of
from _emulator.results import Effort
from _emulator.runs import Run, seen, up, valid_run
from farline.testbeds import Testbed

RTT_S = 0.1
OMIT_S = max(3.0, 25 * RTT_S)
MTU_BYTES = 9000
REPEAT = 3
TRANSPORTS = ("tcp", "udt", "rbudp")
HEADER_BYTES = {"tcp": 52, "udt": 44, "rbudp": 44}
"""IP and transport around the payload of a full packet."""

FRAMING_BYTES = 38
SHARE, TREE_SHARE, OVER_SSH = 0.9, 0.9, 5.0
TREE_FILES = 2048
PINNED = {"tcp": ("--congestion", "cubic")}
"""Linux's own default. This machine's is bbr, which takes half as much processor time again where
the queueing discipline `fq` is not at hand; a namespace cannot be given another."""

PROBE_S = 8

TCP_MEMORY = Path("/proc/sys/net/ipv4/tcp_mem")
TCP_MEMORY_FACTOR = 4
"""How much more memory TCP may have: both ends and all that is under way between them are on one
machine, and share what the kernel allows one host. Near that limit it closes windows."""


@dataclass(frozen=True)
class Cell:
    """A path and a transport."""

    gbps: int
    transport: str

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.gbps}Gb/s 100ms {self.transport}"

    @property
    def group(self) -> str:
        """Name of its group."""
        return f"{self.gbps}g-{self.transport}"

    @property
    def payload_gbps(self) -> float:
        """Payload that the saturated link carries."""
        payload = MTU_BYTES - HEADER_BYTES[self.transport]
        return self.gbps * payload / (MTU_BYTES + FRAMING_BYTES)


@dataclass(frozen=True)
class Ground:
    """A bed with a server of ours, and a folder in memory."""

    bed: Testbed
    place: Place
    server: Serving
    folder: Path

    @property
    def target(self) -> Target:
        """Where copies go."""
        return Target(self.folder / "target")


@contextmanager
def tcp_memory() -> Iterator[None]:
    """More memory for TCP than one host has; what was allowed before, afterwards."""
    before = TCP_MEMORY.read_text()
    TCP_MEMORY.write_text(" ".join(str(TCP_MEMORY_FACTOR * int(pages)) for pages in before.split()))
    try:
        yield
    finally:
        TCP_MEMORY.write_text(before)


@contextmanager
def ground(gbps: float, **more: Any) -> Iterator[Ground]:
    """Two hosts with one link of 100 ms, the server on the second."""
    queue = {"queue": {"capacity_bdp": 1.0}}
    path = pipe(gbps * 1e9, RTT_S, mtu_bytes=MTU_BYTES, **queue, **more)
    with ExitStack() as stack:
        stack.enter_context(tcp_memory())
        folder = stack.enter_context(scratch(MEMORY, "farline-bench"))
        bed = stack.enter_context(up(pair(path)))
        place = stack.enter_context(hosts(bed.hosts[SENDER], bed.hosts[RECEIVER]))
        yield Ground(bed, place, stack.enter_context(serving(place)), folder)


def groups() -> dict[str, Any]:
    """A group per path and transport, the tree, and small files."""
    cells = [Cell(gbps, transport) for gbps in (5, 10) for transport in TRANSPORTS]
    found: dict[str, Any] = {cell.group: partial(large, cell=cell) for cell in cells}
    return {**found, "5g-tree": tree_and_file, "small-100ms": small}


def large(effort: Effort, cell: Cell) -> Iterator[Figure]:
    """One file of 8 GiB: against the link's payload rate, or against `farline probe`."""
    with warm(2 * _size(effort)), ground(cell.gbps) as here:
        whole = trees.one_file(here.folder / "source", _size(effort))

        def runs(*options: str) -> list[Run[Told]]:
            words = ("--transport", cell.transport, *PINNED.get(cell.transport, ()), *options)
            return [_steady(here, whole, *words) for _ in range(_repeat(effort))]

        default = runs()
        if cell.gbps == 5:  # at 10 Gb/s the processors, not the link, say what can be
            label = Label(cell.group, cell.name, "Gb/s", _note(default))
            yield share_of(label, _rates(default, effort), cell.payload_gbps, SHARE)
            return
        plain = runs(*PLAIN)
        copy = default[-1].value
        probes = [_probe_gbps(here, cell, copy, effort) for _ in range(_repeat(effort))]
    middle = sorted(probes)[len(probes) // 2]
    for word, done in (("", default), (" plain", plain)):
        rates = _rates(done, effort)
        ratios = [ours / middle / SHARE for ours in rates.values]
        label = Label(cell.group, f"{cell.name}{word} / probe", "Gb/s", _note(done))
        words = f"at least {SHARE:.0%} of what probe reaches"
        yield figure(label, rates, middle, ratios, 1.0, words)


def tree_and_file(effort: Effort) -> Iterator[Figure]:
    """2,048 files of as many bytes as one: steady rates, turn by turn."""
    size = _size(effort)
    with warm(2 * size), ground(5) as here:
        count = TREE_FILES // 32 if effort.is_short else TREE_FILES
        ratios, rates, runs = [], [], []
        for _ in range(_repeat(effort)):
            one = _steady(here, trees.one_file(here.folder / "source", size), *PINNED["tcp"])
            tree = trees.small_files(here.folder / "source", count, size // count)
            many = _steady(here, tree, *PINNED["tcp"])
            pair_bps = [each.value.steady_bps(_omit_s(effort)) for each in (many, one)]
            ratios.append(pair_bps[0] / pair_bps[1] / TREE_SHARE)
            rates.append(pair_bps)
            runs += [many, one]
    label = Label("5g-tree", f"5Gb/s 100ms tcp {count} files / one", "Gb/s", _note(runs))
    stamps = [run.stamp for run in runs]
    found = Seen([many / 1e9 for many, _ in rates], stamps)
    middle = sorted(one / 1e9 for _, one in rates)[len(rates) // 2]
    yield figure(label, found, middle, ratios, 1.0, "at least 90% of one file's")


def small(effort: Effort) -> Iterator[Contest]:
    """10,000 files of 10 KiB beside rsync and scp over ssh."""
    count = 500 if effort.is_short else 10_000
    with ExitStack() as stack:
        here = stack.enter_context(ground(10))
        over = stack.enter_context(peers.ssh(here.place, here.folder))
        ours = here.server.contender("farline default")
        tree = trees.small_files(here.folder / "source", count, 10 * 1024)
        stack.enter_context(warm(tree.bytes))
        few = trees.small_files(here.folder / "few", 10 if effort.is_short else 40, 10 * 1024)
        found = []
        for _ in range(_repeat(effort)):
            (taken,) = rounds(here.place, [ours, over["rsync ssh"]], tree, here.target, 1)
            found.append({**taken, "scp": run_one(here.place, over["scp"], few, here.target)})
    for peer in ("rsync ssh", "scp"):
        label = Label("small-100ms", f"100ms {count} x 10KiB / {peer}", "/s")
        yield contest(label, found, ours.name, (peer,), OVER_SSH, files_per_s)


def _size(effort: Effort) -> int:
    return GIB if effort.is_short else 8 * GIB


def _omit_s(effort: Effort) -> float:
    return 0.3 if effort.is_short else OMIT_S


def _repeat(effort: Effort) -> int:
    return 1 if effort.is_short else REPEAT


def _steady(here: Ground, tree: Tree, *options: str) -> Run[Told]:
    """One copy, compared with its source; again if the emulator was late meanwhile."""
    target = here.target

    def measure() -> Told:
        done = told(here.server.push(f"{tree.path}/", target.path, *options), LIMIT_S)
        if done.exit_code:
            raise RuntimeError(f"farline copy: {done.record.get('error')}")
        return done

    @contextmanager
    def around() -> Iterator[None]:
        target.ready(tree)
        yield
        wrong = trees.difference(tree.path, target.path)
        if wrong is not None:
            raise RuntimeError(f"farline copy: {wrong}")

    return valid_run(here.bed, measure, settle_s=OMIT_S, around=around)


def _rates(runs: list[Run[Told]], effort: Effort) -> Seen:
    """Steady payload rates, in Gb/s."""
    return seen(runs, lambda one: one.steady_bps(_omit_s(effort)) / 1e9)


def _note(runs: list[Run[Told]]) -> str:
    """Streams, the whole time, and what limited: from the records."""
    spec = runs[-1].value.record["spec"]
    whole = sorted(run.value.seconds for run in runs)[len(runs) // 2]
    return f"{spec.get('streams', 1)} streams; whole command {whole:.1f} s"


def _probe_gbps(here: Ground, cell: Cell, copy: Told, effort: Effort) -> float:
    """What `farline probe` carries there with the copy's streams."""
    spec = copy.record["spec"]
    span = ["-t", 3 if effort.is_short else PROBE_S + OMIT_S, "-O", _omit_s(effort)]
    same = ["--transport", cell.transport, *PINNED.get(cell.transport, ())]
    same += ["-P", spec.get("streams", 1)]
    same += ["-b", spec["rate_bps"]] if spec.get("rate_bps") else []
    command = here.server.probe(*same, *span)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    if not done.stdout.strip():
        raise RuntimeError(f"farline probe: {done.stderr.strip()[-400:]}")
    record = json.loads(done.stdout)
    if record["status"] != "complete":
        raise RuntimeError(f"farline probe: {record['error']}")
    forward = record["summary"]["forward"]
    return float(forward["steady_bps"] or forward["total_bps"]) / 1e9
