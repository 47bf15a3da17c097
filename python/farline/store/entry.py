"""One run as the store keeps it, whatever the shape of its file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError, VersionError
from farline.store.upgrade import FORMAT_VERSION

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")
_UNKNOWN = -1
_UNKNOWN_BESIDE = {"lost_packets": "packets"}
"""-1 is a figure here (a late datagram filled a gap); unknown is where the other column is."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One run: its record (`RunRecord`), and where it belongs."""

    record: Mapping[str, Any]
    campaign: str | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        """Name of the run, unique and sorting by time."""
        return str(self.record["run_id"])

    def document(self) -> dict[str, Any]:
        """The entry as JSON has it."""
        return {
            "record": dict(self.record),
            "campaign": self.campaign,
            "labels": dict(self.labels),
        }


@dataclass(frozen=True, slots=True)
class RunBundle:
    """One run and everything that is kept of it.

    `record` is a `RunRecord` document; `samples` has one 64-bit integer array per sample column,
    -1 for unknown. `labels` are JSON values that say what the run was for. `links` has one array
    per column of link samples, of a run over an emulated path; `mover` one per column of samples
    of files, of a copy. Where a run is spooled, columns may also be `array.array` or memory views.
    """

    record: Mapping[str, Any]
    samples: Mapping[str, Any]
    campaign: str | None = None
    labels: Mapping[str, Any] | None = None
    links: Mapping[str, Any] | None = None
    mover: Mapping[str, Any] | None = None

    @property
    def entry(self) -> Entry:
        """The run without its samples."""
        return Entry(self.record, self.campaign, self.labels or {})


def checked_entry(document: Mapping[str, Any]) -> Entry:
    """The entry that a document of the present version holds.

    Raises:
        KeyError, ValueError: when it holds none.
    """
    record, labels, campaign = document["record"], document["labels"], document["campaign"]
    if not isinstance(record, dict) or not isinstance(labels, dict):
        raise ValueError("record and labels are not objects")
    if campaign is not None and not isinstance(campaign, str):
        raise ValueError("campaign is not a string")
    try:
        checked_run_id(record["run_id"])
    except SpecError as error:
        raise ValueError(error.message) from None
    return Entry(record, campaign, labels)


def checked_run_id(run_id: object) -> str:
    """A run's name that is safe as the name of a file.

    Raises:
        SpecError: when it is not.
    """
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id):
        raise SpecError(f"run_id: {run_id!r} is not 1 to 64 letters, digits, '_' or '-'")
    return run_id


def sample_table(run_id: str, samples: Mapping[str, np.ndarray[Any, Any]]) -> pa.Table:
    """The sample columns as a table; unknown values become null, wholly unknown columns nothing.

    Raises:
        SpecError: when the columns are not of one length.
    """
    import pyarrow as pa

    from farline.store.arrays import integers, repeated

    lengths = {len(column) for column in samples.values()}
    if len(lengths) > 1:
        raise SpecError(f"samples of {run_id}: columns of different lengths {sorted(lengths)}")
    arrays = {"run_id": repeated(run_id, lengths.pop() if lengths else 0)}
    for name, column in samples.items():
        known = samples.get(_UNKNOWN_BESIDE.get(name, name), column) != _UNKNOWN
        if known.any():
            arrays[name] = integers(column, known)
    return pa.Table.from_arrays(list(arrays.values()), names=list(arrays))


@dataclass(frozen=True, slots=True)
class Fresh:
    """One run in a file of its own; `version` and `columns` are those of the file."""

    path: Path
    version: int
    columns: tuple[str, ...]
    entry: Entry
    spooled: bool = False
    """Whether it is a file of `farline.store.spool`."""

    @property
    def name(self) -> str:
        """Its place in the store, as lists of replaced files have it."""
        return f"{self.path.parent.name}/{self.path.name}"


def check_version(path: Path, version: int) -> None:
    """Refuses a file of a version that is not known yet.

    Raises:
        VersionError: when a newer farline wrote it.
    """
    if version > FORMAT_VERSION:
        raise VersionError(
            f"{path}: format {version} is newer than this version of farline supports (0 to "
            f"{FORMAT_VERSION}): use a newer version for this store"
        )
