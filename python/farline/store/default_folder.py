"""Where the user's own store is, for those who must not import what a store needs."""

from __future__ import annotations

import os
from pathlib import Path


def default_path() -> Path:
    """Where runs are kept unless said otherwise: `$FARLINE_STORE`, else under `$XDG_DATA_HOME`."""
    named = os.environ.get("FARLINE_STORE")
    if named:
        return Path(named).expanduser()
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "farline" / "store"
