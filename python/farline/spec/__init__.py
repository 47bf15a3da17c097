"""What can be asked of a run, and how people write it.

What it does: holds the types, the option table and the kinds of failure that
`cargo xtask gen` writes from `crates/spec` (`_types`, `_options`, `_failures`:
never edited), reads texts with units (`units`), turns texts into values of
options (`values`), and command-line options into spec documents and grids
(`options`; iperf3's letters in `letters`), and says where the user's folders are
(`user_folders`).

What it must not do: run anything, open anything, decide whether options go
together: that is the validator's in Rust, the same for every door.

In: texts from a command line or a plan file. Out: spec documents (`RunSpec`,
plain JSON), grids of them, or a `ValueError` of one line.

Start with `_types.py` for the documents, `table.Option` for one option,
`options.run_options` for a command line, `values.read_value` for a plan file.
"""
