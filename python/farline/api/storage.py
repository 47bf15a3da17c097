"""`farline.measure_storage`: what a file system can do, as a job."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from farline.api.job import BackgroundJob, Status
from farline.api.stores import StoreLike, store_at
from farline.spec.units import rate_human
from farline.storage.job import BUDGET_S, StorageJob, StorageRequest, StorageResult
from farline.storage.settings import StorageWishes
from farline.store import Store
from farline.store.file_systems import FileSystemProfile, profile_of
from farline.tools.events import Event


class StorageMeasurement(BackgroundJob[Event]):
    """One measurement. What it came to is there at its end: these properties wait for it."""

    def __init__(self, request: StorageRequest, store: Store | None) -> None:
        """Begins; see `measure_storage`."""
        self._job = StorageJob(request, store, should_stop=self._should_stop)
        self._result: StorageResult | None = None
        super().__init__("storage")

    def _work(self) -> Status:
        for event in self._job:
            self._tell(event)
        self._result = self._job.wait()
        self._result.checked()
        return "complete"

    @property
    def document(self) -> Mapping[str, Any]:
        """Everything that was measured, as `farline storage --json` prints it.

        Raises:
            FarlineError: what the measurement failed with.
        """
        self._join(None)
        if self._result is None:
            self._checked()
        assert self._result is not None
        return self._result.checked()

    @property
    def profile(self) -> FileSystemProfile:
        """The caps of reads and writes, by process and in all."""
        return profile_of(self.document)

    def __repr__(self) -> str:
        """One line."""
        return f"<farline.StorageMeasurement: {self.status if self.done else 'running'}>"

    def _repr_html_(self) -> str:
        """The caps, for a notebook."""
        from html import escape

        if self._result is None or self._result.document is None:
            return escape(repr(self))
        caps = self._result.document["caps"].items()
        found = [f"{action} {rate_human(one['best_bps'])}" for action, one in caps if one]
        return f"<p>farline.measure_storage: <b>{escape(', '.join(found))}</b></p>"


def measure_storage(
    path: str | PathLike[str],
    *,
    budget_s: float = BUDGET_S,
    size_bytes: int | None = None,
    reads_file: bool = False,
    warm: bool = False,
    store: StoreLike = None,
    keep: bool = True,
    **wishes: Any,
) -> StorageMeasurement:
    """Begins to measure the file system of the folder `path`: `measure_storage("/data")`.

    With `reads_file` the path is a file of which only reads are measured. Further names are those
    of `StorageWishes`: `actions`, `processes`, `threads`, `requests_bytes`, `depths`, `modes`,
    `accesses`, `layouts`, `sync`, `repeats`. The profile is kept in `store`, unless `keep` is
    false.

    Raises:
        UsageError: for a request that cannot be carried out.
        TypeError: for a name that is none of these.
    """
    known = StorageWishes(**wishes)
    request = StorageRequest(Path(path), reads_file, known, budget_s, size_bytes, warm)
    return StorageMeasurement(request, store_at(store) if keep else None)
