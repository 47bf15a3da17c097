"""What the disks at the ends of a copy reach, by profiles of their file systems in the store.

An end of a copy is one process: the cap of a process holds for it. The end on this host is looked
up by its mount, one on another host by its name and the closest mount above its path that a profile
knows. Imports next to nothing: a small copy asks this too.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from farline.copying.locations import SshHost, ThisHost
from farline.spec.units import rate_human
from farline.store.file_systems import (
    FileSystemProfile,
    profile_below,
    profile_path,
    read_profile,
)
from farline.tools.mounts import mount_of

if TYPE_CHECKING:
    from farline.copying.locations import Endpoints, Host

FOLDER = "file-systems"
NEAR = 0.8
"""Share of a limit from which a copy is said to be near it."""


@dataclass(frozen=True, slots=True)
class StorageLimit:
    """What one end of a copy reaches at most: `role` is `sender` or `receiver`."""

    role: str
    rate_bps: float
    profile: FileSystemProfile

    @property
    def text(self) -> str:
        """One phrase with the rate and where it is from."""
        caps = self.profile.caps("read" if self.role == "sender" else "write")
        assert caps is not None
        does = "reads" if self.role == "sender" else "writes"
        total = rate_human(caps.most_bps)
        if caps.most_bps <= self.rate_bps:
            return f"disk {does} up to {total} by {self.profile.name}"
        each = rate_human(self.rate_bps)
        return f"disk {does} up to {each} by one process, {total} in all, by {self.profile.name}"


def limits_of(ends: Endpoints, store: Path) -> list[StorageLimit]:
    """The limits that are known of a copy's ends; a profile that cannot be read is none."""
    found = [*_limit("sender", ends.source_host, ends.sources[:1], store / FOLDER)]
    found += _limit("receiver", ends.destination_host, (ends.destination,), store / FOLDER)
    return found


def _limit(role: str, host: Host, paths: tuple[str, ...], folder: Path) -> Iterator[StorageLimit]:
    profile = _profile(host, paths[0], folder) if paths else None
    caps = None if profile is None else profile.caps("read" if role == "sender" else "write")
    if profile is not None and caps is not None:
        yield StorageLimit(role, caps.of_processes(1), profile)


def _profile(host: Host, path: str, folder: Path) -> FileSystemProfile | None:
    if isinstance(host, ThisHost):
        mount = mount_of(Path(path))
        if mount is None:
            return None
        return read_profile(profile_path(folder, socket.gethostname(), mount.point))
    if isinstance(host, SshHost):
        return profile_below(folder, host.host, path)
    return None


def near_limits(limits: list[StorageLimit], rate_bps: float, limit: str) -> list[str]:
    """Lines on the limits that a copy at this rate is near, or that its verdict names."""
    return [
        one.text for one in limits if limit == f"{one.role}-disk" or rate_bps >= NEAR * one.rate_bps
    ]
