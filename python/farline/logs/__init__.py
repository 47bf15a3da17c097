"""What every process can say of what it does: log lines of both languages in one stream.

What it does: gives each Python room a `Log` to say things with, on top of Python's `logging`; reads
which levels are wanted of which rooms (`levels`); starts the stream, to which the Rust rooms write
as well (`stream`), and opens its file anew.

What it must not do: put payload, content of files, a ticket or a key into a line; print; import
`logging` before somebody wants lines: a small copy would take noticeably longer.

In: messages with fields. Out: lines on standard error or in a file, whose form `crates/logs`
decides; without `stream.start`, records of `logging` under `farline.ROOM`, which any handler of the
caller's may take. Nothing is printed unless one of the two was asked for.

Start with `Log`, then `stream.start`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging

TRACE = 5
"""Level below `logging.DEBUG`: what is said of each message or part of a file."""

LEVEL_VARIABLE = "FARLINE_LOG"
"""Environment variable that says which levels are wanted, where nothing else does."""

_DEBUG, _INFO, _WARNING, _ERROR = 10, 20, 30, 40


class Log:
    """Says what a room does. A message says what happened; what it happened to are its fields.

    The fields `session`, `stream` and `entry` are ids, by which lines are found.
    """

    def __init__(self, module: str) -> None:
        """For the module of this `__name__`."""
        self._name = module

    def trace(self, message: str, **fields: Any) -> None:
        """Says what happens so often that it is wanted of one room at most."""
        self._say(TRACE, message, fields)

    def debug(self, message: str, **fields: Any) -> None:
        """Says a step, such that failures can be understood from these lines alone."""
        self._say(_DEBUG, message, fields)

    def info(self, message: str, **fields: Any) -> None:
        """Says that something whole began or ended."""
        self._say(_INFO, message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        """Says what should not be so, though work goes on."""
        self._say(_WARNING, message, fields)

    def error(self, message: str, **fields: Any) -> None:
        """Says what ended the work."""
        self._say(_ERROR, message, fields)

    def _say(self, level: int, message: str, fields: dict[str, Any]) -> None:
        # Whoever wants lines has imported it, to say so.
        if (logger := _logger(self._name)) is None:
            return
        if logger.isEnabledFor(level):
            extra = {"fields": {name: value for name, value in fields.items() if value is not None}}
            logger.log(level, message, extra=extra, stacklevel=3)


def start_from_environment() -> bool:
    """Starts the stream on standard error if `FARLINE_LOG` asks for lines; says whether it does.

    Raises:
        UsageError: for an unknown level or room in it.
    """
    text = os.environ.get(LEVEL_VARIABLE, "")
    if text:
        from farline.logs import levels, stream

        stream.start(levels.parse_levels(text, LEVEL_VARIABLE))
    return bool(text)


def is_on_stderr() -> bool:
    """Whether lines go to standard error, where nothing may redraw itself then."""
    stream = sys.modules.get("farline.logs.stream")
    return stream is not None and bool(stream.is_on_stderr())


def words_for_far_end() -> tuple[str, ...]:
    """Options by which a farline on another host logs as this one does; none where nothing is."""
    stream = sys.modules.get("farline.logs.stream")
    return () if stream is None else tuple(stream.words_for_far_end())


def _logger(name: str) -> logging.Logger | None:
    """The logger `name`, if `logging` is there; the one of all rooms prints nothing by itself."""
    module: Any = sys.modules.get("logging")
    if module is None:
        return None
    top = module.getLogger("farline")
    if not top.handlers:
        top.addHandler(module.NullHandler())
    found: logging.Logger = module.getLogger(name)
    return found
