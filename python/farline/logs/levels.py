"""Which levels are wanted of which rooms, as `--log-level` and `FARLINE_LOG` say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from farline.errors import UsageError

LEVELS = ("off", "error", "warn", "info", "debug", "trace")
"""From nothing to everything."""

RUST_ROOMS = (
    "spec",
    "sys",
    "proto",
    "transport",
    "mover",
    "session",
    "iperf3",
    "emulator",
    "logs",
)
"""Rust rooms."""

PYTHON_ROOMS = tuple(
    sorted(
        folder.name
        for folder in Path(__file__).resolve().parents[1].iterdir()
        if folder.is_dir() and not folder.name.startswith("_")
    )
)
"""Python rooms: the folders beside this one."""

ROOMS = tuple(sorted({*RUST_ROOMS, *PYTHON_ROOMS}))
"""Every name that a level may be asked of."""


@dataclass(frozen=True)
class Levels:
    """The level of all rooms, and levels of single rooms."""

    level: str = "info"
    rooms: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """As `parse_levels` reads it."""
        return ",".join((self.level, *(f"{room}={word}" for room, word in self.rooms.items())))


def parse_levels(text: str, source: str) -> Levels:
    """Levels from `debug`, `session=debug,mover=trace`, or both as in `info,mover=debug`.

    Where only rooms are named, all others have `warn`.

    Raises:
        UsageError: for an unknown level or room; it names `source` and what is allowed.
    """
    level, rooms = None, {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        room, equals, word = part.rpartition("=")
        _check_level(word.strip(), source)
        if not equals:
            level = word.strip()
            continue
        if room.strip() not in ROOMS:
            known = ", ".join(ROOMS)
            raise UsageError(f"{source}: unknown room {room.strip()!r}; allowed: {known}")
        rooms[room.strip()] = word.strip()
    return Levels(level or ("warn" if rooms else "info"), rooms)


def _check_level(word: str, source: str) -> None:
    if word not in LEVELS:
        allowed = f"{', '.join(LEVELS)}, or ROOM=LEVEL"
        raise UsageError(f"{source}: unknown level {word!r}; allowed: {allowed}")
