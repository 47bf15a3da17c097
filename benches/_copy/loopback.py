"""Cases of `copy-vs-peers` on loopback, from memory to memory: one large file, small ones, a mix.

Wall time of the whole client program, ssh logins and start of Python included. Every contender has
the same congestion control, and warm memory to write to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from _copy import peers, trees
from _copy.machine import warm
from _copy.ours import PLAIN, serving
from _copy.peers import Contender
from _copy.place import Place, loopback
from _copy.rounds import ROUNDS, Target, contest, cpu, files_per_s, rounds, scratch
from _emulator.figures import Figure, Label
from _emulator.results import Effort

MEMORY = Path("/dev/shm")
GIB = 1 << 30
OURS = ("farline plain", "farline default")
GRIDFTP_ONE = ("gridftp p1", "gridftp p4", "gridftp p4 bs4M")
GRIDFTP_TREE = ("gridftp cc4 pp", "gridftp 3rd pp", "gridftp 3rd cc4 pp")
OVER_GRIDFTP, DEFAULT_OVER_GRIDFTP, OVER_SCP = 1.05, 0.8, 3.0
OVER_RSYNC, MIX_OVER_GRIDFTP = 1.8, 1.35


@dataclass(frozen=True)
class Arena:
    """Everybody's servers up at one place, and the contenders by name."""

    place: Place
    folder: Path
    contenders: dict[str, Contender]

    def those(self, *names: str) -> list[Contender]:
        """Some of them, in this order."""
        return [self.contenders[name] for name in names]


def ours(stack: ExitStack, place: Place) -> dict[str, Contender]:
    """Ours with nothing but files, and ours as it comes."""
    server = stack.enter_context(serving(place))
    plain, default = OURS
    return {plain: server.contender(plain, *PLAIN), default: server.contender(default)}


def enter(stack: ExitStack, folder: Path) -> Arena:
    """A namespace with all servers, down with the stack."""
    place = stack.enter_context(loopback())
    found = ours(stack, place)
    found |= stack.enter_context(peers.gridftp(place))
    found |= stack.enter_context(peers.ssh(place, folder))
    daemon = stack.enter_context(peers.rsync_daemon(place, folder))
    return Arena(place, folder, found | {daemon.name: daemon})


def one(effort: Effort) -> Iterator[Figure]:
    """One file of 4 GiB: speed and CPU time beside GridFTP's, speed beside everybody's."""
    size = GIB // 4 if effort.is_short else 4 * GIB
    name = "lo 4GiB" if size == 4 * GIB else "lo 256MiB"
    everybody = (*OURS, *GRIDFTP_ONE, "rsync daemon", "scp", "rsync ssh", "rclone sftp")
    with ExitStack() as stack:
        folder = stack.enter_context(scratch(MEMORY, "farline-bench"))
        arena = enter(stack, folder)
        tree = trees.one_file(folder / "source", size)
        stack.enter_context(warm(tree.bytes))
        count = 1 if effort.is_short else ROUNDS
        found = rounds(arena.place, arena.those(*everybody), tree, Target(folder / "target"), count)
    plain, default = OURS

    def label(case: str, unit: str = "Gb/s", note: str = "") -> Label:
        return Label("one", f"{name} {case}", unit, note)

    marks = "marks here: WDT 11.0, XDD 10.1, bbcp 8.8, FDT 3.5 Gb/s"
    yield contest(label("plain", note=marks), found, plain, GRIDFTP_ONE, OVER_GRIDFTP)
    yield contest(
        label("plain cpu", "s/GB"), found, plain, GRIDFTP_ONE, 1.0, cpu, less_is_better=True
    )
    yield contest(
        label("default / gridftp", note="mark here: EScp 8.5 Gb/s"),
        found, default, GRIDFTP_ONE, DEFAULT_OVER_GRIDFTP,
    )  # fmt: skip
    yield contest(label("default / scp"), found, default, ("scp",), OVER_SCP)
    yield contest(label("plain / rsync daemon"), found, plain, ("rsync daemon",), 1.0)
    yield contest(label("default / rsync ssh"), found, default, ("rsync ssh",), 1.0)
    yield contest(label("default / rclone"), found, default, ("rclone sftp",), 1.0)


def small(effort: Effort) -> Iterator[Figure]:
    """10,000 files of 10 KiB beside the rsync daemon."""
    count = 1000 if effort.is_short else 10_000
    with ExitStack() as stack:
        folder = stack.enter_context(scratch(MEMORY, "farline-bench"))
        place = stack.enter_context(loopback())
        daemon = stack.enter_context(peers.rsync_daemon(place, folder))
        contenders = [*ours(stack, place).values(), daemon]
        tree = trees.small_files(folder / "source", count, 10 * 1024)
        stack.enter_context(warm(tree.bytes))
        repeat = 1 if effort.is_short else 2 * ROUNDS
        found = rounds(place, contenders, tree, Target(folder / "target"), repeat)
    for name in OURS:
        label = Label("small", f"lo {count} x 10KiB {name.split()[1]}", "/s", "WDT's mark 40,000/s")
        yield contest(label, found, name, (daemon.name,), OVER_RSYNC, files_per_s)


def mix(effort: Effort) -> Iterator[Figure]:
    """1,000 files of a log-normal distribution beside GridFTP."""
    count = 100 if effort.is_short else 1000
    with ExitStack() as stack:
        folder = stack.enter_context(scratch(MEMORY, "farline-bench"))
        place = stack.enter_context(loopback())
        contenders = ours(stack, place)
        contenders |= stack.enter_context(peers.gridftp(place))
        tree = trees.mix(folder / "source", count)
        stack.enter_context(warm(tree.bytes))
        repeat = 1 if effort.is_short else ROUNDS
        chosen = [contenders[name] for name in (*OURS, *GRIDFTP_TREE)]
        found = rounds(place, chosen, tree, Target(folder / "target"), repeat)
    plain, default = OURS
    label = Label("mix", f"lo mix of {count} plain", "Gb/s", "WDT's mark 13.5 Gb/s")
    yield contest(label, found, plain, GRIDFTP_TREE, MIX_OVER_GRIDFTP)
    label = Label("mix", f"lo mix of {count} default", "Gb/s")
    yield contest(label, found, default, GRIDFTP_TREE, 1.0)
