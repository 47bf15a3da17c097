"""What tickets rest on: the server's folder, what one for files allows, how long one lasts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import SystemFailure, UsageError

if TYPE_CHECKING:
    from farline.spec._types import Scope

TICKET_LIFETIME_S = 86_400.0
"""A ticket lasts a day unless said otherwise."""


def file_scope(may: str, root: Path) -> Scope:
    """What a ticket allows that is for the files below `root`: `may` is "read" or "write".

    Raises:
        UsageError: when the name of `root` is not UTF-8, which a ticket cannot hold.
    """
    try:
        str(root).encode()
    except UnicodeEncodeError:
        raise UsageError(f"{root!r} is not valid UTF-8") from None
    if may == "write":
        return {"may": "write", "root": str(root)}
    return {"may": "read", "root": str(root)}


def made_state_dir(folder: Path) -> Path:
    """The folder of a server's key, made for this user alone if it is not there.

    Raises:
        SystemFailure: when it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SystemFailure(f"{folder}: {error.strerror}") from None
    return folder
