"""Pairs of a copy between nodes with disks of their own: each has names that no other can carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.cluster.crew import Crew, Lane

if TYPE_CHECKING:
    from farline.cluster.changes import Changes
    from farline.cluster.parts_queue import PartsQueue
    from farline.cluster.plan import Part
    from farline.errors import FarlineError
    from farline.tools import StopQuestion


@dataclass(eq=False, repr=False)
class Duty:
    """What one pair is for; where it may be any node of an end that shares its files, the next one
    takes over when a node fails."""

    number: int
    pairs: list[tuple[int, int]]
    """Numbers of a source node and one of the destination; the first is used, then the next."""
    lane: Lane | None = None
    error: FarlineError | None = None
    """Why it was not done."""
    record: Mapping[str, Any] | None = None
    """Of the look."""
    found: Path | None = None
    """What the look found, a line for each name."""
    parts: list[Part] = field(default_factory=list)
    """What is to be copied."""

    def give_up(self, error: FarlineError) -> None:
        """Its pair has failed."""
        self.error = error
        if self.lane is not None:
            self.lane.sessions.close()
        self.lane = None


class OwnCrew(Crew):
    """One pair, and the parts that no other can carry."""

    def __init__(
        self, lane: Lane, queue: PartsQueue, documented: Callable[[Part], Mapping[str, Any]],
        changes: Changes, should_stop: StopQuestion, receipts: Callable[[], Path],
    ) -> None:  # fmt: skip
        self.written: list[Path] = []
        self._receipts = receipts
        super().__init__([lane], queue, documented, changes, should_stop)

    def _receipt(self, part: Part) -> Path:
        self.written.append(self._receipts())
        return self.written[-1]

    def _given_up(self, lane: Lane, error: FarlineError) -> str:
        return f"{lane.name} failed: {error.message}"
