"""What a run needs to know of the emulated path under it; who emulates it is not known here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from farline.spec._types import EmulatedPath


@dataclass(frozen=True)
class PathSeen:
    """The path a run went over, with its stamp, and the samples of its links meanwhile."""

    path: EmulatedPath
    links: Mapping[str, Any]
    """One array per column of `LinkSamples`."""


class PathWatch(Protocol):
    """Watches the emulated path of one run after the other."""

    def start(self) -> object:
        """Marks where a run begins; what it gives is for `finish`."""

    def finish(self, mark: Any, server_address: str) -> PathSeen | None:
        """The path since `mark`, towards `server_address` (`host:port`); None if none led there."""
