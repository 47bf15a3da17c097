"""What is mounted where on this host (proc_pid_mountinfo(5))."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system. `options` are those of the mount and of the file system."""

    point: str
    kind: str
    """Its type, such as `xfs` or `nfs4`."""
    source: str
    """A device, or a server and what of it."""
    device: str
    """Numbers of its device, `8:1`; those of a file system without one begin with `0:`."""
    options: Mapping[str, str]


def mounts(text: str) -> list[Mount]:
    """Of the text of a mountinfo; lines of another shape are left out."""
    found = []
    for line in text.splitlines():
        head, dash, tail = line.partition(" - ")
        left, right = head.split(), tail.split()
        if not dash or len(left) < 6 or len(right) < 2:
            continue
        options = ",".join([left[5], *right[2:3]])
        pairs = (word.partition("=") for word in options.split(",") if word)
        found.append(
            Mount(_plain(left[4]), right[0], _plain(right[1]), left[2],
                  {name: value for name, _, value in pairs})
        )  # fmt: skip
    return found


def mount_of(path: Path, text: str | None = None) -> Mount | None:
    """What `path`, or the next folder above that is there, is on; None where nobody knows."""
    try:
        known = mounts(MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
                       if text is None else text)  # fmt: skip
        real = path.resolve()
    except (OSError, RuntimeError):
        return None
    best: Mount | None = None
    for one in known:
        # Of several at one place the last one is on top.
        if real.is_relative_to(one.point) and (best is None or len(one.point) >= len(best.point)):
            best = one
    return best


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
