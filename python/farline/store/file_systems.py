"""Profiles of file systems: what reads and writes reach there, as `farline storage` measured it.

One small JSON file per host and mount, `STORE/file-systems/HOST--MOUNT.json`, the newest
measurement in place of the one before, so that a copy opens one file and imports nothing for it.
docs/design/store.md describes the document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError
from farline.spec.json_text import read_object

if TYPE_CHECKING:
    from pathlib import Path

PROFILE_SCHEMA = 1
KIND = "file-system-profile"
_NAME_BYTES = 200


@dataclass(frozen=True, slots=True)
class DirectionCaps:
    """What one direction reaches, bit/s. None is not known.

    `process_bps` is what one process reaches at most, `total_bps` all together; `best_bps` is the
    highest mean that was measured, with so many processes.
    """

    process_bps: float | None
    total_bps: float | None
    best_bps: float
    best_processes: int

    @property
    def most_bps(self) -> float:
        """The cap of all processes, or the most that was seen where none was reached."""
        return self.total_bps or self.best_bps

    def of_processes(self, count: int) -> float:
        """What `count` processes reach: min(n c, C)."""
        return min(self.most_bps, count * (self.process_bps or self.most_bps))


@dataclass(frozen=True, slots=True)
class FileSystemProfile:
    """A profile; everything that was measured is in `document`."""

    host: str
    mount: str
    file_system: str
    measured_s: float
    read: DirectionCaps | None
    write: DirectionCaps | None
    document: Mapping[str, Any]

    @property
    def name(self) -> str:
        """`the profile of /data (xfs, 26 Nov 2026)`."""
        day = datetime.fromtimestamp(self.measured_s, UTC)
        return f"the profile of {self.mount} ({self.file_system}, {day.day} {day:%b %Y})"

    def caps(self, action: str) -> DirectionCaps | None:
        """Of `read` or `write`."""
        return self.read if action == "read" else self.write


def profile_path(folder: Path, host: str, mount: str) -> Path:
    """Where the profile of a mount is kept, in the folder `file-systems` of a store."""
    return folder / f"{_safe(host)}--{_safe(mount)}.json"


def _safe(text: str) -> str:
    kept = "".join(c if c.isalnum() or c in ".-_" else f"%{ord(c):x}" for c in text)
    return kept[:_NAME_BYTES]


def read_profile(path: Path) -> FileSystemProfile | None:
    """A profile; None where there is none, or none that this version can read."""
    try:
        with path.open("rb") as file:
            return profile_of(read_object(file.read()))
    except (OSError, SpecError, ValueError, TypeError, KeyError):
        return None


def profile_of(document: Mapping[str, Any]) -> FileSystemProfile:
    """A profile from its document.

    Raises:
        ValueError: when it is none of this version, or a rate in it is none.
        KeyError: when it lacks something.
    """
    if document["kind"] != KIND or document["schema"] != PROFILE_SCHEMA:
        raise ValueError("another kind of document, or another version")
    caps = document["caps"]
    return FileSystemProfile(
        host=str(document["host"]),
        mount=str(document["mount"]),
        file_system=str(document["file_system"]),
        measured_s=float(document["measured_s"]),
        read=_caps(caps.get("read")),
        write=_caps(caps.get("write")),
        document=document,
    )


def _caps(found: Mapping[str, Any] | None) -> DirectionCaps | None:
    if found is None:
        return None
    each, total = (_rate(found[name] and found[name]["rate_bps"]) for name in ("process", "total"))
    best = _rate(found["best_bps"])
    if best is None:
        raise ValueError("no best rate")
    return DirectionCaps(each, total, best, int(found["best_processes"]))


def _rate(value: Any) -> float | None:
    if value is None:
        return None
    rate = float(value)
    if not 0 < rate < 1e18:
        raise ValueError(f"{value!r} is not a rate")
    return rate


def write_profile(folder: Path, temp: Path, document: Mapping[str, Any]) -> Path:
    """Keeps a profile in place of the one before, of which the caps of a direction stay that was
    not measured this time.

    Raises:
        SystemFailure: when the store refuses.
    """
    from farline.store.disk import make_folder, publish_text

    profile = profile_of(document)
    make_folder(folder)
    target = profile_path(folder, profile.host, profile.mount)
    if (before := read_profile(target)) is not None:
        caps = {**before.document["caps"], **{k: v for k, v in document["caps"].items() if v}}
        document = {**document, "caps": caps}
    publish_text(temp, target, json.dumps(document, indent=1))
    return target


def all_profiles(folder: Path) -> list[FileSystemProfile]:
    """Every profile of a store, by host and mount."""
    try:
        paths = sorted(folder.glob("*.json"))
    except OSError:
        return []
    return [found for path in paths if (found := read_profile(path)) is not None]


def profile_below(folder: Path, host: str, path: str) -> FileSystemProfile | None:
    """The profile of another host for an absolute path there: that of the closest mount above it.

    Where that host has mounted something else in between, it is the wrong one: only that host
    knows.
    """
    if not path.startswith("/"):
        return None
    wanted = PurePosixPath(path)
    found = [
        one
        for one in all_profiles(folder)
        if one.host.casefold() == host.casefold() and wanted.is_relative_to(one.mount)
    ]
    return max(found, key=lambda one: len(one.mount), default=None)
