"""The file that an RBUDP run sends: looked at before anything starts, since it says how much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from farline.errors import UsageError


def with_file_size(document: dict[str, Any]) -> dict[str, Any]:
    """The spec document, with the file's size as `total_bytes` where no length was stated.

    Raises:
        UsageError: when the file is not there, empty, or no regular file.
    """
    name = (document.get("rbudp") or {}).get("file")
    if name is None or document.get("direction", "forward") != "forward":
        return document
    size = _file_bytes(name)
    if document.get("total_bytes") is not None or document.get("duration_s") is not None:
        return document
    return {**document, "total_bytes": size}


def _file_bytes(name: str) -> int:
    path = Path(name)
    try:
        size = path.stat().st_size
        regular = path.is_file()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"-F {name}: {reason.lower()}; name a file to send") from None
    if not regular:
        raise UsageError(f"-F {name}: not a regular file; name a file to send")
    if size == 0:
        raise UsageError(f"-F {name}: the file is empty, so there is nothing to send")
    return size
