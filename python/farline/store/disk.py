"""Files that are either whole under their name or not there; locks between processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from farline.errors import SystemFailure

STALE_TEMP_S = 3600.0
"""Age after which a file in tmp/ has no living writer any more."""


@contextlib.contextmanager
def system_failures(doing: str, advice: str = "") -> Iterator[None]:
    """Turns what the kernel refuses into a line: what was being done, why not, what to do."""
    try:
        yield
    except OSError as error:
        what_to_do = f"; {advice}" if advice else ""
        raise SystemFailure(f"{doing}: {error.strerror or error}{what_to_do}") from error


def make_folder(folder: Path) -> None:
    """Makes a folder that stores of older versions have not."""
    with system_failures(f"making {folder}"):
        folder.mkdir(exist_ok=True)


def publish(temp_dir: Path, target: Path, write: Callable[[BinaryIO], None]) -> None:
    """Writes `target` whole and durable, or not at all.

    The bytes go to a file in `temp_dir` (same file system), are synced, and get their name by
    one rename, which is synced too: after this returns, a power cut leaves the file in place.
    """
    temp = temp_dir / f"{target.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    with system_failures(f"writing {target}"):
        try:
            with temp.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            temp.rename(target)
        except BaseException:
            temp.unlink(missing_ok=True)
            raise
        sync_directory(target.parent)


def publish_text(temp_dir: Path, target: Path, text: str) -> None:
    """The same of a text."""

    def write(file: BinaryIO) -> None:
        file.write(text.encode())

    publish(temp_dir, target, write)


def sync_directory(directory: Path) -> None:
    """Makes the names in `directory` durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_stale(temp_dir: Path, older_than_s: float = STALE_TEMP_S) -> int:
    """Removes temporary files whose writers are long gone; how many there were."""
    limit, removed = time.time() - older_than_s, 0
    for path in temp_dir.glob("*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < limit:
                path.unlink()
                removed += 1
    return removed


@contextlib.contextmanager
def locked(path: Path, *, exclusive: bool, wait: bool = True) -> Iterator[bool]:
    """Holds the lock file `path` while the block runs; gives whether the lock was got.

    With `wait` false the block runs at once and must look at what it was given.
    The kernel drops the lock when the process dies.
    """
    mode = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    with system_failures(f"locking {path}"):
        handle = _open_lock(path, exclusive)
    try:
        yield _try_lock(handle, mode if wait else mode | fcntl.LOCK_NB)
    finally:
        os.close(handle)


def _open_lock(path: Path, exclusive: bool) -> int:
    if exclusive:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    # A reader may have no right to write in the store.
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _try_lock(handle: int, mode: int) -> bool:
    try:
        fcntl.flock(handle, mode)
    except BlockingIOError:
        return False
    return True
