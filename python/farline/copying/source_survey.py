"""A glance at the sources before a copy: whether they are many small files."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

GLANCE_S = 0.02
"""Longest time for it: less than a round trip on any path for which the answer matters."""

MANY_FILES = 256
"""From so many files on they are many; no more are looked at than four times as many."""

SMALL_BYTES = 1 << 20
"""Mean length below which they are small."""


@dataclass(frozen=True, slots=True)
class Glance:
    """What was found first in the sources."""

    files: int
    size_bytes: int

    @property
    def file_bytes(self) -> float | None:
        """Mean size; None of no file."""
        return self.size_bytes / self.files if self.files else None


def are_many_and_small(sources: Iterable[str], limit_s: float = GLANCE_S) -> bool:
    """Whether what is found first in the sources on this host is many files, and small ones."""
    found = glance(sources, limit_s)
    return found.files >= MANY_FILES and found.size_bytes < found.files * SMALL_BYTES


def glance(sources: Iterable[str], limit_s: float = GLANCE_S) -> Glance:
    """Files that are found first in the sources on this host; no more than 1024 are looked at.

    Nothing is said of what cannot be read: the copy itself does that.
    """
    until = time.monotonic() + limit_s
    folders = deque(sources)
    files = size = 0
    while folders and files < 4 * MANY_FILES and time.monotonic() < until:
        folder = folders.popleft()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        files += 1
                        size += entry.stat(follow_symlinks=False).st_size
                    if files >= 4 * MANY_FILES or time.monotonic() >= until:
                        break
        except NotADirectoryError:
            files, size = files + 1, size + _size_of(folder)
        except OSError:
            continue
    return Glance(files, size)


def _size_of(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
