"""Which files count: the names in a store, and a consistent view of them.

A segment's metadata lists what it replaces. Files are added at any time, but removed only under
the exclusive lock `use.lock`; a view is taken under the shared lock, fresh files first, segments
after. So whatever moved from a fresh file into a segment meanwhile is seen in at least one of the
two places, and the list of replaced files leaves it in exactly one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from farline.errors import SystemFailure
from farline.store.disk import locked, system_failures
from farline.store.entry import Fresh, read_footer, read_fresh

REPLACES_KEY = b"farline.replaces"

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Layout:
    """Names inside a store."""

    root: Path

    @property
    def fresh(self) -> Path:
        """Files of single runs."""
        return self.root / "fresh"

    @property
    def runs(self) -> Path:
        """Rows of merged runs."""
        return self.root / "runs"

    @property
    def samples(self) -> Path:
        """Samples of merged runs."""
        return self.root / "samples"

    @property
    def fresh_links(self) -> Path:
        """Samples of links, of the runs in `fresh` that had any."""
        return self.root / "fresh-links"

    @property
    def links(self) -> Path:
        """Samples of links, of merged runs."""
        return self.root / "links"

    @property
    def temp(self) -> Path:
        """Files being written."""
        return self.root / "tmp"

    @property
    def campaigns(self) -> Path:
        """Plans of campaigns."""
        return self.root / "campaigns"

    @property
    def transfers(self) -> Path:
        """Transfers of logs that were taken in."""
        return self.root / "transfers"

    @property
    def use_lock(self) -> Path:
        """Held shared by readers, exclusively by who deletes."""
        return self.root / "use.lock"

    @property
    def merge_lock(self) -> Path:
        """Held by the one process that merges."""
        return self.root / "merge.lock"

    @property
    def transfers_lock(self) -> Path:
        """Held by the one process that takes in logs."""
        return self.root / "transfers.lock"

    def create(self) -> None:
        """Makes what is not there yet."""
        with system_failures(f"making the store {self.root}"):
            for folder in (
                *(self.fresh, self.fresh_links, self.runs, self.samples, self.links),
                *(self.temp, self.campaigns, self.transfers),
            ):
                folder.mkdir(parents=True, exist_ok=True)
        with locked(self.use_lock, exclusive=True, wait=False):
            pass


@dataclass(frozen=True, slots=True)
class Segment:
    """Many runs in two files of the same name."""

    name: str
    version: int
    runs: int
    replaces: frozenset[str]


@dataclass(frozen=True, slots=True)
class View:
    """What counts at one moment. Valid while the shared lock is held."""

    fresh: tuple[Fresh, ...]
    segments: tuple[Segment, ...]
    superseded: frozenset[str]
    """Replaced files that still exist, as `fresh/NAME` and `runs/NAME`."""
    damaged: tuple[str, ...] = field(default=())
    """One line per file that cannot be read."""


def fresh_links_path(layout: Layout, run_id: str) -> Path:
    """Where the samples of the links of a fresh run are, if it has any."""
    return layout.fresh_links / f"{run_id}.parquet"


def links_path(layout: Layout, segment: Segment) -> Path:
    """Where the samples of the links of a segment's runs are, if they have any."""
    return layout.links / f"{segment.name}.parquet"


def take_view(layout: Layout) -> View:
    """Lists the store. The caller holds the shared lock.

    Raises:
        VersionError: when a newer farline wrote one of the files.
    """
    damaged: list[str] = []
    # The order matters: see the head of this file.
    fresh_names = _names(layout.fresh)
    run_names = _names(layout.runs)
    segments = _readable(damaged, (lambda name: _segment(layout, name)), run_names)
    replaced = frozenset(name for segment in segments for name in segment.replaces)
    present = frozenset(
        [f"fresh/{name}" for name in fresh_names] + [f"runs/{name}" for name in run_names]
    )
    wanted = [name for name in fresh_names if f"fresh/{name}" not in replaced]
    return View(
        fresh=tuple(_readable(damaged, (lambda name: read_fresh(layout.fresh / name)), wanted)),
        segments=tuple(s for s in segments if f"runs/{s.name}.parquet" not in replaced),
        superseded=replaced & present,
        damaged=tuple(damaged),
    )


def _names(folder: Path) -> list[str]:
    with system_failures(f"listing {folder}"):
        return sorted(path.name for path in folder.iterdir() if path.suffix == ".parquet")


def _readable(
    damaged: list[str], read: Callable[[str], _Item], names: Iterable[str]
) -> list[_Item]:
    """What can be read; one line into `damaged` for each that cannot."""
    items: list[_Item] = []
    for name in names:
        try:
            items.append(read(name))
        except SystemFailure as failure:
            damaged.append(failure.message)
    return items


def _segment(layout: Layout, name: str) -> Segment:
    path = layout.runs / name
    end = read_footer(path)
    try:
        replaces = frozenset(json.loads(end.metadata[REPLACES_KEY]))
    except (KeyError, ValueError, TypeError) as error:
        raise SystemFailure(f"{path}: damaged: {error!r}") from error
    return Segment(path.stem, end.version, end.rows, replaces)
