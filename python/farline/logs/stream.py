"""The one stream: started once, written to by both languages, its file opened anew on a signal."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from farline import _native
from farline.errors import from_failure
from farline.logs import TRACE, Log
from farline.logs.levels import PYTHON_ROOMS, Levels

TOP = "farline"
"""Name of the logger above those of all rooms."""

REOPEN_SIGNAL = signal.SIGUSR1
"""Makes a process open its log file anew; others end it or have a meaning already."""

_NUMBERS = {
    "off": logging.CRITICAL + 10,
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": TRACE,
}

_LOG = Log(__name__)


@dataclass
class _State:
    """Where lines go now."""

    is_on_stderr: bool = False
    levels: Levels = field(default_factory=lambda: Levels("off"))


_STATE = _State()


def is_on_stderr() -> bool:
    """Whether lines go to standard error."""
    return _STATE.is_on_stderr


def words_for_far_end() -> tuple[str, ...]:
    """Options that make a farline log as this one does; as JSON, which `FarLines` reads."""
    levels = _STATE.levels
    if {levels.level, *levels.rooms.values()} == {"off"}:
        return ()
    return "--log-level", str(levels), "--log-format", "json"


def start(levels: Levels, form: str = "text", file: Path | None = None) -> None:
    """Starts the stream: lines of `form` (`text`, `json`) go to `file`, or to standard error.

    In the main thread of a process with a file, SIGUSR1 opens that anew from now on. May be called
    again, with other settings.

    Raises:
        SystemFailure: when the file cannot be opened.
    """
    rooms = list(levels.rooms.items())
    try:
        _native.start_log(levels.level, rooms, form, file)
    except _native.NativeError as error:
        raise from_failure(str(error.args[0])) from None
    _connect(levels)
    _STATE.levels = levels
    wanted = {levels.level, *levels.rooms.values()}
    _STATE.is_on_stderr = file is None and wanted != {"off"}
    if file is not None:
        take_reopen_signal()


def take_reopen_signal() -> None:
    """SIGUSR1 opens the log file anew from now on, and ends no process that has none.

    For a server, which is told to reload by whoever manages services or rotates logs and does not
    know where it logs. Does nothing but in the main thread.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(REOPEN_SIGNAL, _reopen)


def stop() -> None:
    """Ends the stream: neither language says anything until it is started again."""
    start(Levels("off"))
    top = _disconnected()
    top.propagate = True
    top.setLevel(logging.NOTSET)


def _disconnected() -> logging.Logger:
    """The logger above those of all rooms, without the stream."""
    top = logging.getLogger(TOP)
    for handler in list(top.handlers):
        if isinstance(handler, StreamHandler):
            top.removeHandler(handler)
    return top


def _connect(levels: Levels) -> None:
    """Makes the loggers of all rooms write to the stream, and to nothing of Python's above it."""
    top = _disconnected()
    top.addHandler(StreamHandler())
    top.propagate = False
    top.setLevel(_NUMBERS[levels.level])
    for room in PYTHON_ROOMS:
        word = levels.rooms.get(room)
        level = logging.NOTSET if word is None else _NUMBERS[word]
        logging.getLogger(f"{TOP}.{room}").setLevel(level)


def _reopen(_signal: int, _frame: FrameType | None) -> None:
    try:
        _native.reopen_log()
    except _native.NativeError as error:
        _LOG.warning("log file not opened anew", reason=from_failure(str(error.args[0])).message)


class StreamHandler(logging.Handler):
    """Hands records to the stream, whose form, order and place are `crates/logs`'s."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record; what is wrong with one must not end the work that it tells of."""
        try:
            level, room = level_word(record.levelno), room_of(record.name)
            message, fields = _as_text(record.getMessage()), json.dumps(_fields(record))
            _native.write_log(level, room, message, fields)
        except Exception:
            self.handleError(record)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = dict(getattr(record, "fields", {}))
    if record.exc_info:
        fields["traceback"] = logging.Formatter().formatException(record.exc_info)
    return {name: _value(value) for name, value in fields.items()}


def _value(value: object) -> object:
    """A field's value: a number or a truth as it is, all else as text."""
    return value if isinstance(value, bool | int | float) else _as_text(value)


def _as_text(value: object) -> str:
    """`value` as UTF-8 has it: a name of a file may have bytes that are none."""
    text = os.fsdecode(value) if isinstance(value, bytes | os.PathLike) else str(value)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def level_word(number: int) -> str:
    """The level as lines have it: the coarsest that is not above `number`."""
    reached = (word for word, least in _NUMBERS.items() if word != "off" and number >= least)
    return next(reached, "trace")


def room_of(name: str) -> str:
    """The room of a logger: `farline.store.reader` is `store`."""
    return name.removeprefix(f"{TOP}.").partition(".")[0]
