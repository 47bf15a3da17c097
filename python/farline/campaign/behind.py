"""Keeps a run while the next one is under way.

Writing a run and waiting for the disk takes a few milliseconds in which the path could be
measured. At most one run is on its way at a time: the next waits for it, so that a disk
that refuses ends the campaign after one run more. What was on its way when the process
died is not in the store, and `--resume` asks for it again.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from farline.campaign.measure import Keeper
from farline.store.entry import RunBundle


class Behind:
    """A keeper that hands runs to `store` in a thread of its own. Leaving it waits for the last."""

    def __init__(self, store: Keeper) -> None:
        """Keeps runs in `store`."""
        self._store = store
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fl-store")
        self._on_its_way: Future[object] | None = None

    def append(self, run: RunBundle) -> None:
        """Hands one run over, once the one before is on disk.

        Raises:
            FarlineError: what the store said to the one before.
        """
        self.settle()
        self._on_its_way = self._writer.submit(self._store.append, run)

    def settle(self) -> None:
        """Waits until all that was handed over is on disk; raises what the store said."""
        waiting, self._on_its_way = self._on_its_way, None
        if waiting is not None:
            waiting.result()

    def __enter__(self) -> Behind:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Waits for the last run, whatever ended the campaign; an error already on its way wins."""
        try:
            self.settle()
        except Exception:
            if error is None:
                raise
        finally:
            self._writer.shutdown()
