"""`farline.open_store`: what earlier runs were."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farline.store import Store


def store_at(path: str | Path | Store | None) -> Store:
    """The store at `path`, made if it is not there; the user's own if None.

    Raises:
        SystemFailure: when it cannot be made.
    """
    from farline.store import Store as StoreType

    if isinstance(path, StoreType):
        return path
    return StoreType(None if path is None else Path(path).expanduser())


def open_store(path: str | Path | None = None) -> Store:
    """Opens the store at `path` to read and add: $FARLINE_STORE, or the user's own, if None.

    `.runs()`, `.samples(run_ids)` and `.campaigns()` give `pyarrow.Table`.

    Raises:
        UsageError: when there is no store.
    """
    from farline.store import Store as StoreType

    return StoreType.to_read(None if path is None else Path(path).expanduser())
