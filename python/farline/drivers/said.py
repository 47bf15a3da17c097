"""What tools print, read by the readers of logs; and what their words of failure mean."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from farline.drivers.processes import Ended
from farline.errors import (
    AuthError,
    BusyError,
    FarlineError,
    ProtocolError,
    SystemFailure,
    TimeoutFailure,
    UnreachableError,
)

_KINDS: tuple[tuple[str, type[FarlineError]], ...] = (
    (r"is busy running a test|server (?:is )?busy", BusyError),
    (r"timed? ?out|timeout", TimeoutFailure),
    (
        r"refused|no route|unreachable|not known|could not resolve|unknown host|bad hostname"
        r"|name resolution|unable to connect|connection closed by|nodename|not found in DNS"
        r"|no such host|invalid address|host .* not found",
        UnreachableError,
    ),
    (r"permission denied|not allowed|login incorrect|authentication|auth failed", AuthError),
    (r"no space|disk space|disk full|quota|file too large|no such file|read-only"
     r"|\[ERROR\] Server responded with an error: \[3", SystemFailure),
)  # fmt: skip
"""What a line says, and whose fault that is; the first that fits."""


_TELLING = re.compile(
    r"error|fail|refus|denied|cannot|unable|no such|space|timed? ?out", re.IGNORECASE
)


def failure_of(tool: str, ended: Ended, lines: list[str] | None = None) -> FarlineError:
    """The failure of a tool, from the words that it ended with."""
    words = [line for line in lines or ended.last_words if line.strip()]
    text = _telling(words) or f"it ended with exit code {ended.exit_code} and said nothing"
    for pattern, kind in _KINDS:
        if re.search(pattern, " ".join(words), re.IGNORECASE):
            return kind(f"{tool} failed: {text}")
    return ProtocolError(f"{tool} failed: {text}")


def _telling(words: list[str]) -> str:
    """The last line that speaks of an error; else the last of all."""
    telling = [word for word in words if _TELLING.search(word)]
    return (telling or words or [""])[-1].strip()[:300]


def rows_of(content: bytes | Path, kind: str) -> list[dict[str, Any]]:
    """Transfers in an output or a log of one of the known formats (`farline.formats`)."""
    from farline.formats import read_log

    if isinstance(content, Path):
        tables = list(read_log(content, kind).batches())
    else:
        with tempfile.NamedTemporaryFile(prefix="farline-said-") as file:
            file.write(content)
            file.flush()
            tables = list(read_log(file.name, kind).batches())
    return [row for table in tables for row in table.to_pylist()]
