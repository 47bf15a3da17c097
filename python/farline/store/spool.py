"""A run kept in haste: one file of JSON lines, written without numpy, Arrow or an engine.

A copy of ten thousand small files is over in a quarter of a second; importing what writes Parquet
would take as long again. So such a run is spooled: the first line is its entry, each other line the
columns of one kind of samples. Readers see it like any other run, and a merge moves it into a
segment, by the same list of replaced files as every fresh run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from farline.errors import SpecError, SystemFailure
from farline.spec.json_text import read_object
from farline.store.disk import system_failures
from farline.store.entry import Entry, Fresh, check_version, checked_entry, sample_table
from farline.store.upgrade import FORMAT_VERSION, upgrade_document, upgrade_samples

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIX = ".jsonl"
SAMPLES = "samples"
MOST_VALUES = 200_000
"""Figures in all samples from which JSON takes longer than Parquet with its imports."""

Columns = Mapping[str, Any]
"""Columns of one length: numpy arrays, `array.array` or memory views of 64-bit integers."""

_UNKNOWN = -1
_FIGURE_TOO = ("lost_packets",)
"""-1 is a figure here: such a column is kept even if it holds nothing else."""


def is_small(parts: Iterable[Columns]) -> bool:
    """Whether samples are few enough to be spooled."""
    return sum(len(column) for part in parts for column in part.values()) <= MOST_VALUES


def write_spooled(entry: Entry, parts: Mapping[str, Columns], file: BinaryIO) -> None:
    """Writes the file of one run; `parts` are samples by their kind.

    Raises:
        SpecError: when columns of a kind are not of one length.
    """
    head = {"format": FORMAT_VERSION, "entry": entry.document(), "kinds": {}}
    lines = []
    for kind, columns in parts.items():
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise SpecError(
                f"{kind} of {entry.run_id}: columns of different lengths {sorted(lengths)}"
            )
        known = {name: column.tolist() for name, column in columns.items()}
        known = {n: v for n, v in known.items() if n in _FIGURE_TOO or v.count(_UNKNOWN) < len(v)}
        if known and lengths != {0}:
            head["kinds"][kind] = list(known)  # type: ignore[index]
            lines.append({"kind": kind, "columns": known})
    for line in (head, *lines):
        text = json.dumps(line, separators=(",", ":"), allow_nan=False)
        file.write(text.encode() + b"\n")


def read_spooled(path: Path) -> Fresh:
    """The entry of a spooled run, upgraded; its samples stay unread.

    Raises:
        SystemFailure: when the file is damaged.
        VersionError: when a newer farline wrote it.
    """
    try:
        head = next(_lines(path), None)
        version = int(head["format"])  # type: ignore[index]
        check_version(path, version)
        document = upgrade_document(head["entry"], version)  # type: ignore[index]
        entry = checked_entry(document)
        columns = ("run_id", *map(str, head["kinds"].get(SAMPLES, ())))  # type: ignore[index]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise SystemFailure(f"{path}: damaged: {error!r}") from error
    return Fresh(path, version, columns, entry, spooled=True)


def spooled_table(fresh: Fresh, kind: str) -> pa.Table:
    """The samples of one kind of a spooled run, `run_id` in front; no rows where it has none.

    Raises:
        SystemFailure: when the file is damaged.
    """
    import numpy as np

    columns: dict[str, Any] = {}
    try:
        for line in _lines(fresh.path):
            if line.get("kind") == kind:
                found = line["columns"].items()
                columns = {name: np.asarray(values, dtype=np.int64) for name, values in found}
        table = sample_table(fresh.entry.run_id, columns)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError, SpecError) as error:
        raise SystemFailure(f"{fresh.path}: damaged: {error!r}") from error
    return upgrade_samples(table, fresh.version) if kind == SAMPLES else table


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with system_failures(f"reading {path}"), path.open("rb") as file:
        for line in file:
            yield read_object(line)
