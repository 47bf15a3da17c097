"""Every question about transfers, defined once as an Ibis expression over canonical rows.

An expression knows no engine. What makes the answers equal on all of them: round-trip times and
rates become whole numbers before they are grouped, by multiplication and floor alone; counts and
sums are all that is asked for. `BUCKET_SLACK` keeps exact powers of two, such as 1 GiB/s, in their
own bucket where an engine's logarithm is one bit short.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from farline.store.transfers.selection import SITE_KEYS, Selection
from farline.store.transfers.sites import FROM, TO

if TYPE_CHECKING:
    import ibis.expr.types as ir

BUCKETS_PER_OCTAVE = 64
BUCKET_SLACK = 1e-9
SMALLEST_RATE_BPS, LARGEST_RATE_BPS = 1.0, 1e18
"""What is not between these is no rate; above them stand infinity and not-a-number."""
LARGEST_RTT_MS = 1e7

MEASURES = ("n", "sum_bps", "sum_square", "low_bps", "high_bps", "moved_bytes", "busy_s")
BUCKETS = 4096
"""More than rates have; the last one stands for no rate."""
NO_RATE = BUCKETS - 1
PLACE = "place"
"""Round-trip time and bucket in one number, which an engine groups by a quarter faster than by two:
`rtt_key` times BUCKETS and the bucket, where -1 stands for no round-trip time."""


def selected(rows: ir.Table, wanted: Selection) -> ir.Table:
    """The rows that fit a selection, its sites aside."""
    import ibis

    predicates: list[Any] = [_one_of(rows[name], values) for name, values in wanted.where.items()]
    if wanted.modality is not None:
        predicates.append(rows.modality == wanted.modality)
    if wanted.tools:
        predicates.append(rows.tool.isin(list(wanted.tools)))
    for moment, earliest in ((wanted.since, True), (wanted.until, False)):
        if moment is not None:
            then = ibis.literal(moment.replace(tzinfo=None), type="timestamp")
            predicates.append(rows.started_at >= then if earliest else rows.started_at < then)
    predicates += _limits(rows, wanted)
    return rows.filter(*predicates) if predicates else rows


def is_rate(rows: ir.Table) -> Any:
    """Whether a row is a complete transfer with a rate; never null."""
    rate = rows.rate_bps
    good = rows.complete & (rate >= SMALLEST_RATE_BPS) & (rate < LARGEST_RATE_BPS)
    return good.fill_null(False)


def has_rtt(rows: ir.Table) -> Any:
    """Whether a row has a round-trip time; never null."""
    return ((rows.rtt_ms >= 0) & (rows.rtt_ms < LARGEST_RTT_MS)).fill_null(False)


def first_without_rtt(rows: ir.Table) -> ir.Table:
    """A row without a round-trip time, if there is any.

    Each kind is asked for by itself, so that an engine finds by the statistics in Parquet files
    that there is none; not-a-number counts as large.
    """
    kinds = [rows.rtt_ms.isnull(), rows.rtt_ms < 0, rows.rtt_ms >= LARGEST_RTT_MS]
    first, *others = [rows.filter(kind).select("rtt_ms") for kind in kinds]
    return first.union(*others).limit(1)


def cell_rows(
    rows: ir.Table,
    by: Sequence[str],
    *,
    pairs: str,
    rtt_decimals: int,
    period_s: float | None = None,
) -> ir.Table:
    """One row per cell and bucket of rates: keys, `PLACE`, and `MEASURES`.

    Round-trip times are counted in units of 10^-rtt_decimals ms. The numbers of both sites are keys
    too, with `pairs` "all"; with "without-rtt" only of rows that have no round-trip time; not at
    all with "none".
    """
    import ibis

    scale = 10**rtt_decimals
    steps = (rows.rtt_ms * scale + 0.5).floor().cast("int64")
    rtt_key = ibis.ifelse(has_rtt(rows), steps, -1)
    rate = ibis.ifelse(is_rate(rows), rows.rate_bps, ibis.null("float64"))
    bucket = (rate.log2() * BUCKETS_PER_OCTAVE + BUCKET_SLACK).floor().cast("int64")
    keyed = rows.select(
        **{name: _key(rows, name, period_s) for name in by if name not in SITE_KEYS},
        **_site_keys(rows, by, pairs, rtt_key),
        **{PLACE: rtt_key * BUCKETS + bucket.fill_null(NO_RATE)},
        rate=rate,
        moved=rows.bytes,
        busy=rows.duration_s,
    )
    groups = [name for name in keyed.columns if name not in ("rate", "moved", "busy")]
    return keyed.group_by(groups).aggregate(
        n=keyed.count(),
        sum_bps=keyed.rate.sum(),
        sum_square=(keyed.rate * keyed.rate).sum(),
        low_bps=keyed.rate.min(),
        high_bps=keyed.rate.max(),
        moved_bytes=keyed.moved.sum().fill_null(0),
        busy_s=keyed.busy.sum().fill_null(0.0),
    )


def totals(rows: ir.Table, *, has_sites: bool) -> ir.Table:
    """One row: how many rows there are, and how many of some kinds."""
    good = is_rate(rows)
    asked = rows.aggregate(
        rows=rows.count(),
        complete=good.sum(),
        without_rate=(rows.complete.fill_null(False) & ~good).sum(),
        without_rtt=(~has_rtt(rows)).sum(),
    )
    if not has_sites:
        return asked
    stranger = rows[FROM].isnull() | rows[TO].isnull()
    return asked.cross_join(rows.aggregate(of_unknown_hosts=stranger.sum()))


def host_counts(rows: ir.Table) -> ir.Table:
    """How often each host sends or receives; a host that does both in one row counts once."""
    ends = rows.select(host=rows.from_host).union(
        rows.filter(rows.to_host != rows.from_host.fill_null("")).select(host="to_host")
    )
    known = ends.filter(ends.host.notnull())
    return known.group_by("host").aggregate(rows=known.count())


def values_of(rows: ir.Table, column: str) -> ir.Table:
    """Each value of a column and how many rows have it."""
    return rows.group_by(value=rows[column]).aggregate(rows=rows.count())


def first_rows(rows: ir.Table, limit: int) -> ir.Table:
    """So many rows, the newest first."""
    import ibis

    order = [ibis.desc("started_at", nulls_first=False), "source", "from_host", "to_host"]
    return rows.order_by(*order).limit(limit)


def _key(rows: ir.Table, name: str, period_s: float | None) -> Any:
    if name != "period":
        return rows[name]
    return (rows.started_at.epoch_seconds() / period_s).floor().cast("int64")


def _site_keys(rows: ir.Table, by: Sequence[str], pairs: str, rtt_key: Any) -> dict[str, Any]:
    """Numbers of sites as keys: those asked for, and those that tell connections apart."""
    import ibis

    both = pairs == "all" or "site_pair" in by
    keys = {}
    for name, key in ((FROM, "from_site"), (TO, "to_site")):
        if both or key in by:
            keys[name] = rows[name]
        elif pairs == "without-rtt":
            keys[name] = ibis.ifelse(rtt_key < 0, rows[name], ibis.null("int32"))
    return keys


def _limits(rows: ir.Table, wanted: Selection) -> list[Any]:
    predicates: list[Any] = []
    slow = ~is_rate(rows)
    if wanted.min_rate_bps is not None:
        predicates.append(slow | (rows.rate_bps >= wanted.min_rate_bps))
    if wanted.max_rate_bps is not None:
        predicates.append(slow | (rows.rate_bps <= wanted.max_rate_bps))
    for column, low, high in (
        (rows.bytes, wanted.min_bytes, wanted.max_bytes),
        (rows.duration_s, wanted.min_duration_s, wanted.max_duration_s),
    ):
        if low is not None:
            predicates.append(column >= low)
        if high is not None:
            predicates.append(column <= high)
    return predicates


def _one_of(column: Any, values: Sequence[object]) -> Any:
    """Whether a column has one of some values; None stands for unknown."""
    known = [value for value in values if value is not None]
    if not known:
        return column.isnull()
    fits = column.isin(known)
    return fits | column.isnull() if None in values else fits
