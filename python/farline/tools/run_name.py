"""Names of runs that no engine gives."""

from __future__ import annotations

import secrets
import time

_BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_run_name() -> str:
    """A name that sorts by time: 48 bits of milliseconds, 80 of chance (github.com/ulid/spec)."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return "".join(_BASE32[number >> shift & 31] for shift in range(125, -1, -5))
