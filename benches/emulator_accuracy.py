"""How exact the path emulator is: stated against measured, a row per figure.

Seen from inside the hosts wherever a host can tell: see `_emulator`. `--cases` (or CASES=...)
runs some groups and leaves the others' rows; `--resume` (RESUME=1) goes on where a run stopped;
`--short` shows that everything works. Alone on an idle machine the whole takes about 25 minutes.
"""

from __future__ import annotations

from functools import partial

from _emulator.cases import (
    backlog,
    conservation,
    fairness,
    loss,
    rate,
    round_trip,
    stamp,
    teeth,
)
from _emulator.results import Bench, main
from _program import program

CASES = (round_trip, rate, loss, backlog, teeth, fairness, conservation, stamp)
BENCH = Bench("emulator-accuracy", __doc__, {module.GROUP: module.rows for module in CASES})

if __name__ == "__main__":
    program(partial(main, BENCH))
