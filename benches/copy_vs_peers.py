"""`farline copy` beside GridFTP, rsync, scp, rclone and fio, turn by turn on the same machine.

Groups: one (4 GiB from memory to memory over loopback, speed and CPU time), small (10,000 files of
10 KiB), mix (1,000 files of a log-normal distribution), disk (4 GiB beside fio and GridFTP), 5g-*
and 10g-* (8 GiB over emulated paths of 100 ms with each transport), 5g-tree, small-100ms, million.
A ratio is ours over the best peer's over the factor that is asked for. `--cases` (or CASES=...)
runs some and leaves the others' rows; `--resume` (RESUME=1) goes on where a run stopped; `--short`
(SHORT=1) shows that everything works. Needs root, 23 GB of memory and 10 GB of disk. Alone on an
idle machine the whole takes about 50 minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from _copy import disk, loopback, million, paths
from _emulator.results import Bench, Group, main
from _program import program

GROUPS: Mapping[str, Group] = {
    "one": loopback.one,
    "small": loopback.small,
    "mix": loopback.mix,
    "disk": disk.disk,
    **paths.groups(),
    "million": million.million,
}

BENCH = Bench("copy-vs-peers", __doc__, GROUPS, ("ours", "peer"))

if __name__ == "__main__":
    program(partial(main, BENCH))
