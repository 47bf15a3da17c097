"""A server's folder that goes with its process: its secret, and what it signs, die together.

A server for one copy must not leave tickets behind that a standing server of the same user would
take: it signs with a secret of its own.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from farline.errors import SystemFailure

_PREFIX = "farline-server-"
_YOUNG_S = 60.0
"""A folder younger than this may not be locked yet by who made it."""

TICKET_S = 7 * 86_400.0
"""Such a ticket dies with its server; this bounds it where the server lives on for long."""


@contextmanager
def temporary_state() -> Iterator[Path]:
    """A folder that only this user may enter, removed at the end of the block.

    Those that killed processes left go as well.

    Raises:
        SystemFailure: when there is no room for it.
    """
    # The run-time folder is in memory and gone after a logout, even if this process is killed.
    run_time = os.environ.get("XDG_RUNTIME_DIR")
    place = Path(run_time) if run_time and os.access(run_time, os.W_OK | os.X_OK) else None
    place = place or Path(os.environ.get("TMPDIR") or "/tmp")
    # Not by tempfile, whose import takes longer than a small copy's first bytes.
    here = _here()
    folder = place / f"{_PREFIX}{os.getpid()}-{here}-{os.urandom(8).hex()}"
    try:
        folder.mkdir(mode=0o700)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise SystemFailure(f"{folder}: {error.strerror}") from None
    with suppress(OSError):  # a file system without locks: there nobody else gets one either
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        remove_folder(folder)
        os.close(lock)
        if here:
            _remove_abandoned(place, here)


def _remove_abandoned(place: Path, here: str) -> None:
    """Removes this user's folders in `place` whose processes have ended without doing so.

    The process must be gone, by its number, and have locked nothing: a number may be used again.
    Other hosts and containers may share `place`: theirs stay, as do folders without a name of this
    form.
    """
    form = re.compile(rf"{_PREFIX}([0-9]+)-{re.escape(here)}-[0-9a-f]{{16}}")
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if found := form.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path), found[1])


def _here() -> str:
    """Where numbers of processes mean the same: since this start, in these containers' view."""
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")[:8]
        return f"{start}.{Path('/proc/self/ns/pid').stat().st_ino:x}"
    except OSError:
        return ""


def _remove_if_abandoned(folder: Path, process: str) -> None:
    facts = folder.lstat()
    is_ours = facts.st_uid == os.geteuid()
    if not is_ours or time.time() - facts.st_mtime < _YOUNG_S or Path("/proc", process).exists():
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_folder(folder)
    finally:
        os.close(opened)


def remove_folder(folder: Path) -> None:
    """Removes a folder and what is in it, as far as that can be done; follows no link.

    In the place of `shutil.rmtree`, whose import takes longer than all of this.
    """
    for place, folders, names in os.walk(folder, topdown=False):
        for name in (*names, *folders):
            path = Path(place, name)
            with suppress(OSError):
                # A link to a folder counts among the folders.
                (path.unlink if path.is_symlink() or not path.is_dir() else path.rmdir)()
    with suppress(OSError):
        folder.rmdir()
