"""A server's folder that goes with its process: its secret, and what it signs, die together.

A server for one copy must not leave tickets behind that a standing server of the same user would
take: it signs with a secret of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from farline.errors import SystemFailure

TICKET_S = 7 * 86_400.0
"""Such a ticket dies with its server; this bounds it where the server lives on for long."""


@contextmanager
def temporary_state() -> Iterator[Path]:
    """A folder that only this user may enter, removed at the end of the block.

    Raises:
        SystemFailure: when there is no room for it.
    """
    # The run-time folder is in memory and gone after a logout, even if this process is killed.
    run_time = os.environ.get("XDG_RUNTIME_DIR")
    place = Path(run_time) if run_time and os.access(run_time, os.W_OK | os.X_OK) else None
    place = place or Path(os.environ.get("TMPDIR") or "/tmp")
    # Not by tempfile, whose import takes longer than a small copy's first bytes.
    folder = place / f"farline-server-{os.getpid()}-{os.urandom(8).hex()}"
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise SystemFailure(f"{folder}: {error.strerror}") from None
    try:
        yield folder
    finally:
        remove_folder(folder)


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
