"""RBUDP's speed: on loopback as fast as it goes, at stated rates, and over a long lossy path.

Groups: plain and checksum (one stream of 1472-byte datagrams over loopback, naive, scatter/gather
and fake receiver: 25 Gb/s, and CPU time of each receiver over the next one's), pacing (delivered
rate within 0.5 % of the stated one, bursts by the receiving kernel's timestamps), lossy1500 and
lossy9000 (2 GB over 10 Gb/s, 100 ms, 0.1 % loss: three times cubic, nine tenths of the link).
`--cases` (or CASES=...) runs some and leaves the others' rows; `--resume` (RESUME=1) goes on
where a run stopped; `--short` (SHORT=1) shows that everything works. Needs root. Alone on an idle
machine the whole takes about 6 minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from _emulator.results import Bench, Group, main
from _program import program
from _rbudp import loopback, lossy, pacing

GROUPS: Mapping[str, Group] = {
    "plain": partial(loopback.rows, checksum=False),
    "checksum": partial(loopback.rows, checksum=True),
    "pacing": pacing.rows,
    "lossy1500": partial(lossy.rows, mtu_bytes=1500),
    "lossy9000": partial(lossy.rows, mtu_bytes=9000),
}

BENCH = Bench("rbudp-speed", __doc__, GROUPS, ("ours", "stated"))

if __name__ == "__main__":
    program(partial(main, BENCH))
