"""What the bench analyze-scale is made of: rows to analyse, and programs that analyse them.

What it does: makes a hundred million transfers between seven sites as Parquet, once, and runs one
analysis at a time in a process of its own, so that its memory is its own. What it must not do:
time its own parts; `analyze_scale` times whole processes, start of Python included.

In: nothing but the machine. Out: what an analysis came to, as JSON, for all to be compared.

- `data`: the rows, and the infrastructure that they belong to;
- `contender`: ours, a profile per connection, and the bare aggregation by others.

Where to start: `contender.ours`.
"""
