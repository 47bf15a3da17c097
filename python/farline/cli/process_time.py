"""How long this process has run: what a user waits for begins before Python does."""

from __future__ import annotations

import os
import time
from pathlib import Path

_START_FIELD = 19
"""Of /proc/PID/stat, behind the command's name: `starttime`, see proc_pid_stat(5)."""

_LOADED_S = time.monotonic()


def process_s() -> float:
    """Seconds since this process began: what a user waits for begins before Python does."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        began_s = int(fields[_START_FIELD]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began_s)
    except (OSError, ValueError, IndexError):
        return time.monotonic() - _LOADED_S
