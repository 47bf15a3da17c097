"""The `farline` command: one file per verb.

What it does: parses a command line into a spec, calls a room below, prints
what came back. `--json` gives a document on success and failure alike; errors
are one line on standard error and a documented exit code.

What it must not do: measure, judge, compute or keep anything itself; import
what a command does not need (`farline --help` answers at once: this module and
the group in `group.py` import nothing heavy, a verb's file is imported when it
is called).

In: arguments. Out: text or JSON on standard output, progress on standard error,
one of these exit codes:

```text
0 success            1 usage or spec     2 this machine       4 no right (ticket, key)
5 busy, unreachable  7 protocol          8 limits             30 time-out
70 a defect          130 interrupted; a partial record was written
```

Start with `verbs.COMMANDS` (verbs and where they live), then `probe`.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

_GARBAGE_EACH = 50_000
"""Objects more than before at which Python looks for garbage in circles; 700 by itself."""


def main() -> NoReturn:
    """Runs the command line and ends the process with its exit code."""
    # Most of what a start makes stays: looking through it for garbage takes as long as a small
    # copy, and at the end once more.
    gc.set_threshold(_GARBAGE_EACH)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_standard_files()
    from farline.cli.group import run

    code = run(sys.argv[1:])
    # DuckDB's binding complains of everything that is not collected at the end.
    if "duckdb" not in sys.modules:
        gc.freeze()
    sys.exit(code)


def _open_standard_files() -> None:
    """Opens /dev/null in the place of each standard file that whoever started this has closed.

    Else a file of a copy would get its descriptor, and take what is printed.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
