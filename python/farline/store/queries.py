"""Every query of the store, defined once as an Ibis expression over three tables.

`runs` is the runs table (`columns.run_columns`), `samples` has `run_id` and the sample columns,
`links` has `run_id` and the columns of link samples, `mover` those of samples of files.
An expression does not know which engine runs it; `reader` binds it to embedded DuckDB.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from farline.store.columns import column_of, run_columns
from farline.store.filters import RunFilter

if TYPE_CHECKING:
    import ibis.expr.types as ir


def select_runs(runs: ir.Table, wanted: RunFilter, limit: int | None = None) -> ir.Table:
    """Rows of the runs that fit, oldest first; with `limit`, the newest so many of them."""
    predicates = _predicates(runs, wanted)
    rows = runs.filter(*predicates) if predicates else runs
    if limit is not None:
        rows = rows.order_by(rows.run_id.desc()).limit(limit)
    return rows.order_by("run_id")


def last_run(runs: ir.Table) -> ir.Table:
    """The newest run's row, or none."""
    return runs.order_by(runs.run_id.desc()).limit(1)


def runs_named(runs: ir.Table, part: str) -> ir.Table:
    """Rows of the runs whose name begins or ends so."""
    fits = runs.run_id.startswith(part) | runs.run_id.endswith(part)
    return runs.filter(fits).order_by("run_id")


def samples_of(samples: ir.Table, run_ids: Sequence[str]) -> ir.Table:
    """Samples of some runs, in the order in which an end took them."""
    rows = samples.filter(samples.run_id.isin(list(run_ids)))
    return rows.order_by("run_id", "end", "stream", "start_us")


def links_of(links: ir.Table, run_ids: Sequence[str]) -> ir.Table:
    """Link samples of some runs, link by link, in the order of time."""
    rows = links.filter(links.run_id.isin(list(run_ids)))
    return rows.order_by("run_id", "link", "direction", "start_us")


def mover_of(mover: ir.Table, run_ids: Sequence[str]) -> ir.Table:
    """Samples of the files of some copies, end by end, in the order of time."""
    rows = mover.filter(mover.run_id.isin(list(run_ids)))
    return rows.order_by("run_id", "end", "role", "start_us")


def campaigns(runs: ir.Table) -> ir.Table:
    """One row per campaign: when it started, and how many runs ended how; newest first."""
    import ibis

    named = runs.filter(runs.campaign.notnull())
    rows = named.group_by("campaign").aggregate(
        started_at=named.started_at.min(),
        runs=named.count(),
        complete=(named.status == "complete").sum(),
        partial=(named.status == "partial").sum(),
        failed=(named.status == "failed").sum(),
    )
    return rows.order_by(ibis.desc("started_at"))


def campaign_runs(runs: ir.Table, campaign: str) -> ir.Table:
    """What a campaign's machine needs to know of its runs, oldest first."""
    rows = runs.filter(runs.campaign == campaign)
    return rows.select(
        "run_id",
        "status",
        "setting",
        "block",
        "slot",
        "attempt",
        "reference",
        "error_kind",
        "error",
        "total_bps",
        "retransmits",
        "lost_packets",
        "cpu_s_per_gb",
        "verdict_limit",
        "session_s",
        "run_s",
        "valid",
    ).order_by("run_id")


def _predicates(runs: ir.Table, wanted: RunFilter) -> list[ir.BooleanValue]:
    predicates: list[ir.BooleanValue] = []
    for name in ("campaign", "transport", "status"):
        value = getattr(wanted, name)
        if value is not None:
            predicates.append(runs[name] == value)
    if wanted.since is not None:
        predicates.append(runs.started_at >= wanted.since)
    if wanted.run_ids:
        predicates.append(runs.run_id.isin(list(wanted.run_ids)))
    predicates += [_one_of(runs, name, values) for name, values in wanted.where.items()]
    return predicates


def _one_of(runs: ir.Table, name: str, values: Sequence[object]) -> ir.BooleanValue:
    """Whether column `name` has one of `values`; None stands for "left open"."""
    import ibis

    name = column_of(name)
    column = runs[name]
    kept = (_stored(name, value) for value in values if value is not None)
    known = [ibis.literal(value, type=column.type()) for value in kept]
    choices: list[ir.BooleanValue] = [column.isin(known)] if known else []
    if None in values:
        choices.append(column.isnull())
    return functools.reduce(operator.or_, choices, ibis.literal(False))


def _stored(name: str, value: object) -> object:
    """A value as its column has it: lists are JSON texts there."""
    import json

    if isinstance(value, list | dict):
        return json.dumps(value, separators=(",", ":"))
    return float(value) if run_columns()[name] == "double" and isinstance(value, int) else value
