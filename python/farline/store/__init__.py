"""What happened, kept: one record and its samples per run, append-only Parquet.

```text
STORE/
  fresh/RUN_ID.parquet    one run just measured: samples as columns, record in the file's metadata
  runs/SEGMENT.parquet    many runs, one row each: flattened columns and the whole record as JSON
  samples/SEGMENT.parquet the samples of the same runs, a column `run_id` in front
  fresh-links/RUN_ID.parquet, links/SEGMENT.parquet
                          samples of the links, of runs over an emulated path
  transfers/LOG.parquet   transfers of one log of another tool, as farline.ingest reads it
  campaigns/ID.json       plan and seed of a campaign (kept by farline.campaign)
  tmp/                    files being written; nobody reads them
```

What it does: appends runs so that a killed writer never spoils what was there, merges small
files into segments, keeps logs of other tools (`kept_logs`), answers queries (each defined once,
in Ibis), reads every older version of its own format, and in `transfers` asks of runs, kept logs
and Parquet files together, on any engine (`engine`).
What it must not do: change or judge a record; print; know what a campaign is beyond its name.

In: a `RunRecord` document, its sample columns, those of the links, a campaign's name and labels.
Out: Arrow tables and documents.

The rules that make it safe, for one machine and any number of processes:
a file appears under its name only when it is whole and synced (`disk`);
a segment names in its own metadata every file it replaces, and readers leave those out
(`layout`), so the moment a segment appears is the moment its parts stop counting;
replaced files are deleted only while no reader holds the store (`compact`).

Start with `Store` in store.py, then layout.py, then queries.py; for transfers with transfers/.
"""

from __future__ import annotations

from farline.store.compact import Compaction
from farline.store.entry import Entry
from farline.store.filters import RunFilter
from farline.store.store import Store, default_path

__all__ = ["Compaction", "Entry", "RunFilter", "Store", "default_path"]
