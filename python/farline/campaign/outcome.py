"""What the campaign needs to know of a run, from its record or from its row in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from farline.campaign.machine import Cell, Outcome

_FROM_ROW = (
    "run_id", "status", "total_bps", "retransmits", "lost_packets", "cpu_s_per_gb",
    "verdict_limit", "session_s", "run_s", "error_kind", "error", "valid",
)  # fmt: skip


def outcome_of_record(record: Mapping[str, Any]) -> Outcome:
    """The outcome in a `RunRecord`."""
    from farline.store.columns import path_columns, run_results

    error = record.get("error") or {}
    row = {
        **run_results(record),
        **{name: record[name] for name in ("run_id", "status", "session_s", "run_s")},
        "valid": path_columns(record).get("valid"),
        "error_kind": error.get("kind"),
        "error": error.get("message"),
    }
    stamp = (record.get("path") or {}).get("stamp") or {}
    reasons = "; ".join(stamp.get("reasons") or ())
    return replace(_outcome(row, error.get("retry_after_s")), not_valid=reasons)


def outcome_of_row(row: Mapping[str, Any]) -> Outcome:
    """The outcome in a row of `store.reader.Reader.campaign_runs`."""
    return _outcome(row, None)


def cell_of_row(row: Mapping[str, Any]) -> Cell:
    """The place of a run in its campaign, from its row."""
    return Cell(row["setting"], row["block"], row["slot"], row["attempt"], row["reference"])


def _outcome(row: Mapping[str, Any], retry_after_s: float | None) -> Outcome:
    values = {name: row[name] for name in _FROM_ROW}
    values["session_s"] = values["session_s"] or 0.0
    values["run_s"] = values["run_s"] or 0.0
    return Outcome(**values, retry_after_s=retry_after_s)
