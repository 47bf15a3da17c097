"""What an engine answered, with names for numbers: the long form of cells.

A row for each keys, round-trip time and bucket of rates. `profiles.cells` makes cells of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from farline.spec.transfers import TRANSFER_COLUMNS
from farline.store.transfers.cell_query import BUCKETS, MEASURES, NO_RATE, PLACE
from farline.store.transfers.selection import SITE_KEYS
from farline.store.transfers.sites import FROM, TO, HostSites, pair_text

if TYPE_CHECKING:
    import pyarrow as pa

CELL_COLUMNS: dict[str, str] = {
    "rtt_ms": "double",
    "bucket": "int32",
    "n": "int64",
    "sum_bps": "double",
    "sum_square": "double",
    "low_bps": "double",
    "high_bps": "double",
    "moved_bytes": "int64",
    "busy_s": "double",
    "capacity_bps": "double",
}
"""Columns behind the keys, in order. `rtt_ms` is null where no round-trip time is known. `bucket`
is floor(64 log2 of the rate in bit/s), null for transfers without a rate: those failed, and `n`
counts them. Sums, extremes, bytes and seconds are over the `n` rates, in bit/s; null, 0 and 0 for
failed ones. `capacity_bps` is the largest capacity of the connections in the row."""

_HOW = {"low_bps": "min", "high_bps": "max", "capacity_bps": "max"}


def cell_table(
    answer: pa.Table, by: Sequence[str], known: HostSites | None, rtt_decimals: int
) -> pa.Table:
    """The long form of cells from the answer to `cell_query.cell_rows`: `by`, then `CELL_COLUMNS`.

    Connections give the round-trip time of rows that have none, and the capacity. Rows are sorted
    by their keys, and none has the same keys, round-trip time and bucket as another.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    names = _sites_of(answer, known)
    columns = {name: names[name] if name in SITE_KEYS else answer[name] for name in by}
    rtt_key, bucket = np.divmod(answer[PLACE].to_numpy(), BUCKETS)
    rtt = pa.array(rtt_key / 10.0**rtt_decimals, mask=rtt_key < 0)
    columns["rtt_ms"] = pc.coalesce(rtt, names["rtt_ms"])
    columns["bucket"] = pa.array(bucket.astype(np.int32), mask=bucket == NO_RATE)
    failed = pc.is_null(columns["bucket"])
    for name in MEASURES:
        empty = {"moved_bytes": 0, "busy_s": 0.0}.get(name)
        value = pc.cast(answer[name], CELL_COLUMNS[name])
        columns[name] = value if name == "n" else pc.if_else(failed, empty, value)
    columns["capacity_bps"] = names["capacity_bps"]
    merged = _merged(pa.table(columns), [*by, "rtt_ms", "bucket"])
    return merged.select([*by, *CELL_COLUMNS]).cast(cell_schema(by))


def cell_schema(by: Sequence[str]) -> pa.Schema:
    """Arrow schema of the long form for some keys."""
    import pyarrow as pa

    kinds = {"period": "int64", **dict.fromkeys(SITE_KEYS, "string"), **TRANSFER_COLUMNS}
    fields = {name: kinds[name] for name in by} | CELL_COLUMNS
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in fields.items()])


def row_sites(rows: pa.Table, known: HostSites | None) -> dict[str, list[Any]]:
    """Of each row its sites' names, the stated capacity and round-trip time, by its hosts."""
    numbers = {} if known is None else known.numbers
    pairs = [
        (numbers.get(sender), numbers.get(receiver))
        for sender, receiver in zip(
            rows["from_host"].to_pylist(), rows["to_host"].to_pylist(), strict=True
        )
    ]
    return _about(pairs, known)


def _merged(table: pa.Table, keys: list[str]) -> pa.Table:
    """Rows of equal keys as one, sorted by the keys."""
    measures = [name for name in CELL_COLUMNS if name not in keys]
    if len(table):
        grouped = table.group_by(keys).aggregate([(m, _HOW.get(m, "sum")) for m in measures])
        table = grouped.rename_columns([*keys, *measures])
    # Booleans and texts sort too; unknown values last.
    return table.sort_by([(key, "ascending") for key in keys])


def _sites_of(answer: pa.Table, known: HostSites | None) -> dict[str, pa.Array]:
    """Of each row of an answer what `_about` says, as Arrow arrays; pairs are looked up once."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = [
        pc.fill_null(answer[name].combine_chunks(), -1).to_numpy(zero_copy_only=False)
        if name in answer.column_names
        else np.full(len(answer), -1)
        for name in (FROM, TO)
    ]
    pairs, places = np.unique(np.stack(ends), axis=1, return_inverse=True)
    numbers = [(_number(a), _number(b)) for a, b in pairs.T.tolist()]
    kinds = {"capacity_bps": pa.float64(), "rtt_ms": pa.float64()}
    return {
        name: pa.array(values, kinds.get(name, pa.string())).take(pa.array(places.ravel()))
        for name, values in _about(numbers, known).items()
    }


def _number(code: int) -> int | None:
    return None if code < 0 else code


def _about(
    pairs: Sequence[tuple[int | None, int | None]], known: HostSites | None
) -> dict[str, list[Any]]:
    """Of each pair of sites' numbers: names, capacity, round-trip time; None without sites."""
    names = ("from_site", "to_site", "site_pair", "rtt_ms", "capacity_bps")
    if known is None:
        return {name: [None] * len(pairs) for name in names}
    return {
        "from_site": [known.name(a) for a, _ in pairs],
        "to_site": [known.name(b) for _, b in pairs],
        "site_pair": [pair_text(known, pair) for pair in pairs],
        "rtt_ms": [known.rtt_ms(pair) for pair in pairs],
        "capacity_bps": [known.capacity_bps(pair) for pair in pairs],
    }
