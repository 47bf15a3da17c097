"""One transfer or test run as throughput analytics sees it, whoever measured it.

`ingest` writes such rows from other people's logs, `store` keeps and queries them, and turns our
own runs into them. The columns stand here, below both.
"""

from __future__ import annotations

from typing import Literal, get_args

Modality = Literal["T", "E", "H", "F"]
"""What was measured (Rao et al. 2018, sections 1 and 3): memory to memory over the network (T),
file to file over the network (E), host input and output without the network (H), a file system
(F)."""

MODALITIES: tuple[str, ...] = get_args(Modality)

TRANSFER_COLUMNS: dict[str, str] = {
    "tool": "string",
    "modality": "string",
    "started_at": "timestamp",
    "duration_s": "double",
    "bytes": "int64",
    "rate_bps": "double",
    "complete": "bool",
    "code": "string",
    "from_host": "string",
    "to_host": "string",
    "file_system": "string",
    "rtt_ms": "double",
    "streams": "int32",
    "concurrency": "int32",
    "parallelism": "int32",
    "pipelining": "int32",
    "stripes": "int32",
    "files": "int64",
    "buffer_bytes": "int64",
    "block_bytes": "int64",
    "congestion_control": "string",
    "transport": "string",
    "retransmits": "int64",
    "source": "string",
}
"""Every column may be null where the source does not say, but `tool`, `modality`, `complete`,
`source`, and of complete rows `rate_bps`.

`started_at` is UTC in microseconds. `rate_bps` is payload bits per second over the whole duration.
`complete` is false for what failed: such a row is counted, and is never a rate. `code` is the
source's own word for how it ended. `from_host` sent the data. Of modality H and F both hosts are
the one that was measured. `streams` is how many data streams there were in all, `parallelism` how
many for one file, `concurrency` how many files at once. `source` names the log. Names of users and
of files are not kept.
"""

SITE_COLUMNS: dict[str, str] = {
    "from_site": "string",
    "to_site": "string",
    "capacity_bps": "double",
}
"""What an infrastructure description adds to each row; null without one, or for unknown hosts."""
