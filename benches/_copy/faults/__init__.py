"""Copies that are disturbed at random, and what must hold all the same.

A case is drawn from a seed: a tree with odd names, a link, options of the copy, and one to three
faults (`plan`). It runs between two hosts of a testbed (`ground`): the same command again and
again, as a person would type it, until it says that it is done (`case`), while the faults come and
go (`actors`).

What must hold (`check`):

- At any moment, what has a final name at the destination is a file as the source had it, content
  and time together, or what was there before.
- After the last run every name of the source is there, the same byte for byte, with its mode and
  time, or the receipt names it as failed and says why. Only what was changed meanwhile may fail.
- Nothing else is at the destination; `.farline-partial` only if something failed.
- The last run says so: exit code 0 if nothing failed, 23 or 24 else.

What this must not do: repair anything itself, or look away: a case that does not end is one that
ended wrong. The same seed draws the same cases; when exactly a fault meets the copy is up to the
machine.

Start with `case.run`, then `check`.
"""
