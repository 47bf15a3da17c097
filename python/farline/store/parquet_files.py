"""Files of the store in Parquet: that of a run just measured, and what the end of each says.

In a fresh file the samples are the columns (`run_id` first), everything else is a JSON document in
the file's metadata. That is the cheapest of the shapes that were tried (docs/design/store.md): one
file, one sync, no wide one-row table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from farline.errors import SystemFailure
from farline.spec.json_text import read_object
from farline.store.entry import Entry, Fresh, check_version, checked_entry
from farline.store.spool import SAMPLES, spooled_table
from farline.store.upgrade import FORMAT_VERSION, upgrade_document, upgrade_samples

if TYPE_CHECKING:
    import pyarrow as pa

VERSION_KEY = b"farline.format"
ENTRY_KEY = b"farline.entry"


def write_side(samples: pa.Table, file: BinaryIO) -> None:
    """Writes the samples of another kind of one run: of its links, of its files."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(file, samples.schema, compression="zstd") as writer:
        writer.write_table(samples)
        writer.add_key_value_metadata({VERSION_KEY: str(FORMAT_VERSION)})


def write_fresh(entry: Entry, samples: pa.Table, file: BinaryIO) -> None:
    """Writes the file of one run."""
    import pyarrow.parquet as pq

    document = json.dumps(entry.document(), separators=(",", ":"), allow_nan=False)
    # Neither compressed nor with statistics: time counts here, and segments are both.
    with pq.ParquetWriter(
        file, samples.schema, compression="none", use_dictionary=["run_id"], write_statistics=False
    ) as writer:
        writer.write_table(samples)
        writer.add_key_value_metadata({VERSION_KEY: str(FORMAT_VERSION), ENTRY_KEY: document})


@dataclass(frozen=True, slots=True)
class Footer:
    """What the end of a file of the store says about it."""

    version: int
    metadata: Mapping[bytes, bytes]
    columns: tuple[str, ...]
    rows: int


def read_fresh(path: Path) -> Fresh:
    """The entry in the file of one run, upgraded.

    Raises:
        SystemFailure: when the file is damaged.
        VersionError: when a newer farline wrote it.
    """
    end = read_footer(path)
    try:
        document = upgrade_document(read_object(end.metadata[ENTRY_KEY]), end.version)
        entry = checked_entry(document)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise SystemFailure(f"{path}: damaged: {error!r}") from error
    return Fresh(path, end.version, end.columns, entry)


def fresh_samples(fresh: Fresh) -> pa.Table:
    """The samples in the file of one run, upgraded."""
    import pyarrow.parquet as pq

    if fresh.spooled:
        return spooled_table(fresh, SAMPLES)
    with pq.ParquetFile(fresh.path) as file:
        return upgrade_samples(file.read(use_threads=False), fresh.version)


def read_footer(path: Path) -> Footer:
    """The footer of a Parquet file of the store, its version checked.

    Raises:
        SystemFailure: when the file is damaged or not one of the store's.
        VersionError: when a newer farline wrote it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        end = pq.read_metadata(path)
        metadata = dict(end.metadata or {})
        version = int(metadata[VERSION_KEY])
    except OSError as error:
        raise SystemFailure(f"{path}: {error.strerror or error}") from error
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise SystemFailure(f"{path}: damaged, or not a file of this store: {error}") from error
    check_version(path, version)
    return Footer(version, metadata, tuple(end.schema.names), end.num_rows)
