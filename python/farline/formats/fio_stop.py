"""What fio says of a run that it did not end as it was asked to, before what it had done by then.

A signal ends all jobs, and their figures follow as those of a whole run do, with error 0. A job
that is killed leaves figures without its own.
"""

from __future__ import annotations

import re

_SIGNAL = re.compile(r"fio: terminating on signal \d")
KILLED = re.compile(r"fio: pid=(\d+), got signal=(\d{1,3})")


def why_stopped(line: str) -> str | None:
    """Why the run whose figures come next has failed, if the line says so."""
    if _SIGNAL.match(line):
        return "interrupted"
    killed = KILLED.match(line)
    return f"a job was killed by signal {killed[2]}" if killed else None
