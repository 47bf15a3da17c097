"""The verdict rules: one function each, from the figures of a run to a finding or nothing.

`table.RULES` lists them in the order in which they are asked, with the transports that each is for;
`limits.LIMITS` holds every threshold. To add a rule: write the function, in the file of its subject
or in one of its own; add its line to `table.RULES`; test it in `tests/unit/findings` on a record
that shows it and on one that does not. CONTRIBUTING.md shows one.

Rules for copies work on the report of a copy and need no samples: `copies.RULES`.
"""
