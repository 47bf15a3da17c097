"""The files that are measured: in a folder of their own, which is removed whatever happens.

Nothing that was there before is opened but to be read on request. The folder is named
`.farline-storage-…`, holds a file that its process has locked, and nothing but files of known
names; a folder whose lock nobody holds was left by a process that was killed, and the next one to
measure there removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from farline.errors import SystemFailure, UsageError
from farline.spec.units import size_human

PREFIX = ".farline-storage-"
_FOLDER = re.compile(rf"{re.escape(PREFIX)}[0-9a-f]{{12}}")
_OWNER = "owner"
_FILE = re.compile(r"lane-\d{4}|shared")
LEAST_FREE = 0.05
"""Share of a file system that stays free."""


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """A folder for files that are measured."""

    path: Path

    def lane(self, number: int) -> Path:
        """The file of one thread."""
        return self.path / f"lane-{number:04d}"

    @property
    def shared(self) -> Path:
        """The file that threads share."""
        return self.path / "shared"

    def make(self, path: Path) -> None:
        """Makes an empty file.

        Raises:
            SystemFailure: when the file system refuses.
        """
        with _refusals(f"making {path}"):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


@contextmanager
def work_folder(place: Path) -> Iterator[WorkFolder]:
    """A folder in `place` while the block runs. What killed measurements left there goes first.

    Raises:
        UsageError: when `place` is no folder, or not there.
        SystemFailure: when nothing can be made there.
    """
    if not stat.S_ISDIR(mode_of(place, "folder; make it first, or name one that is there")):
        raise UsageError(f"{place}: not a folder; to measure reads of a file, use --read {place}")
    remove_left_behind(place)
    path = place / f"{PREFIX}{os.urandom(6).hex()}"
    with _refusals(f"making a folder in {place}"):
        path.mkdir(mode=0o700)
    try:
        lock = _lock(path / _OWNER)
        try:
            yield WorkFolder(path)
        finally:
            os.close(lock)
    finally:
        remove(path)


def mode_of(path: Path, what: str) -> int:
    """What is there, as of stat(2); `what` is what should be.

    Raises:
        UsageError: when nothing is.
        SystemFailure: when it cannot be looked at.
    """
    with _refusals(f"{path}"):
        try:
            return path.stat().st_mode
        except FileNotFoundError:
            raise UsageError(f"{path}: no such {what}") from None


def remove_left_behind(place: Path) -> list[Path]:
    """Removes folders that killed measurements left in `place`; those that could be."""
    gone = []
    with contextlib.suppress(OSError):
        for path in sorted(place.glob(f"{PREFIX}*")):
            if _FOLDER.fullmatch(path.name) and not path.is_symlink() and not _is_in_use(path):
                with contextlib.suppress(SystemFailure):
                    remove(path)
                    gone.append(path)
    return gone


def remove(path: Path) -> None:
    """Removes a folder with files of known names; another one in it keeps it. One that is gone is
    removed.

    Raises:
        SystemFailure: when something stays.
    """
    with _refusals(f"removing {path}"), contextlib.suppress(FileNotFoundError):
        for found in list(path.iterdir()):
            if found.name == _OWNER or _FILE.fullmatch(found.name):
                found.unlink(missing_ok=True)
        path.rmdir()


def check_room(place: Path, size_bytes: int) -> None:
    """Refuses to fill a file system.

    Raises:
        SystemFailure: when there is less room, or next to none would be left.
    """
    with _refusals(f"{place}"):
        found = os.statvfs(place)
    free = found.f_bavail * found.f_frsize
    spare = int(LEAST_FREE * found.f_blocks * found.f_frsize)
    if size_bytes > free - spare:
        raise SystemFailure(
            f"{place}: files of {size_human(size_bytes)} are needed and {size_human(free)} are "
            f"free, of which {size_human(spare)} are left alone; state a smaller --size"
        )


def _lock(path: Path) -> int:
    with _refusals(f"making {path}"):
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: see `_is_in_use`
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(handle, f"{os.uname().nodename} {os.getpid()}\n".encode())
    return handle


def _is_in_use(path: Path) -> bool:
    """Whether a process measures there.

    Where locks do not work or the folder is another host's, it counts as used while its process may
    live; so does a folder without an owner that is younger than the moment that making it takes.
    """
    owner = path / _OWNER
    try:
        handle = os.open(owner, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return not _is_old(path)
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        host, _, number = os.read(handle, 400).decode("utf-8", "replace").partition(" ")
    except OSError:
        return True
    finally:
        os.close(handle)
    if host != os.uname().nodename:
        return bool(host) and not _is_old(path, _DAY_S)
    return number.strip().isdigit() and Path("/proc", number.strip()).exists() and _is_farline(
        int(number)
    )  # fmt: skip


_DAY_S = 86_400.0
_MOMENT_S = 60.0


def _is_old(path: Path, age_s: float = _MOMENT_S) -> bool:
    import time

    try:
        return time.time() - path.stat().st_mtime > age_s
    except OSError:
        return False


def _is_farline(pid: int) -> bool:
    """Whether the process of that number may be ours: numbers are used again."""
    try:
        return b"farline" in Path("/proc", str(pid), "cmdline").read_bytes()
    except OSError:
        return False


@contextmanager
def _refusals(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SystemFailure(f"{doing}: {error.strerror or error}") from error
