"""Extended attributes and access control lists of files in tests."""

from __future__ import annotations

import os
import struct
from pathlib import Path


def access_list(owner: int) -> bytes:
    """One that gives one more user rights; `owner` are the owner's (linux/posix_acl_xattr.h)."""
    nobody = 0xFFFF_FFFF
    entries = ((1, owner, nobody), (2, 5, 1111), (4, 5, nobody), (16, 5, nobody), (32, 0, nobody))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def attributes(path: Path) -> dict[str, bytes]:
    """All extended attributes of a file."""
    return {name: os.getxattr(path, name) for name in sorted(os.listxattr(path))}
