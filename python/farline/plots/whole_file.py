"""Files that are either whole under their name, or as they were before."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file, texts as UTF-8; where that fails nothing of it is left.

    A link is followed: what it leads to is written.

    Raises:
        OSError: when it cannot be written.
    """
    path = path.resolve() if path.is_symlink() else path
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
