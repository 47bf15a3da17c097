"""What the benches and tests of `farline copy` share: trees, places, peers, ours, rounds, faults.

What it does: makes source trees that are the same on every machine (`trees`), brings memory and
page cache into a known state before each run and counts CPU time of all programs of a run
(`machine`), starts servers and clients on loopback or on a testbed's hosts (`place`), knows how
each peer's user would type the same copy (`peers`) and how ours does (`ours`), runs contenders
in turn and makes rows of what they took (`rounds`). A copy counts only if what arrived is what was
sent: every run's target is compared with its source, byte by byte, outside the time that counts.

What it must not do: tune ours by hand where a row says "default", give a peer fewer chances than
its best documented options, change anything of this machine that outlives the run.

Cases of `copy-vs-peers`: `loopback`, `disk`, `small`, `paths`, `million`. The folder `faults` has
`copy-faults`: random faults from a seed, and what must hold whatever happens.

Start with `rounds`, then `loopback`; for the faults with `faults`.
"""
