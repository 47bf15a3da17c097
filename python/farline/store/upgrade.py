"""Older versions of the store's format, brought to the present one.

`FORMAT_VERSION` stands in the metadata of every file. A version that changes the meaning of
something adds one step here and one committed file to `tests/data/store`; a column that is only
added needs neither, it reads as null from older files. Files are never changed in place: they
are upgraded as they are read, and a merge writes them anew.

Version 3 has samples of the files of copies beside the runs, receipts of copies, and runs that are
spooled as JSON; version 2 knows none of these, and would leave them behind.
Version 2 has samples of links beside the runs, in files that version 1 does not know and would
leave behind; runs and samples are the same in all three.
Version 0 is the layout from before the first release: run status "ok" for "complete", `tags`
for `labels`, no `server_notes` in the record, sample column `srtt_us` for `rtt_us`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT_VERSION = 3
"""Version that is written, and the newest that can be read."""

SAME_SINCE = 1
"""Oldest version whose runs and samples are as the present one has them: nothing to upgrade."""

Document = dict[str, Any]


def upgrade_document(document: Document, version: int) -> Document:
    """An entry's document of `version` as the present version has it."""
    for step in range(version, SAME_SINCE):
        document = _DOCUMENT_STEPS[step](document)
    return document


def upgrade_samples(samples: pa.Table, version: int) -> pa.Table:
    """A table of samples of `version` as the present version has it."""
    for step in range(version, SAME_SINCE):
        samples = _SAMPLE_STEPS[step](samples)
    return samples


def labels_name(version: int) -> str:
    """What labels are called in entries of `version`."""
    return "tags" if version == 0 else "labels"


def _document_0(document: Document) -> Document:
    record = {"server_notes": [], **document["record"], "schema": 1}
    if record["status"] == "ok":
        record["status"] = "complete"
    return {
        "record": record,
        "campaign": document.get("campaign"),
        "labels": document.get("tags", {}),
    }


def _samples_0(samples: pa.Table) -> pa.Table:
    names = {"srtt_us": "rtt_us"}
    return samples.rename_columns([names.get(name, name) for name in samples.column_names])


_DOCUMENT_STEPS: dict[int, Callable[[Document], Document]] = {0: _document_0}
_SAMPLE_STEPS: dict[int, Callable[[pa.Table], pa.Table]] = {0: _samples_0}
