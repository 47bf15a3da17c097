"""What the store says, read when it has changed and then asked many times. Nothing is written."""

from __future__ import annotations

import json
import statistics
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from farline.errors import BusyError, FarlineError, SpecError
from farline.estimating import PathHistory
from farline.logs import Log
from farline.portal.settings import Settings
from farline.spec.infrastructure import Infrastructure
from farline.store import RunFilter, Store, default_path
from farline.store.layout import Layout
from farline.store.paths import PastTransfer, PathEnds, path_history

_LOG = Log(__name__)
_T = TypeVar("_T")

REFRESH_S = 3.0
"""How often it is looked whether the store has changed."""

RECENT = 20
"""Newest transfers of a path that its figure is the median of."""

PATIENCE_S = 2.0
"""How long who asks waits for what has to be worked out first."""

MOST_ANSWERS = 100

Path2 = tuple[str, str]
"""Sender and receiver: sites where they are known, else hosts."""


class NoSuchRunError(SpecError):
    """The store has no run of this name."""


class NotYetError(BusyError):
    """An answer is being worked out."""


@dataclass(frozen=True)
class Pair:
    """A path in one direction, as its newest transfers show it."""

    source: str
    destination: str
    transfers: int
    rate_bps: float
    """Median of the newest."""
    best_bps: float
    newest_s: float | None
    rtt_ms: float | None
    capacity_bps: float | None
    limit: str | None
    """What limited most of the newest."""


class Snapshot:
    """The transfers of the store at one moment, and what follows from them."""

    def __init__(self, rows: Sequence[PastTransfer], infrastructure: Infrastructure | None) -> None:
        """Nothing is worked out before it is asked for."""
        self.rows, self._infrastructure = rows, infrastructure
        self._histories: dict[PathEnds, PathHistory] = {}
        self._lock = threading.Lock()

    @cached_property
    def by_path(self) -> Mapping[Path2, Sequence[PastTransfer]]:
        """Rows of each path, oldest first."""
        found: dict[Path2, list[PastTransfer]] = {}
        for row in self.rows:
            source, _, destination = row.path.partition(" > ")
            found.setdefault((source, destination), []).append(row)
        return found

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        """All paths, by name."""
        return [_pair(path, self.by_path[path]) for path in sorted(self.by_path)]

    def is_quick(self, ends: PathEnds, confidence: float) -> bool:
        """Whether an estimate of this path has nothing to go through first."""
        known = self._histories.get(ends)
        return known is not None and known.has_learnt(confidence)

    def history(self, ends: PathEnds) -> PathHistory:
        """What estimates of a path rest on."""
        found = self._histories.get(ends)
        if found is None:
            # Who asks for another path, which is known, does not wait for this one.
            with self._lock:
                found = self._histories.get(ends)
                if found is None:
                    found = self._histories[ends] = PathHistory(self.rows, ends)
        return found

    def names_of(self, name: str) -> frozenset[str]:
        """All names of the hosts of a site, as rows have them; of a host, its own."""
        found = {name}
        for (source, destination), rows in self.by_path.items():
            for row in rows:
                if source == name:
                    found |= {row.from_host, *row.from_names}
                if destination == name:
                    found |= {row.to_host, *row.to_names}
        return frozenset(found)


def _pair(path: Path2, rows: Sequence[PastTransfer]) -> Pair:
    """Files count before what went between memories; what was held back by a wish does not."""
    sound = [row for row in rows if row.sound] or list(rows)
    files = [row for row in sound if row.modality == "E"] or sound
    recent = files[-RECENT:]
    limits = Counter(row.limit for row in recent if row.limit and row.limit != "unknown")
    return Pair(
        *path,
        transfers=len(rows),
        rate_bps=statistics.median(row.rate_bps for row in recent),
        best_bps=max(row.rate_bps for row in files),
        newest_s=rows[-1].ended_s,
        rtt_ms=next((row.rtt_ms for row in reversed(rows) if row.rtt_ms), None),
        capacity_bps=next((row.capacity_bps for row in reversed(rows) if row.capacity_bps), None),
        limit=limits.most_common(1)[0][0] if limits else None,
    )


