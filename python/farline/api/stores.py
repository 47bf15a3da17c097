"""`farline.open_store`: what earlier runs were."""

from __future__ import annotations

from pathlib import Path

from farline.store import Store

StoreLike = str | Path | Store | None
"""A store, its folder, or None for $FARLINE_STORE or else the user's own."""


def store_at(store: StoreLike) -> Store:
    """The store, made if it is not there.

    Raises:
        SystemFailure: when it cannot be made.
    """
    return store if isinstance(store, Store) else Store(folder_of(store))


def open_store(store: StoreLike = None) -> Store:
    """Opens a store to read and add: the one in a folder, or $FARLINE_STORE or the user's own.

    `.runs()`, `.samples(run_ids)` and `.campaigns()` give `pyarrow.Table`.

    Raises:
        UsageError: when there is no store.
    """
    return store if isinstance(store, Store) else Store.to_read(folder_of(store))


def folder_of(store: StoreLike) -> Path | None:
    """The folder that is stated, if one is."""
    if isinstance(store, Store):
        return store.path
    return None if store is None else Path(store).expanduser()
