"""Trees of files to copy, and whether two of them are alike."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any


def make_tree(folder: Path) -> Path:
    """A tree with what copies have to keep: names, modes, times, links, holes, empty folders."""
    (folder / "sub" / "deeper").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "large").write_bytes(os.urandom(3_000_001))
    (folder / "nothing").touch()
    for number in range(40):
        (folder / "sub" / f"small {number}").write_bytes(os.urandom(97 * number))
    for name in (b"\xff\xfe", "grün".encode(), b"new\nline", b"back\\slash"):
        (folder / "sub" / "deeper" / os.fsdecode(name)).write_bytes(name)
    (folder / "link").symlink_to("sub/deeper")
    (folder / "dangling").symlink_to("nowhere")
    with (folder / "holes").open("wb") as file:
        file.seek(5 << 20)
        file.write(b"end")
    (folder / "large").chmod(0o640)
    (folder / "sub").chmod(0o750)
    for path in (folder / "large", folder / "sub" / "small 1", folder / "sub"):
        os.utime(path, ns=(1_600_000_000_123_456_789, 1_500_000_000_987_654_321))
    return folder


def shape(folder: Path) -> dict[str, tuple[Any, ...]]:
    """What a copy must keep of each name below `folder`."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in sorted(folder.rglob("*")):
        name, facts = str(path.relative_to(folder)), path.lstat()
        if stat.S_ISLNK(facts.st_mode):
            found[name] = ("link", str(path.readlink()))
        elif stat.S_ISDIR(facts.st_mode):
            found[name] = ("folder", stat.S_IMODE(facts.st_mode), facts.st_mtime_ns)
        else:
            found[name] = (path.read_bytes(), stat.S_IMODE(facts.st_mode), facts.st_mtime_ns)
    return found
