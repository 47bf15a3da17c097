"""Why a run was as fast as it was, and what holds a host back.

What it does: turns facts into findings. `verdict` says what limited one run,
with the figures it rests on and what would lift the limit; `figures` gathers
these figures from the record and the samples; `host` judges what a host allows
against the path one has in mind.

What it must not do: measure, read files or sockets, run commands, change
anything. A finding names the command; a person runs it.

In: a run record with its sample columns, or host facts. Out: a `Verdict`
document or findings, each with evidence.

Start with `verdict.verdict`: a list of rules, first hit wins, each rule one
function from `Figures` to a verdict or nothing.
"""
