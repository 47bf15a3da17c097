"""What had been estimated of a copy that is complete now, from the copies before it alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from farline.copying.estimates import kept_history
from farline.estimating import Question, estimate_transfer
from farline.estimating.history import finished_of
from farline.store.paths import PathEnds, transfer_of
from farline.tools.events import EstimateChecked

if TYPE_CHECKING:
    from farline.estimating import TransferEstimate
    from farline.spec._types import RunRecord
    from farline.store.paths import PastTransfer

COVER = 0.8


class LookBack(NamedTuple):
    """What was estimated, and how far off it was."""

    checked: EstimateChecked
    label: dict[str, Any]
    """Kept with the run: later estimates are calibrated by these scores."""


def look_back(record: RunRecord, store_path: Path | None) -> LookBack | None:
    """The estimate that a complete copy would have had, had one been asked for as it began.

    None where that says nothing: no copy had gone over the path before, a dry run, one that found
    part of the bytes there already or was held to a rate.

    Raises:
        FarlineError: when the store cannot be read.
    """
    this = transfer_of(record)
    if this is None or this.started_s is None or record["status"] != "complete":
        return None
    if (done := finished_of(this)) is None:
        return None
    ends = PathEnds.between(this.from_host, this.to_host)
    rows = [row for row in kept_history(store_path, ends) if row.modality == "E"]
    estimate = estimate_transfer(_question(this), rows, ends)
    if estimate.basis != "own-path":
        return None
    one, made = estimate.interval(COVER), estimate.prediction
    checked = EstimateChecked(
        estimate.duration_s, one.duration_low_s, one.duration_high_s, done.duration_s
    )
    return LookBack(
        checked, _label(estimate, made.score(done.log_rate), made.residual(done.log_rate))
    )


def _question(this: PastTransfer) -> Question:
    """The copy as it was before it began."""
    assert this.started_s is not None
    return Question(
        this.bytes or 0, this.files or 1, this.started_s, streams=this.streams,
        concurrency=this.concurrency, pipelining=this.pipelining, own_kernel=this.from_kernel,
    )  # fmt: skip


def _label(estimate: TransferEstimate, score: float, residual: float) -> dict[str, Any]:
    one = estimate.interval(COVER)
    return {
        "score": round(score, 6),
        "residual": round(residual, 6),
        "estimated_s": estimate.duration_s,
        "low_s": one.duration_low_s,
        "high_s": one.duration_high_s,
        "cover": COVER,
        "transfers": estimate.transfers,
    }
