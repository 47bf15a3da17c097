"""Contenders in turn, and rows of what they took."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from _copy import trees
from _copy.machine import busy_s, evict
from _copy.peers import Contender
from _copy.place import Place
from _copy.trees import Tree
from _emulator.figures import Figure, Label, Seen, figure

LIMIT_S = 600
TRIES = 2
ROUNDS = 5


@dataclass(frozen=True)
class Moved:
    """What one copy took: from the start of its client to its end."""

    seconds: float
    cpu_s: float
    other_cpu: float
    """CPUs that worked for others meanwhile: figures of a run with much of it say little."""

    tree: Tree

    @property
    def gbps(self) -> float:
        """Payload."""
        return self.tree.bytes * 8 / self.seconds / 1e9

    @property
    def files_per_s(self) -> float:
        """Files."""
        return self.tree.files / self.seconds

    @property
    def cpu_s_per_gb(self) -> float:
        """CPU seconds of both ends per 10^9 payload bytes."""
        return self.cpu_s / (self.tree.bytes / 1e9)


@dataclass(frozen=True)
class Contest(Figure):
    """A row of two contenders, with all values of both."""

    peer_measured: list[float] = field(default_factory=list)


Value = Callable[[Moved], float]
Round = Mapping[str, Moved]


@dataclass(frozen=True)
class Target:
    """Where copies go, and what is done around them."""

    path: Path
    on_disk: bool = False

    def ready(self, tree: Tree) -> None:
        """An empty folder; on disk, a source that the page cache has not."""
        self.empty()
        if self.on_disk:
            os.sync()
            evict(tree.path)

    def empty(self) -> None:
        """An empty folder that everybody may write to."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        self.path.chmod(0o777)

    def settle(self) -> None:
        """What belongs to the time that counts: on disk a copy is one when it is there."""
        if self.on_disk:
            subprocess.run(["sync", "-f", str(self.path)], check=True)


def run(place: Place, one: Contender, tree: Tree, target: Target) -> Moved:
    """One copy, compared with its source.

    Raises:
        RuntimeError: when it failed, or what arrived is not what was sent.
    """
    target.ready(tree)
    command = one.command(tree.path, target.path)
    cpu_s, all_s, since = place.meter.cpu_s(), busy_s(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    target.settle()
    seconds = time.perf_counter() - since
    cpu_s = place.meter.cpu_s() - cpu_s
    other = max(0.0, busy_s() - all_s - cpu_s) / seconds
    if done.returncode:
        raise RuntimeError(f"{one.name}: {(done.stderr or done.stdout).strip()[-400:]}")
    wrong = trees.difference(tree.path, target.path)
    if wrong is not None:
        raise RuntimeError(f"{one.name}: {wrong}")
    return Moved(seconds, cpu_s, other, tree)


def rounds(
    place: Place, contenders: Sequence[Contender], tree: Tree, target: Target, count: int
) -> list[dict[str, Moved]]:
    """A B C A B C ...: one copy of each contender in each round."""
    found = []
    for number in range(count):
        taken = {one.name: _tried(place, one, tree, target) for one in contenders}
        found.append(taken)
        words = ", ".join(f"{name} {moved.seconds:.2f} s" for name, moved in taken.items())
        print(f"#   round {number + 1}: {words}", file=sys.stderr, flush=True)
    shutil.rmtree(target.path, ignore_errors=True)
    return found


def _tried(place: Place, one: Contender, tree: Tree, target: Target) -> Moved:
    """A copy; a peer that fails has a second try, ours has none."""
    for _ in range(1 if one.name.startswith("farline") else TRIES):
        try:
            return run(place, one, tree, target)
        except (RuntimeError, subprocess.TimeoutExpired) as problem:
            print(f"#   {one.name}: {problem}", file=sys.stderr, flush=True)
            failed = problem
    raise RuntimeError(str(failed))


def gbps(moved: Moved) -> float:
    """Payload rate of a run."""
    return moved.gbps


def files_per_s(moved: Moved) -> float:
    """Files per second of a run."""
    return moved.files_per_s


def cpu(moved: Moved) -> float:
    """CPU seconds of both ends per 10^9 bytes."""
    return moved.cpu_s_per_gb


def contest(
    label: Label,
    found: Sequence[Round],
    ours: str,
    peers: Sequence[str],
    factor: float,
    value: Value = gbps,
    *,
    less_is_better: bool = False,
) -> Contest:
    """Ours over the best of some peers (by median) and over the factor asked for."""
    best = _best(found, peers, value, less_is_better)
    pairs = [(value(one[ours]), value(one[best])) for one in found]
    ratios = [(peer / own if less_is_better else own / peer) / factor for own, peer in pairs]
    others = statistics.median(moved.other_cpu for one in found for moved in one.values())
    note = f"{ours} against {best}; CPUs busy elsewhere {others:.2f}"
    named = Label(label.group, label.case, label.unit, f"{label.note}; {note}".strip("; "))
    own, theirs = zip(*pairs, strict=True)
    word = "no more than" if less_is_better else f"at least {factor:g} times"
    row = figure(named, Seen(own), statistics.median(theirs), ratios, 1.0, f"{word} {best}'s")
    return Contest(**vars(row), peer_measured=list(theirs))


def _best(found: Sequence[Round], peers: Sequence[str], value: Value, less: bool) -> str:
    medians = {name: statistics.median(value(one[name]) for one in found) for name in peers}
    return (min if less else max)(medians, key=lambda name: medians[name])


@contextmanager
def scratch(parent: Path, name: str) -> Iterator[Path]:
    """A folder of one's own for sources and targets, gone afterwards."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Removes a folder into which a peer that was just ended may write a last file.

    Raises:
        RuntimeError: when something writes to it still.
    """
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)
    raise RuntimeError(f"{folder}: programs of a bench are still writing to it")
