"""`farline.open_store`: what earlier runs were."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from farline.spec.extras import has_analysis
from farline.spec.user_folders import expanded
from farline.store.quick import Spool

if TYPE_CHECKING:
    # A copy names a folder at most, and runs without what reads a store.
    from farline.store import Store

StoreLike: TypeAlias = "str | Path | Store | None"
"""A store, its folder, or None for $FARLINE_STORE or else the user's own."""


def store_at(store: StoreLike) -> Store:
    """The store, made if it is not there.

    Raises:
        SystemFailure: when it cannot be made.
    """
    from farline.store import Store

    return store if isinstance(store, Store) else Store(folder_of(store))


def keeper_at(store: StoreLike) -> Store | Spool:
    """The same for who only keeps runs: also where the extra `analysis` is not installed.

    Raises:
        SystemFailure: when it cannot be made.
    """
    if has_analysis():
        return store_at(store)
    return Spool(folder_of(store))


def open_store(store: StoreLike = None) -> Store:
    """Opens a store to read and add: the one in a folder, or $FARLINE_STORE or the user's own.

    `.runs()`, `.samples(run_ids)` and `.campaigns()` give `pyarrow.Table`.

    Raises:
        UsageError: when there is no store.
    """
    from farline.store import Store

    return store if isinstance(store, Store) else Store.to_read(folder_of(store))


def folder_of(store: StoreLike) -> Path | None:
    """The folder that is stated, if one is."""
    if store is None:
        return None
    return expanded(store) if isinstance(store, str | Path) else store.path
