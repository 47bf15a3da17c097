"""The store's door: append runs, merge files, ask."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import FarlineError, UsageError
from farline.store import kept_logs, left_out
from farline.store.appending import append
from farline.store.compact import Compaction, compact
from farline.store.disk import locked
from farline.store.entry import RunBundle
from farline.store.filters import EVERYTHING, RunFilter, pick_campaign
from farline.store.kept_logs import Kept, KeptLog, Look
from farline.store.layout import Layout, default_path
from farline.store.quick import spool
from farline.store.reader import Reader, open_reader

if TYPE_CHECKING:
    import pyarrow as pa

TIDY_FILES = 256
"""Fresh files from which `tidy` merges."""
LAST = "last"
"""What names the newest campaign."""


class Store:
    """Runs and their samples under one folder. Any number of processes may have it open."""

    def __init__(self, path: Path | None = None, *, create: bool = True) -> None:
        """Opens the store at `path` (`default_path()` if absent), and makes it if it is not there.

        Raises:
            UsageError: when it is not there and `create` is false.
            SystemFailure: when it cannot be made.
        """
        self.layout = Layout(path or default_path())
        if not create and not self.layout.use_lock.exists():
            raise UsageError(
                f"{self.path}: no store here; farline probe or profile creates one, and --store "
                "or FARLINE_STORE selects another"
            )
        if create:
            self.layout.create()

    @classmethod
    def to_read(cls, path: Path | None = None) -> Store:
        """Opens a store that must be there, and reads fast.

        Many single runs that have gathered are merged first, where this user may: reading them
        one by one is what makes a store slow.

        Raises:
            UsageError: when it is not there.
        """
        store = cls(path, create=False)
        if os.access(store.layout.fresh, os.W_OK):
            store.tidy()
        return store

    @property
    def path(self) -> Path:
        """The folder."""
        return self.layout.root

    def append(self, run: RunBundle) -> str:
        """Adds one run; when this returns, it is on disk. Returns the run's name.

        Raises:
            SpecError: when the record has no usable `run_id`, or it is already there.
            SystemFailure: when the disk refuses.
        """
        return append(self.layout, run)

    def spool(self, run: RunBundle) -> str:
        """Adds one run as `append` does, without anything that takes time to import.

        Many samples are appended the usual way.

        Raises:
            SpecError: as `append`.
            SystemFailure: when the disk refuses.
        """
        return spool(self.path, run)

    def compact(self, everything: bool = False) -> Compaction:
        """Merges small files into segments; with `everything`, as far as it goes."""
        return compact(self.layout, everything)

    def tidy(self) -> Compaction:
        """Merges if many single runs have gathered; cheap otherwise."""
        waiting = 0
        for folder in (self.layout.fresh, self.layout.spool):
            # A store of an older version has not all of them.
            with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
                waiting += sum(1 for _ in found)
        if waiting < TIDY_FILES:
            return Compaction()
        try:
            return self.compact()
        except (FarlineError, OSError, ValueError) as error:
            # Reading goes on; a merge that meets a damaged file has changed nothing.
            left_out.note(f"{self.path}: not merged: {error}")
            return Compaction()

    @contextlib.contextmanager
    def read(self) -> Iterator[Reader]:
        """A consistent view to ask more than one question of."""
        with open_reader(self.layout) as reader:
            yield reader

    def runs(self, wanted: RunFilter = EVERYTHING, limit: int | None = None) -> pa.Table:
        """Rows of the runs that fit, oldest first, with the columns of `columns.run_columns`."""
        with self.read() as reader:
            return reader.runs(wanted, limit)

    def may_hold(self, column: str, value: str) -> bool:
        """Whether asking for runs with `value` in a text column could find any; cheap."""
        with self.read() as reader:
            return reader.may_hold(column, value)

    def samples(self, run_ids: Sequence[str]) -> pa.Table:
        """Samples of some runs: `run_id` and the sample columns, null where unknown."""
        with self.read() as reader:
            return reader.samples(run_ids)

    def link_samples(self, run_ids: Sequence[str]) -> pa.Table:
        """Link samples of some runs: `run_id` and the columns; no row where there was no path."""
        with self.read() as reader:
            return reader.link_samples(run_ids)

    def mover_samples(self, run_ids: Sequence[str]) -> pa.Table:
        """Samples of files of some copies: `run_id` and the columns; no row for other runs."""
        with self.read() as reader:
            return reader.mover_samples(run_ids)

    def find(self, part: str | None) -> list[dict[str, Any]]:
        """Rows of the runs whose name begins or ends so; with None, the newest run's."""
        with self.read() as reader:
            found = reader.runs(limit=1) if part is None else reader.runs_named(part)
            rows: list[dict[str, Any]] = found.to_pylist()
        return rows

    def find_one(self, run: str) -> dict[str, Any]:
        """The row of the run that is meant by a name, its beginning or its end, or `last`.

        Raises:
            UsageError: when there is none, or what was given fits several.
        """
        rows = self.find(None if run == LAST else run)
        if not rows:
            raise UsageError(f"no run {run!r} in {self.path}; `farline runs` lists them")
        if len(rows) > 1:
            names = ", ".join(row["run_id"] for row in rows[:3])
            raise UsageError(
                f"{run!r} matches {len(rows)} runs: {names}, ...; give more characters of the name"
            )
        return rows[0]

    def campaigns(self) -> pa.Table:
        """One row per campaign, newest first: when it started, how many runs ended how."""
        with self.read() as reader:
            return reader.campaigns()

    def campaign_name(self, wanted: str) -> str:
        """Full name of a campaign that has runs: given in full, as its user named it, or "last".

        Raises:
            UsageError: when there is none.
        """
        known = [str(name) for name in self.campaigns()["campaign"].to_pylist()]
        if not known:
            raise UsageError(f"{self.path}: no campaign here yet; `farline profile` starts one")
        found = known[0] if wanted == LAST else pick_campaign(known, wanted)
        if found is None:
            newest = ", ".join(known[:5])
            raise UsageError(f"no campaign {wanted!r} in {self.path}; the newest: {newest}")
        return found

    def append_transfers(
        self,
        tables: Iterable[pa.Table],
        source: Path,
        *,
        reader: str,
        counts: Callable[[], Mapping[str, int]] = dict,
    ) -> Kept:
        """Keeps the transfers of the log `source`; when this returns, they are on disk.

        `tables` have the columns of `farline.store.transfers.transfer_schema`, and are not touched
        if the same log was taken in before by the same `reader` (its name and version, and what
        else decides what it makes of a log). `counts` is asked after the last table: the reader's
        tally. What was done stands in the answer's `look.outcome`.

        Raises:
            SpecError: when a table's columns are others, or `reader` is not one line.
            SystemFailure: when log or disk refuse.
        """
        return kept_logs.append(
            self.layout, tables, source, kept_logs.checked_reader(reader), counts
        )

    def look_at_log(self, source: Path, *, reader: str) -> Look:
        """What the log `source` would be to this store: new, the same, grown, read otherwise."""
        return kept_logs.look_at(self.layout, source, kept_logs.checked_reader(reader))

    def transfer_logs(self) -> Sequence[KeptLog]:
        """The logs that were taken in, oldest first."""
        with locked(self.layout.use_lock, exclusive=False):
            logs = kept_logs.kept_view(self.layout).logs
        return tuple(sorted(logs, key=lambda kept: kept.kept_at))

    def forget_transfers(self, wanted: str) -> KeptLog:
        """Deletes the transfers of one log, named by its name or the beginning of its digest.

        Raises:
            UsageError: when none or several are called so.
            SystemFailure: when somebody is reading the store.
        """
        return kept_logs.forget(self.layout, wanted)

    def damaged(self) -> Sequence[str]:
        """One line per file that cannot be read."""
        with self.read() as reader:
            return (*reader.view.damaged, *kept_logs.kept_view(self.layout).damaged)
