"""UDT by farline against libudt 4.11: memory to memory over loopback, a CPU for each end.

Groups are headline (one stream, 64 KiB blocks, packets of 1500 bytes: ten times as fast at a fifth
of the CPU time), mixed (one end ours, the other libudt), and one per packet size and number of
streams. `--cases` (or CASES=...) runs some and leaves the others' rows; `--resume` (RESUME=1) goes
on where a run stopped; `--short` (SHORT=1) shows that everything works. The grid has three pairs
of short runs a cell. Alone on an idle machine the whole takes about 20 minutes.
"""

from __future__ import annotations

from functools import partial

from _emulator.results import Bench, main
from _program import program
from _udt import grid

BENCH = Bench("udt-vs-libudt", __doc__, grid.groups(), ("ours", "libudt"))

if __name__ == "__main__":
    program(partial(main, BENCH))
