"""A log as it is read: its format, its tables, its tally."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import SpecError
from farline.formats.format import Format
from farline.formats.formats import detect, formats
from farline.formats.mapping import Value, check_defaults, parse_mapping
from farline.formats.reading import OnProgress, Reading
from farline.formats.tally import OnMalformed, Tally
from farline.spec.transfers import MODALITIES

if TYPE_CHECKING:
    import pyarrow as pa


class Log:
    """A log that can be read, as often as wanted; memory stays bounded.

    `tally` belongs to the latest `batches()`, and is whole when these are exhausted.
    """

    def __init__(
        self,
        path: Path,
        kind: Format,
        mapping: str | None = None,
        defaults: Mapping[str, Value] | None = None,
        on_progress: OnProgress | None = None,
        on_malformed: OnMalformed | None = None,
    ) -> None:
        """Keeps what is needed to read; opens nothing."""
        self.path, self.format = path, kind
        self.tally = Tally()
        self._mapping = None if mapping is None else parse_mapping(mapping)
        self._defaults = check_defaults(defaults or {})
        self._on_progress, self._on_malformed = on_progress, on_malformed

    def batches(self) -> Iterator[pa.Table]:
        """Tables with the columns of `arrow_schema()`, from the start of the log.

        Raises:
            SpecError: when a table's columns are not what the mapping says, or nothing says of
                which modality a transfer is.
            SystemFailure: when the file cannot be read.
        """
        self.tally = Tally(filled=dict.fromkeys(self._defaults, 0))
        reading = Reading(
            self.path,
            self.tally,
            mapping=self._mapping,
            on_malformed=self._on_malformed,
            on_progress=self._on_progress,
        )
        for table in self.format.read(reading):
            filled = _filled(table, self._defaults, self.tally)
            if filled["modality"].null_count:
                raise SpecError(
                    f"{self.path}: the modality is unknown: map it, or use --set modality=E "
                    f"({', '.join(MODALITIES)})"
                )
            yield filled


def read_log(
    path: str | Path,
    kind: str | None = None,
    mapping: str | None = None,
    *,
    defaults: Mapping[str, Value] | None = None,
    on_progress: OnProgress | None = None,
    on_malformed: OnMalformed | None = None,
) -> Log:
    """The log at `path`, ready to be read.

    `kind` is the name of a format; without one the content decides. `mapping` names the columns
    of a table (see `mapping.parse_mapping`). `defaults` are values for columns that the log
    leaves empty, as texts with units or as values. `on_progress` is told bytes read and bytes in
    all, of the file as it lies on the disk; `on_malformed` is told every record that could not
    be read.

    Raises:
        SpecError: for an unknown format, a mapping or a default that is not allowed, or a log
            that no format fits.
        SystemFailure: when the file cannot be read.
    """
    if kind is None and mapping is not None:
        kind = "csv"
    name = detect(path) if kind is None else kind
    known = formats()
    if name not in known:
        raise SpecError(f"{name!r} is not a log format: use one of {', '.join(sorted(known))}")
    if mapping is not None and name != "csv":
        raise SpecError(f"a column mapping works with format csv, not with {name}")
    return Log(Path(path), known[name], mapping, defaults, on_progress, on_malformed)


def _filled(table: pa.Table, defaults: Mapping[str, Value], tally: Tally) -> pa.Table:
    """The table with its empty cells filled in, and counted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, value in defaults.items():
        index = table.schema.get_field_index(name)
        field = table.schema.field(index)
        tally.filled[name] += table.column(index).null_count
        column = pc.fill_null(table.column(index), pa.scalar(value, field.type))
        table = table.set_column(index, field, column)
    return table
