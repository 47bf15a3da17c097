"""Transfers of any origin as one table: kept logs, our own runs, Parquet files, tables in memory.

What it does: turns runs of the store into rows (`own_runs`), gives rows of any origin the same
columns (`rows`), finds the sites of hosts (`sites`), and asks every question of throughput
analytics, each defined once as an Ibis expression (`cell_query`) that any engine can run
(`farline.store.engine`). The logs themselves are kept by `farline.store.kept_logs`.
What it must not do: read formats of other tools (that is `ingest`); merge round-trip times, make
profiles or coefficients (that is `profiles`); print.

In: Arrow tables with the columns of `farline.spec.transfers`, paths of Parquet files, an
`Infrastructure`, a `Selection`.
Out: Arrow tables. What leaves the engine is cells, counts, distinct values, or as many rows as
were asked for; never all rows.

Start with `open_transfers` and `Transfers` in opened.py, then cell_query.py.
"""

from __future__ import annotations

from farline.store.kept_logs import Kept, KeptLog, Look, Outcome
from farline.store.log_file import LogFile
from farline.store.transfers.cell_table import CELL_COLUMNS
from farline.store.transfers.opened import Counts, Transfers, open_transfers
from farline.store.transfers.rows import ParquetFiles, transfer_schema
from farline.store.transfers.selection import EVERYTHING, KEYS, Selection

__all__ = [
    "CELL_COLUMNS",
    "EVERYTHING",
    "KEYS",
    "Counts",
    "Kept",
    "KeptLog",
    "LogFile",
    "Look",
    "Outcome",
    "ParquetFiles",
    "Selection",
    "Transfers",
    "open_transfers",
    "transfer_schema",
]
