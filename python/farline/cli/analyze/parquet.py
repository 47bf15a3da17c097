"""Parquet files and tables of an engine by the same `--map` and `--set` as logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from farline.errors import SpecError
from farline.spec.transfers import TRANSFER_COLUMNS

if TYPE_CHECKING:
    from farline.ingest.mapping import Mapped
    from farline.store.transfers import ParquetFiles


def parquet_files(pattern: str, mapping: str | None, defaults: Mapping[str, str]) -> ParquetFiles:
    """What the engine has to read, with names, units and values of columns.

    A quoted value of the mapping is for every row, one of `--set` for those that have none.

    Raises:
        SpecError: for a mapping or a value that is not allowed.
    """
    from farline.ingest.mapping import check_defaults, parse_mapping
    from farline.store.transfers import ParquetFiles

    entries = () if mapping is None else parse_mapping(mapping)
    fixed = {entry.column: entry.reader()(entry.name) for entry in entries if entry.literal}
    named = [entry for entry in entries if not entry.literal]
    return ParquetFiles(
        pattern,
        columns={entry.column: entry.name for entry in named},
        scales={entry.column: _scale(entry) for entry in named if entry.unit is not None},
        values=fixed,
        defaults=check_defaults(defaults),
    )


def _scale(entry: Mapped) -> float:
    """What a figure in the entry's unit has to be multiplied by: as a log's column is read."""
    if TRANSFER_COLUMNS[entry.column] not in ("double", "int64", "int32"):
        raise SpecError(f"--map {entry.column}: in Parquet it has no unit, so not {entry.unit!r}")
    # A unit may be less than one bit or byte, so a million of it tells.
    million = entry.reader()("1000000")
    assert isinstance(million, int | float)
    return million / 1e6
