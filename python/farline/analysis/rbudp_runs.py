"""Blasts of kept runs, to put beside the model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from farline.errors import UsageError
from farline.models.rbudp import Case
from farline.models.rbudp_measured import Measured, measured
from farline.store import RunFilter, Store


def measured_runs(
    store_path: Path | None, runs: Sequence[str], campaign: str | None, stated: Case
) -> tuple[Measured, ...]:
    """The blasts of the runs that are named, and of a campaign's RBUDP runs; each run once.

    Raises:
        UsageError: when a run is not there, or what was named holds no blast that ended whole.
    """
    store = Store.to_read(store_path)
    rows: dict[str, Mapping[str, Any]] = {}
    for run_id in runs:
        row = store.find_one(run_id)
        if not _of(row, stated):
            raise UsageError(f"run {row['run_id']} has no complete RBUDP blast at its sender")
        rows[row["run_id"]] = row
    if campaign:
        found = _campaign(store, campaign)
        if not any(_of(row, stated) for row in found):
            raise UsageError(f"campaign {campaign!r} has no complete RBUDP blast")
        rows |= {row["run_id"]: row for row in found}
    return tuple(one for row in rows.values() for one in _of(row, stated))


def _campaign(store: Store, campaign: str) -> list[Mapping[str, Any]]:
    """Runs of a campaign that ended well, over paths that did what they should."""
    wanted = RunFilter(campaign=store.campaign_name(campaign), transport="rbudp", status="complete")
    return [row for row in store.runs(wanted).to_pylist() if row["valid"] is not False]


def _of(row: Mapping[str, Any], stated: Case) -> tuple[Measured, ...]:
    record = json.loads(row["record"])
    try:
        return measured(record, stated, row["path.rtt_s"], row["path.loss"])
    except ValueError as error:
        raise UsageError(f"run {row['run_id']}: {error}") from None
