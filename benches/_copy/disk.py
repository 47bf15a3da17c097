"""Cases of `copy-vs-peers` on disk: 4 GiB from a file system to itself, source not in memory.

The time counts until the copy is on the device (`sync -f` after the client's end). The limit of a
copy on one disk is what it reads and writes at once: fio does both together, past the page cache,
16 requests of 1 MiB under way each way, with memory as it comes and with large pages, of which a
device takes larger requests, and with those also 8 requests of 4 MiB.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from _copy import peers, trees
from _copy.loopback import GIB, GRIDFTP_ONE, OURS, ours
from _copy.machine import large_pages, warm
from _copy.place import loopback
from _copy.rounds import LIMIT_S, ROUNDS, Contest, Moved, Target, contest, rounds, scratch
from _copy.trees import Tree
from _emulator.figures import Label
from _emulator.results import Effort

FOLDER = Path(os.environ.get("FARLINE_BENCH_DISK", "/var/tmp"))
OF_FIO = 0.9
FIO_BYTES = 96 << 20
LARGE_PAGES = "--mem=shmhuge"
LIMITS = {
    "fio": (),
    "fio large pages": (LARGE_PAGES,),
    "fio large pages 4M": (LARGE_PAGES, "--bs=4M", "--iodepth=8"),
}
_FIO = ("--direct=1", "--bs=1M", "--iodepth=16", "--ioengine=io_uring", "--output-format=json")


def disk(effort: Effort) -> Iterator[Contest]:
    """One file of 4 GiB beside fio and GridFTP."""
    size = GIB // 4 if effort.is_short else 4 * GIB
    with ExitStack() as stack:
        folder = stack.enter_context(scratch(FOLDER, "farline-bench"))
        place = stack.enter_context(loopback())
        contenders = ours(stack, place)
        contenders |= stack.enter_context(peers.gridftp(place))
        chosen = [contenders[name] for name in (*OURS, *GRIDFTP_ONE)]
        tree, target = trees.one_file(folder / "source", size), Target(folder / "target", True)
        stack.enter_context(warm(2 * size))
        found = []
        for _ in range(1 if effort.is_short else ROUNDS):
            (taken,) = rounds(place, chosen, tree, target, 1)
            limits = {name: both_ways(tree, target, more) for name, more in LIMITS.items()}
            found.append({**taken, **limits})
    name = "disk 4GiB" if size == 4 * GIB else "disk 256MiB"
    for one in OURS:
        word = one.split()[1]
        label = Label("disk", f"{name} {word} / fio both ways", "Gb/s")
        yield contest(label, found, one, tuple(LIMITS), OF_FIO)
        label = Label("disk", f"{name} {word} / gridftp", "Gb/s", "mark here: WDT 7.0 Gb/s")
        yield contest(label, found, one, GRIDFTP_ONE, 1.0)


def both_ways(tree: Tree, target: Target, options: Sequence[str]) -> Moved:
    """fio's reader of the source and its writer of a new file at once: until the slower has ended.

    Raises:
        RuntimeError: when fio cannot.
    """
    if shutil.which("fio") is None:
        raise SystemExit("fio is missing: apt-get install fio")
    (source,) = (path for path in tree.path.iterdir() if path.is_file())
    reader = ["--name=read", "--rw=read", f"--filename={source}"]
    written = target.path / "written"
    writer = ["--name=write", "--rw=write", f"--filename={written}", "--end_fsync=1"]
    argv = ["fio", *_FIO, *options, f"--size={tree.bytes}", *reader, *writer]
    target.ready(tree)
    with large_pages(FIO_BYTES):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"fio: {done.stderr.strip()[-400:]}")
    document = json.loads(done.stdout[done.stdout.index("{") :])
    jobs = {job["jobname"]: job for job in document["jobs"]}
    shutil.rmtree(target.path)
    return Moved(max(job["job_runtime"] for job in jobs.values()) / 1e3, 0.0, 0.0, tree)
