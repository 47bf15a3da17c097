"""What is known of paths: every transfer that ended between two hosts, and what was chosen from it.

What it does: gives the runs of a store and the logs that it keeps as rows of one shape, one for
each finished transfer of one direction (`history`); keeps the setting that was chosen for a path
(`choices`), small and apart, so that a copy finds it without reading any run; remembers from when
on a path is to be looked at anew.

What it must not do: fit, predict or choose (`tuning` and `estimating` do); send anything anywhere;
know names of files or users.

In: a `Store`, the names of two hosts, an `Infrastructure` for their sites. Out: `PastTransfer`
rows, oldest first, and `StoredChoice`.

```python
rows = path_history(store, PathEnds.between("dtn1", "archive"))    # one path
rows = path_history(store)                                         # every path
```

Reading costs no engine and no data frame library: what a row needs stands in columns of the runs
table and in the record beside them. `choices` alone imports next to nothing.

Start with `PastTransfer` in past_transfer.py, then history.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farline.store.paths.choices import HostsNow, StoredChoice
    from farline.store.paths.history import forget_path, path_history, transfer_of
    from farline.store.paths.past_transfer import PastTransfer, PathEnds

__all__ = [
    "HostsNow",
    "PastTransfer",
    "PathEnds",
    "StoredChoice",
    "forget_path",
    "path_history",
    "transfer_of",
]

_PLACES = {
    "HostsNow": "choices",
    "PastTransfer": "past_transfer",
    "PathEnds": "past_transfer",
    "StoredChoice": "choices",
    "forget_path": "history",
    "path_history": "history",
    "transfer_of": "history",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for when it is: a copy that looks for a choice needs little of it."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
