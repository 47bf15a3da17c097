"""A glance at the sources before a copy: whether they are many small files."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable

GLANCE_S = 0.02
"""Longest time for it: less than a round trip on any path for which the answer matters."""

MANY_FILES = 256
"""From so many files on they are many; no more are looked at than four times as many."""

SMALL_BYTES = 1 << 20
"""Mean length below which they are small."""


def are_many_and_small(sources: Iterable[str], limit_s: float = GLANCE_S) -> bool:
    """Whether what is found first in the sources on this host is many files, and small ones.

    Nothing is said of what cannot be read: the copy itself does that.
    """
    until = time.monotonic() + limit_s
    folders = deque(sources)
    files = size = 0
    while folders and files < 4 * MANY_FILES and time.monotonic() < until:
        try:
            with os.scandir(folders.popleft()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        files += 1
                        size += entry.stat(follow_symlinks=False).st_size
                    if files >= 4 * MANY_FILES or time.monotonic() >= until:
                        break
        except OSError:
            continue
    return files >= MANY_FILES and size < files * SMALL_BYTES