class Knowledge:
    """The newest snapshot, and questions that are answered anew when the store has changed."""

    def __init__(self, settings: Settings) -> None:
        """Reads the store; none is as good as an empty one."""
        self._path = settings.store_path or default_path()
        self.infrastructure = settings.infrastructure
        self._sign: object = None
        self._snapshot = Snapshot((), self.infrastructure)
        self._answers: dict[str, tuple[object, Future[Any]]] = {}
        self._worker = ThreadPoolExecutor(1, "farline findings")
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def now(self) -> Snapshot:
        """The newest snapshot."""
        return self._snapshot

    def run(self) -> None:
        """Looks for changes in a thread of its own, until closed."""
        self._thread = threading.Thread(target=self._follow, name="farline store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Looks no more."""
        self._closed.set()
        self._worker.shutdown(wait=False, cancel_futures=True)
        if self._thread is not None:
            self._thread.join()

    def _follow(self) -> None:
        while not self._closed.wait(REFRESH_S):
            try:
                self.refresh()
            except (FarlineError, OSError) as error:
                _LOG.error("the store was not read", reason=f"{error}")

    def refresh(self) -> None:
        """Reads the store if it has changed.

        Raises:
            SystemFailure: when it cannot be read.
        """
        sign = _sign_of(self._path)
        if sign != self._sign:
            rows = self._rows()
            self._snapshot, self._sign = Snapshot(rows, self.infrastructure), sign

    def _rows(self) -> Sequence[PastTransfer]:
        store = self.store()
        return () if store is None else path_history(store, infrastructure=self.infrastructure)

    def store(self) -> Store | None:
        """The store to read; None where there is none yet."""
        if not Layout(self._path).use_lock.exists():
            return None
        return Store(self._path, create=False)

    def remembered(self, name: str, ask: Callable[[], _T]) -> _T:
        """The answer of `ask`, which is asked once for every state of the store.

        Raises:
            NotYetError: when that takes longer than a person waits; it goes on.
            FarlineError: as `ask`.
        """
        with self._lock:
            sign, future = self._answers.get(name, (None, None))
            if future is None or sign != self._sign:
                if len(self._answers) >= MOST_ANSWERS:
                    self._answers.clear()
                future = self._worker.submit(ask)
                self._answers[name] = (self._sign, future)
        try:
            found: _T = future.result(PATIENCE_S)
        except TimeoutError:
            raise NotYetError(
                "this is still being computed: try again in a few seconds", 3.0
            ) from None
        return found

    def runs(self, limit: int, columns: Sequence[str]) -> Sequence[dict[str, Any]]:
        """The newest runs, newest first, with some columns of the table of runs."""
        store = self.store()
        if store is None:
            return []
        with store.read() as reader:
            rows: list[dict[str, Any]] = reader.runs(limit=limit, names=tuple(columns)).to_pylist()
        return rows[::-1]

    def record(self, run: str) -> dict[str, Any]:
        """The whole record of a run.

        Raises:
            NoSuchRunError: when there is none of that name.
        """
        store = self.store()
        table = None if store is None else store.runs(RunFilter(run_ids=(run,)))
        if table is None or not len(table):
            raise NoSuchRunError(f"run {run[:80]!r}: there is no such run")
        found: dict[str, Any] = json.loads(table["record"][0].as_py())
        return found

    def campaigns(self) -> Sequence[dict[str, Any]]:
        """Campaigns, the newest first."""
        store = self.store()
        found: list[dict[str, Any]] = [] if store is None else store.campaigns().to_pylist()
        return found


def _sign_of(path: Path) -> object:
    """What is another whenever a run was added, merged or forgotten."""
    layout = Layout(path)
    folders = (layout.fresh, layout.spool, layout.runs, layout.transfers, layout.paths)
    return tuple(_changed(folder) for folder in folders)


def _changed(folder: Path) -> int | None:
    try:
        return folder.stat().st_mtime_ns
    except FileNotFoundError:
        return None
