"""Where the user's own store is, for those who must not import what a store needs."""

from __future__ import annotations

import os
from pathlib import Path

from farline.spec.user_folders import expanded, needed, user_folder


def usual_path() -> Path | None:
    """Where runs are kept unless said otherwise: `$FARLINE_STORE`, else under `$XDG_DATA_HOME`.

    None for a user without a home folder where neither is set.
    """
    if named := os.environ.get("FARLINE_STORE"):
        return expanded(named)
    data = user_folder("XDG_DATA_HOME", ".local/share")
    return None if data is None else data / "farline" / "store"


def default_path() -> Path:
    """The same where runs have to be kept or found.

    Raises:
        UsageError: when there is no such folder.
    """
    return needed(usual_path(), "store", "FARLINE_STORE, or use --store")
