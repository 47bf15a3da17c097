"""Cases of `copy-vs-peers` with a million files: memory of both ends, first byte, resume."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from _copy import trees
from _copy.loopback import MEMORY
from _copy.ours import serving, told
from _copy.place import loopback
from _copy.rounds import LIMIT_S, Target, scratch
from _emulator.figures import Figure, Label, Seen, always, at_most
from _emulator.results import Effort

FILES, SHORT_FILES = 1_000_000, 20_000
FILE_BYTES = 512
MOST_MIB, FIRST_BYTE_S, RESUME_S = 300.0, 2.0, 10.0
RESUME_AT = 0.99
GROUP = "million"


def million(effort: Effort) -> Iterator[Figure]:
    """A whole copy; then one whose client is killed at 99 %, and the next that ends it."""
    count = SHORT_FILES if effort.is_short else FILES
    name = f"{count} files"
    with ExitStack() as stack:
        folder = stack.enter_context(scratch(MEMORY, "farline-bench"))
        server = stack.enter_context(serving(stack.enter_context(loopback())))
        tree = trees.small_files(
            folder / "source", count, FILE_BYTES, count // trees.NAMES_A_FOLDER
        )
        target = Target(folder / "target")
        command = server.push(f"{tree.path}/", target.path)
        target.ready(tree)
        whole = told(command, LIMIT_S)
        if whole.exit_code:
            raise RuntimeError(f"farline copy: {whole.record.get('error')}")
        for end in ("sender", "receiver"):
            peak = whole.report[end]["peak_memory_bytes"] / 2**20
            yield at_most(Label(GROUP, f"{name} {end}'s memory", "MiB"), Seen([peak]), MOST_MIB)
        first = Seen([whole.first_byte_s or LIMIT_S])
        note = f"whole in {whole.seconds:.1f} s, {count / whole.seconds:.0f} files/s"
        yield at_most(Label(GROUP, f"{name} first byte", "s", note), first, FIRST_BYTE_S)
        target.ready(tree)
        told(command, LIMIT_S, lambda progress, client: kill_late(progress, client, count))
        resumed = told(command, LIMIT_S)
        moved = resumed.report["copied"]["bytes"]
        note = f"{moved / tree.bytes:.2%} of the bytes went again"
        label = Label(GROUP, f"{name} resume at 99 %", "s", note)
        yield at_most(label, Seen([resumed.seconds]), RESUME_S)
        is_same = trees.difference(tree.path, target.path) is None and resumed.exit_code == 0
        yield always(Label(GROUP, f"{name} same after resume", ""), Seen([float(is_same)]))


def kill_late(progress: Mapping[str, int], client: subprocess.Popen[str], count: int) -> None:
    """Kills the client once 99 % of the files are settled."""
    if progress["settled_files"] >= RESUME_AT * count and client.poll() is None:
        client.send_signal(signal.SIGKILL)
