"""What was left out because it could not be read: one line a file, for whoever runs the program.

Readers of the store go on without a damaged file. They note it here, and the command line says it
at the end and has another exit code.
"""

from __future__ import annotations

from farline.logs import Log

_LOG = Log(__name__)

_lines: dict[str, None] = {}


def note(line: str) -> None:
    """Something was left out; the same line counts once."""
    if line not in _lines:
        _LOG.warning("file left out", reason=line)
    _lines.setdefault(line)


def noted() -> tuple[str, ...]:
    """What was left out so far."""
    return tuple(_lines)


def forget() -> None:
    """Begins anew: another command runs in this process."""
    _lines.clear()
