"""What a change may break: test files by who imports whom, crates by who is built on whom.

What it does: maps changed files to test files of `tests/unit` (`tests`) and to crates (`crates`),
the nearest first. In: paths relative to the repository. Out: the same, and names of crates.
What it must not do: run anything but `cargo metadata`.

Start with `tests.affected`.
"""
