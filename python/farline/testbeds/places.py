"""Folders and files that several processes of one user share: whose they are, who may write now."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farline.errors import SystemFailure


def make_own(folder: Path) -> None:
    """Makes a folder, or checks that the one there can be trusted.

    What stands in it is acted on, by root with root's rights: nobody else may have written it.

    Raises:
        SystemFailure: when it cannot be made, is another user's, or others may write in it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.lstat()
    except OSError as error:
        raise SystemFailure(f"testbed: {folder}: {error.strerror}") from None
    if not stat.S_ISDIR(facts.st_mode):
        raise SystemFailure(f"testbed: {folder}: must be a folder, not a link to one")
    if facts.st_uid != os.geteuid():
        raise SystemFailure(f"testbed: {folder}: must belong to this user, not to {facts.st_uid}")
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SystemFailure(
            f"testbed: {folder}: its group or others can write to it; use a folder that only you "
            "can write to"
        )


@contextmanager
def exclusive(file: Path) -> Iterator[None]:
    """Waits until nobody else holds the lock in `file`, and holds it within the block.

    Raises:
        SystemFailure: when the file cannot be made.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        lock = os.open(file, flags, 0o600)
    except OSError as error:
        raise SystemFailure(f"testbed: {file}: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def write_json(path: Path, document: Any) -> None:
    """Writes a document whole or not at all."""
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(document), encoding="utf-8")
    scratch.rename(path)
