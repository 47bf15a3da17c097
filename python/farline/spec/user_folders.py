"""Folders of the user who runs farline, who may have no home folder: in containers, say.

Without one, what may be absent is absent; what needs a folder says what to set.
"""

from __future__ import annotations

import os
from pathlib import Path

from farline.errors import UsageError


def home_folder() -> Path | None:
    """The user's home folder; None where neither HOME nor the system's list of users says it."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def user_folder(variable: str, below: str) -> Path | None:
    """The folder that `variable` names, else `below` in the home folder; None without either."""
    if named := os.environ.get(variable):
        return Path(named)
    home = home_folder()
    return None if home is None else home / below


def needed(folder: Path | None, what: str, instead: str) -> Path:
    """`folder`, which `what` needs.

    Raises:
        UsageError: when there is none: HOME would lead to one, and so would `instead`.
    """
    if folder is None:
        raise UsageError(f"{what}: this user has no home folder; set HOME or {instead}")
    return folder


def expanded(path: str | Path) -> Path:
    """`path` with the home folder in the place of a `~`.

    Raises:
        UsageError: when that folder is not known.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(
            f"{path}: the home folder is unknown: HOME is not set, or there is no such user"
        ) from None
