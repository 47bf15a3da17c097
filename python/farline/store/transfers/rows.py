"""Rows of any origin with the columns of a transfer: the missing null, the wrong refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError
from farline.spec.transfers import MODALITIES, TRANSFER_COLUMNS
from farline.store.transfers.selection import checked_column

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    import pyarrow as pa

IBIS_TYPES = {
    "string": "string",
    "timestamp": "timestamp",
    "double": "float64",
    "int64": "int64",
    "int32": "int32",
    "bool": "boolean",
}
_ALLOWED = {
    "string": "text",
    "timestamp": "timestamp",
    "double": "any number",
    "int64": "any number",
    "int32": "any number",
    "bool": "boolean",
}


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files by other people, and which of their columns is what.

    `pattern` is a path, a pattern with `*`, or whatever URL the engine can read; `table` instead
    names a table that the engine has. `columns` says, for a column of a transfer, what it is called
    there; a column that is not named has the same name. `scales` multiplies a figure, such as
    `{"rate_bps": 1e6}` for Mbit/s. `values` are for all rows, such as `{"modality": "E"}`;
    `defaults` for those where the column is empty, or not there.

    Raises:
        SpecError: for an unknown column, or one that has both a name and a value.
    """

    pattern: str
    columns: Mapping[str, str] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks the columns that are named."""
        for name in (*self.columns, *self.scales, *self.values, *self.defaults):
            checked_column(name)
        both = sorted(set(self.columns) & set(self.values))
        if both:
            raise SpecError(f"{self.pattern}: {both[0]} has both a column and a value; use one")
        for name in self.scales:
            if TRANSFER_COLUMNS[name] not in ("double", "int64", "int32"):
                raise SpecError(f"{self.pattern}: {name} is not a number, so it has no scale")


def transfer_schema() -> pa.Schema:
    """The Arrow schema of transfers; times are UTC in microseconds."""
    import pyarrow as pa

    types = {"timestamp": pa.timestamp("us", tz="UTC")}
    return pa.schema(
        [
            (name, types.get(kind) or pa.type_for_alias(kind))
            for name, kind in TRANSFER_COLUMNS.items()
        ]
    )


def checked_table(table: pa.Table) -> pa.Table:
    """A table with exactly the columns of `transfer_schema`, in order.

    Raises:
        SpecError: when a column is missing or more, or its values do not fit.
    """
    import pyarrow as pa

    schema = transfer_schema()
    if sorted(table.column_names) != sorted(schema.names):
        odd = sorted(set(table.column_names) ^ set(schema.names))
        raise SpecError(f"transfers: columns {', '.join(odd) or 'twice'} are missing or too many")
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise SpecError(f"transfers: {error}") from error


def canonical(table: ir.Table, source: ParquetFiles, fill_rates: bool = False) -> ir.Table:
    """`table` with exactly the columns of a transfer, each of its type.

    A column that is not there is null. Of those that a transfer cannot lack: `rate_bps` is payload
    over duration where there is no such column (and with `fill_rates` where it is empty, but for
    what failed), `complete` is whether there is a rate, `source` the pattern, `tool` is `unknown`;
    `modality` must be there or be given a value.

    Raises:
        SpecError: for a column of a wrong type, or one that is needed and not there.
    """
    import ibis

    for name, theirs in source.columns.items():
        if theirs not in table.columns:
            raise SpecError(
                f"{source.pattern}: {name} is mapped to {theirs!r}, but there is no such column; "
                f"available: {', '.join(table.columns)}"
            )
    found: dict[str, Any] = {}
    for name in TRANSFER_COLUMNS:
        theirs = source.columns.get(name, name)
        if name in source.values:
            found[name] = _literal(name, source.values[name], source)
        elif theirs in table.columns:
            found[name] = _cast(table[theirs], name, source)
            if name in source.defaults:
                default = _literal(name, source.defaults[name], source)
                found[name] = ibis.coalesce(found[name], default)
        elif name in source.defaults:
            found[name] = _literal(name, source.defaults[name], source)
        else:
            found[name] = ibis.null(IBIS_TYPES[TRANSFER_COLUMNS[name]])
    present = {*source.values, *source.defaults} | {
        name for name in TRANSFER_COLUMNS if source.columns.get(name, name) in table.columns
    }
    return table.select(**_completed(found, present, source, fill_rates))


def rate_is_to_fill(rows: ir.Table) -> Any:
    """Of canonical rows: those without a rate that have what it is found from."""
    return rows.rate_bps.isnull() & (rows.bytes > 0) & (rows.duration_s > 0)


def unknown_modality(rows: ir.Table) -> Any:
    """Of canonical rows: those that are of none of `MODALITIES`."""
    return rows.modality.isnull() | ~rows.modality.isin(MODALITIES)


def _completed(
    found: dict[str, Any], present: set[str], source: ParquetFiles, fill_rates: bool
) -> dict[str, Any]:
    """The columns that a transfer cannot lack, where the source has them not."""
    import ibis

    if "modality" not in present:
        raise SpecError(
            f"{source.pattern}: no column modality; map a column to it, or set it to one of "
            f"{', '.join(MODALITIES)}"
        )
    if "rate_bps" not in present:
        if not {"bytes", "duration_s"} <= present:
            raise SpecError(
                f"{source.pattern}: no column rate_bps, nor bytes and duration_s to compute it from"
            )
        found["rate_bps"] = _from_bytes(found)
    elif fill_rates:
        rate_bps = _from_bytes(found)
        if "complete" in present:
            rate_bps = ibis.ifelse(found["complete"], rate_bps, ibis.null("float64"))
        found["rate_bps"] = ibis.coalesce(found["rate_bps"], rate_bps)
    if "complete" not in present:
        found["complete"] = found["rate_bps"].notnull()
    for name, value in (("tool", "unknown"), ("source", source.pattern)):
        if name not in present:
            found[name] = ibis.literal(value)
    return found


def _from_bytes(found: Mapping[str, Any]) -> Any:
    import ibis

    return ibis.ifelse(
        found["duration_s"] > 0,
        found["bytes"] * 8.0 / found["duration_s"],
        ibis.null("float64"),
    )


def _cast(column: Any, name: str, source: ParquetFiles) -> Any:
    """A column as the type it must have; whole numbers may be held as floating point."""
    import ibis

    kind, theirs = TRANSFER_COLUMNS[name], column.type()
    if not _fits(theirs, kind):
        raise SpecError(
            f"{source.pattern}: column {column.get_name()!r} is {theirs}, but {name} must be"
            f" {_ALLOWED[kind]}"
        )
    scale = source.scales.get(name, 1.0)
    if scale != 1.0:
        column = column.cast("float64") * scale
    if kind in ("int64", "int32") and not column.type().is_integer():
        whole = column.cast("float64")
        # pandas holds whole numbers beside unknown ones so, and unknown ones as not-a-number.
        column = ibis.ifelse(whole.isnan(), ibis.null("float64"), whole).round()
    return (
        column if column.type() == ibis.dtype(IBIS_TYPES[kind]) else column.cast(IBIS_TYPES[kind])
    )


def _fits(theirs: dt.DataType, kind: str) -> bool:
    if theirs.is_null():
        return True
    if kind == "string":
        return bool(theirs.is_string() or theirs.is_uuid())
    if kind == "timestamp":
        return bool(theirs.is_timestamp())
    if kind == "bool":
        return bool(theirs.is_boolean())
    return bool(theirs.is_numeric() and not theirs.is_boolean())


def _literal(name: str, value: object, source: ParquetFiles) -> Any:
    import ibis

    kind = IBIS_TYPES[TRANSFER_COLUMNS[name]]
    if name == "modality" and value not in MODALITIES:
        raise SpecError(
            f"{source.pattern}: modality {value!r} is not one of {', '.join(MODALITIES)}"
        )
    try:
        return ibis.literal(value, type=kind)
    except (TypeError, ValueError, ibis.IbisError) as error:
        raise SpecError(
            f"{source.pattern}: {name}: {value!r} is not of type {kind}: {error}"
        ) from None
