"""RBUDP's blasts over emulated paths against the corrected model of He et al. 2002: within 3 %.

Rows over payload (1 MB to 2 GB), rate (0.1 to 9 Gb/s), round trip (0 to 366 ms) and loss (0 to
33 %, on the way of the data), after each pass one report, and some with early reports; of the
lossy ones also the number of passes. A group per cell, named like 600MB-0.6G-rtt110-loss7.
`--cases` (or CASES=...) runs some and leaves the others' rows; `--resume` (RESUME=1) goes on
where a run stopped; `--short` (SHORT=1) shows that everything works; `--grid` (GRID=1) is every
combination, some hours. Alone on an idle machine the chosen ones take about a quarter of an hour.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from _emulator.results import Bench, main
from _program import program
from _rbudp import against_model, cells

WHOLE_GRID = "--grid"


def bench(whole_grid: bool) -> Bench:
    """The chosen cells, or all of them."""
    wanted = cells.grid() if whole_grid else cells.chosen()
    return Bench("rbudp-model", __doc__, against_model.groups(wanted), ("ours", "model"))


if __name__ == "__main__":
    whole = WHOLE_GRID in sys.argv or bool(os.environ.get("GRID"))
    sys.argv = [word for word in sys.argv if word != WHOLE_GRID]
    program(partial(main, bench(whole)))
