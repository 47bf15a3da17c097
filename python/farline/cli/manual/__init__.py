"""The manual: what `--help` and `--help-all` print beside the description of a command.

A command declares its options with their help texts; here stands how they are grouped, which of
them are common enough for `--help`, examples, exit codes and what to read next. `page` is what a
page has, `pages` finds that of a command, `writing` writes it; the other files have the pages.

What it must not do: import what a command needs to work. What must hold: every visible option of a
command stands in one group of its page, and every example is a command line that farline takes;
tests/unit/cli/test_manual.py checks both, and compares what is printed with tests/unit/cli/help/.

Start with `page.Page`.
"""
