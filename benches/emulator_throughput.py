"""What the path emulator carries: kernel TCP over 10 Gb/s at MTU 1500 and 9000, 0 to 366 ms; UDP.

Groups are mtu1500-rtt0 and so on, and udp. `--cases` (or CASES=...) runs some and leaves the
others' rows; `--resume` (RESUME=1) goes on where a run stopped; `--short` (SHORT=1) shows that
everything works. Alone on an idle machine the whole takes about 35 minutes.
"""

from __future__ import annotations

from functools import partial

from _emulator.cases import datagrams, steady
from _emulator.results import Bench, main
from _program import program

GROUPS = {**steady.groups(), datagrams.GROUP: datagrams.rows}
BENCH = Bench("emulator-throughput", __doc__, GROUPS)

if __name__ == "__main__":
    program(partial(main, BENCH))
