"""Which measurements of contention a store has, for those who may have nothing to do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from farline.store import Store


def journal_folder(store: Store) -> Path:
    """Where the plans of all measurements stand."""
    return store.layout.root / "contention"


def journal_names(store: Store) -> list[str]:
    """Full names of all measurements, newest first."""
    files = list(journal_folder(store).glob("*.json"))
    files.sort(key=lambda path: (path.stat().st_mtime_ns, path.stem), reverse=True)
    return [path.stem for path in files]
