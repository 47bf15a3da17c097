"""The store: one record with its samples per run, in append-only Parquet files.

```text
STORE/
  fresh/RUN_ID.parquet    one run just measured: samples as columns, record in the file's metadata
  runs/SEGMENT.parquet    many runs, one row each: flattened columns and the whole record as JSON
  samples/SEGMENT.parquet the samples of the same runs, a column `run_id` in front
  spool/RUN_ID.jsonl      the same as JSON lines: a run kept by who had no time for Parquet
  fresh-links/RUN_ID.parquet, links/SEGMENT.parquet
                          samples of the links, of runs over an emulated path
  fresh-mover/RUN_ID.parquet, mover/SEGMENT.parquet
                          samples of the files, of copies
  receipts/RUN_ID.parquet what became of each name of a copy
  transfers/LOG.parquet   transfers of one log of another tool, as farline.formats reads it
  campaigns/ID.json       plan and seed of a campaign (kept by farline.campaign)
  paths/to-HOST.json      the setting chosen for a path; forgotten.json: since when paths are anew
  tmp/                    files being written; nobody reads them
```

What it does: appends runs so that a killed writer never spoils what was there (`appending`),
merges small files into segments (`compact`), keeps logs of other tools (`kept_logs`), answers
questions about runs (`reader`), reads every older version of its own format, and in `transfers`
asks of runs, kept logs and Parquet files together, on any engine (`engine`); in `paths` gives what
is known of a path to those who choose and estimate.
What it must not do: change or judge a record; print; know what a campaign is beyond its name.

In: a `RunBundle`: a `RunRecord` document, its samples, a campaign's name and labels.
Out: Arrow tables and documents.

The rules that make it safe, for one machine and any number of processes:
a file appears under its name only when it is whole and synced (`disk`);
a segment names in its own metadata every file it replaces, and readers leave those out
(`layout`), so the moment a segment appears is the moment its parts stop counting;
replaced files are deleted only while no reader holds the store (`compact`).

A run of a quarter of a second is kept through `quick`, which imports next to nothing.

Start with `Store` in store.py, then layout.py, then reader.py; for transfers with transfers/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farline.store.compact import Compaction
    from farline.store.default_folder import default_path
    from farline.store.entry import Entry, RunBundle
    from farline.store.filters import RunFilter
    from farline.store.store import Store

__all__ = ["Compaction", "Entry", "RunBundle", "RunFilter", "Store", "default_path"]

_PLACES = {
    "Compaction": "compact",
    "Entry": "entry",
    "RunBundle": "entry",
    "RunFilter": "filters",
    "Store": "store",
    "default_path": "default_folder",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for when it is: who spools a run needs little of this room."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
