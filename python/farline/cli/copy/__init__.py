"""`farline copy`: moves files between this host and others, or between two others.

What it does: `command` reads a command line, finds the way to the other end and lets the engine
move the files, session after session, until all is there or there is no use; then it shows and
keeps what came of it.

What it must not do: read, write or name a file that is copied, which the engine does; import what
a copy of a few small files does without. The engine is begun before anything is imported that the
end needs: such a copy takes less time than the imports.

In: words (`place`), options (`options`). Out: what a view shows (`view`, `bar`, `end`, through
`output`), records and receipts (`keep`, `receipt`), an exit code.

Start with `command.Copy`; then `session` (attempts), `way` (how the other end is reached), `retry`.
A copy between two other hosts: `third` here, `ordered` there.
"""
