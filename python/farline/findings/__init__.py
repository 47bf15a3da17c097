"""What limited a run, what limits a host, and what an infrastructure loses.

What it does: turns facts into findings. `verdict` says what limited one run,
with the figures it rests on and what would lift the limit; `figures` gathers
these figures from the record and the samples; `host` judges what a host allows
against the path one has in mind; `infrastructure` fits rates between many
sites and says which sites and parts hold them back, by what mending would gain.

What it must not do: measure, read files or sockets, run commands, change
anything. A finding names the command; a person runs it.

In: a run record with its sample columns, or host facts, or cells by sites. Out:
a `Verdict` document, findings or an `Explanation`, each with evidence; "not
enough data" where the measurements do not tell.

Start with `verdict.verdict`: the rules of `rules.table`, first hit wins, each one
function from `Figures` to a finding or nothing, with the thresholds of
`rules.limits`. For infrastructures start with `infrastructure.explain`:
`bound_search` tries, `diagnosis` decides.
"""
