"""UDT by farline over an emulated 10 Gb/s link of 0 to 366 ms: steady rate against the link's.

A group per cell, named like rtt366-mtu1500-loss0. `--cases` (or CASES=...) runs some and leaves the
others' rows; `--resume` (RESUME=1) goes on where a run stopped; `--short` (SHORT=1) shows that
everything works. Each row says whether the path's stamp was valid. Alone on an idle machine the
whole takes about 8 minutes.
"""

from __future__ import annotations

from functools import partial

from _emulator.results import Bench, main
from _program import program
from _udt import haul

BENCH = Bench("udt-long-haul", __doc__, haul.groups(), ("ours", "link"))

if __name__ == "__main__":
    program(partial(main, BENCH))
