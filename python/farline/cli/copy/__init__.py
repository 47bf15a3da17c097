"""`farline copy`: the command line of `farline.copying`.

What it does: `command` reads a command line into a `CopyRequest` and shows the events of its job as
they come; then it shows what came of it.

What it must not do: reach another end, begin or keep a session, which the job does; import what a
copy of a few small files does without (`rich` comes with a bar, when a copy has gone on for a
moment).

In: options (`options`, with `filters` and `habits`). Out: what a view shows (`view`, `bar`,
`progress_text`, `end`, through `output`), an exit code.

Start with `command.command` and `show_job.show`. The end of a copy between two hosts that gets the
order is `ordered`.
"""
