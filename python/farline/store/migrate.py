"""What of a store an older farline wrote, and bringing it to the present version.

Every version is read as it is, so nothing has to be migrated before it is used. A migration writes
once what would be upgraded at each reading. It is a merge (`compact`): new files beside the old
ones, one rename that counts, the old ones gone after it; killed anywhere it is begun again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farline.errors import FarlineError, VersionError
from farline.store.compact import (
    MAX_SEGMENT_RUNS,
    Parts,
    clean,
    write_segment,
)
from farline.store.disk import locked
from farline.store.layout import Layout, View, take_view
from farline.store.parquet_files import fresh_samples
from farline.store.receipts import settle_receipts
from farline.store.segments import segment_samples, segment_tables
from farline.store.upgrade import FORMAT_VERSION

if TYPE_CHECKING:
    from farline.store.entry import Fresh
    from farline.store.layout import Segment

_BROKEN = (OSError, ValueError, KeyError, TypeError, FarlineError)


@dataclass(frozen=True)
class StoreSurvey:
    """What a store holds."""

    runs: dict[int, int] = field(default_factory=dict)
    """Runs by the version of their files."""
    old_files: int = 0
    """Files that a migration would write anew."""
    damaged: tuple[str, ...] = ()
    """A line for each file that cannot be read."""
    newer: tuple[str, ...] = ()
    """A line for each file of a newer farline."""

    @property
    def is_sound(self) -> bool:
        """Whether all of it can be read."""
        return not self.damaged and not self.newer

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema": 1, "format": FORMAT_VERSION,
            "runs": {str(version): count for version, count in sorted(self.runs.items())},
            "old_files": self.old_files, "damaged": list(self.damaged), "newer": list(self.newer),
        }  # fmt: skip


def survey(layout: Layout) -> StoreSurvey:
    """Reads every run and every sample, and changes nothing."""
    with locked(layout.use_lock, exclusive=False):
        view = take_view(layout)
        runs: Counter[int] = Counter(item.version for item in view.fresh)
        for segment in view.segments:
            runs[segment.version] += segment.runs
        newer = set(view.newer)
        damaged = [line for line in view.damaged if line not in newer]
        damaged += _unreadable(layout, view)
    old = [*filter(_is_old, view.fresh), *filter(_is_old, view.segments)]
    return StoreSurvey(dict(runs), len(old), tuple(damaged), view.newer)


def _is_old(item: Fresh | Segment) -> bool:
    return item.version < FORMAT_VERSION


def _unreadable(layout: Layout, view: View) -> Iterator[str]:
    """What can be listed, and not be read to its end."""
    for item in view.fresh:
        yield from _tried(str(item.path), lambda item=item: fresh_samples(item))  # type: ignore[misc]
    for segment in view.segments:

        def read(segment: Segment = segment) -> None:
            for table in (segment_tables, segment_samples):
                for _ in table(layout, segment):
                    pass

        yield from _tried(str(layout.runs / f"{segment.name}.parquet"), read)


def _tried(what: str, read: Callable[[], object]) -> Iterator[str]:
    try:
        read()
    except _BROKEN as error:
        text = error.message if isinstance(error, FarlineError) else f"{what}: damaged: {error}"
        yield " ".join(text.split())


def migrate(layout: Layout) -> int:
    """Writes what older versions wrote as the present one does, once no other process merges; how
    many runs that were.

    Raises:
        VersionError: when a newer farline wrote some of it: what that replaces is not known.
        SystemFailure: when the disk refuses, or a file cannot be read.
    """
    with locked(layout.merge_lock, exclusive=True):
        with locked(layout.use_lock, exclusive=False):
            view = take_view(layout)
        if view.newer:
            raise VersionError(view.newer[0])
        superseded, runs = set(view.superseded), 0
        for parts in _portions(view):
            superseded.update(parts.names)
            write_segment(layout, parts, sorted(superseded))
            runs += parts.runs
        settle_receipts(layout)
        clean(layout, superseded)
        return runs


def _portions(view: View) -> Iterator[Parts]:
    """Old files in portions that segments hold."""
    fresh = [item for item in view.fresh if _is_old(item)]
    for start in range(0, len(fresh), MAX_SEGMENT_RUNS):
        yield Parts(tuple(fresh[start : start + MAX_SEGMENT_RUNS]), ())
    for segment in filter(_is_old, view.segments):
        yield Parts((), (segment,))
