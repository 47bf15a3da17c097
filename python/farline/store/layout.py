"""Which files count: the names in a store, and a consistent view of them.

A segment's metadata lists what it replaces. Files are added at any time, but removed only under
the exclusive lock `use.lock`; a view is taken under the shared lock, fresh files first, segments
after. So whatever moved from a fresh file into a segment meanwhile is seen in at least one of the
two places, and the list of replaced files leaves it in exactly one. Spooled runs are fresh files in
another shape: all of this holds for them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from farline.errors import SystemFailure, VersionError
from farline.spec.json_text import read_json
from farline.store import left_out
from farline.store.default_folder import default_path as default_path
from farline.store.disk import locked, system_failures
from farline.store.entry import Fresh
from farline.store.parquet_files import read_footer, read_fresh
from farline.store.spool import SUFFIX, read_spooled

if TYPE_CHECKING:
    import pyarrow as pa


REPLACES_KEY = b"farline.replaces"
_MISSHAPEN = (ValueError, TypeError, KeyError, AttributeError, OverflowError)

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
    def spool(self) -> Path:
        """Single runs as JSON, kept by who had no time for more."""
        return self.root / "spool"

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
        return LINKS.fresh_folder(self)

    @property
    def links(self) -> Path:
        """Samples of links, of merged runs."""
        return LINKS.folder(self)

    @property
    def receipts(self) -> Path:
        """What became of each name of a copy, a file per run."""
        return self.root / "receipts"

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
    def paths(self) -> Path:
        """What was chosen for paths, and what of them is forgotten."""
        return self.root / "paths"

    @property
    def file_systems(self) -> Path:
        """Profiles of file systems."""
        return self.root / "file-systems"

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
        with system_failures(
            f"creating the store {self.root} failed", "choose another folder with --store"
        ):
            for folder in (
                *(self.fresh, self.spool, self.runs, self.samples, self.receipts),
                *(side.fresh_folder(self) for side in SIDES),
                *(side.folder(self) for side in SIDES),
                *(self.temp, self.campaigns, self.transfers),
            ):
                folder.mkdir(parents=True, exist_ok=True)
        with locked(self.use_lock, exclusive=True, wait=False):
            pass


@dataclass(frozen=True, slots=True)
class Side:
    """Samples of another kind that only some runs have, in files beside those of the runs."""

    name: str

    def fresh_folder(self, layout: Layout) -> Path:
        """Of the runs in `fresh` that had any."""
        return layout.root / f"fresh-{self.name}"

    def folder(self, layout: Layout) -> Path:
        """Of merged runs."""
        return layout.root / self.name

    def fresh_path(self, layout: Layout, run_id: str) -> Path:
        """Where those of a fresh run are, if it has any."""
        return self.fresh_folder(layout) / f"{run_id}.parquet"

    def path(self, layout: Layout, segment: Segment) -> Path:
        """Where those of a segment's runs are, if they have any."""
        return self.folder(layout) / f"{segment.name}.parquet"


LINKS = Side("links")
"""Samples of the links of an emulated path."""
MOVER = Side("mover")
"""Samples of the files of a copy."""
SIDES = (LINKS, MOVER)


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
    rows: pa.Table
    """A row of the runs table for each fresh run."""
    segments: tuple[Segment, ...]
    superseded: frozenset[str]
    """Replaced files that still exist, as `fresh/NAME`, `spool/NAME` and `runs/NAME`."""
    damaged: tuple[str, ...] = field(default=())
    """One line per file that cannot be read, those of a newer farline included."""
    newer: tuple[str, ...] = field(default=())
    """Of them, those of a newer farline: what they replace is not known."""


def take_view(layout: Layout) -> View:
    """Lists the store. The caller holds the shared lock."""
    damaged: list[str] = []
    newer: list[str] = []
    # The order matters: see the head of this file.
    fresh_names = [f"fresh/{name}" for name in _names(layout.fresh)]
    fresh_names += [f"spool/{name}" for name in _spooled_names(layout)]
    run_names = _names(layout.runs)
    segments = _readable(damaged, newer, (lambda name: _segment(layout, name)), run_names)
    replaced = frozenset(name for segment in segments for name in segment.replaces)
    present = frozenset([*fresh_names, *(f"runs/{name}" for name in run_names)])
    wanted = [name for name in fresh_names if name not in replaced]

    def read(name: str) -> Fresh:
        return _fresh(layout.root / name)

    fresh, rows = _sound(damaged, _readable(damaged, newer, read, wanted))
    return View(
        fresh=tuple(fresh),
        rows=rows,
        segments=tuple(s for s in segments if f"runs/{s.name}.parquet" not in replaced),
        superseded=replaced & present,
        damaged=_noted(damaged),
        newer=tuple(newer),
    )


def _noted(damaged: list[str]) -> tuple[str, ...]:
    for line in damaged:
        left_out.note(line)
    return tuple(damaged)


def _sound(damaged: list[str], fresh: list[Fresh]) -> tuple[list[Fresh], pa.Table]:
    """Those whose entries make rows, and the rows.

    One entry of another shape would keep all others back.
    """
    from farline.store.columns import runs_table

    try:
        return fresh, runs_table(item.entry for item in fresh)
    except _MISSHAPEN:
        sound = [item for item in fresh if not _is_misshapen(damaged, item)]
        return sound, runs_table(item.entry for item in sound)


def _is_misshapen(damaged: list[str], item: Fresh) -> bool:
    from farline.store.columns import runs_table

    try:
        runs_table([item.entry])
    except _MISSHAPEN as error:
        damaged.append(f"{item.path}: damaged: {error!r}")
        return True
    return False


def _names(folder: Path, suffix: str = ".parquet") -> list[str]:
    with system_failures(f"listing {folder}"):
        return sorted(path.name for path in folder.iterdir() if path.suffix == suffix)


def _spooled_names(layout: Layout) -> list[str]:
    """None in a store that an older version made."""
    return _names(layout.spool, SUFFIX) if layout.spool.exists() else []


def _fresh(path: Path) -> Fresh:
    return read_spooled(path) if path.suffix == SUFFIX else read_fresh(path)


def _readable(
    damaged: list[str], newer: list[str], read: Callable[[str], _Item], names: Iterable[str]
) -> list[_Item]:
    """What can be read; one line into `damaged` for each that cannot, or not yet."""
    items: list[_Item] = []
    for name in names:
        try:
            items.append(read(name))
        except SystemFailure as failure:
            damaged.append(failure.message)
        except VersionError as failure:
            damaged.append(failure.message)
            newer.append(failure.message)
    return items


def _segment(layout: Layout, name: str) -> Segment:
    path = layout.runs / name
    end = read_footer(path)
    try:
        replaces = frozenset(read_json(end.metadata[REPLACES_KEY]))
    except (KeyError, ValueError, TypeError) as error:
        raise SystemFailure(f"{path}: damaged: {error!r}") from error
    return Segment(path.stem, end.version, end.rows, replaces)
