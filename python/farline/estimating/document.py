"""An estimate as the document that `farline estimate --json` prints and a service answers."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from farline.estimating.times import FIRST_S, LAST_S, rfc3339

if TYPE_CHECKING:
    from farline.estimating.estimate import TransferEstimate
    from farline.estimating.path_estimator import Interval
    from farline.spec._types import EstimateInterval, NetworkReservation
    from farline.spec._types import TransferEstimate as Document

SCHEMA = 1


def document_of(
    estimate: TransferEstimate, source: str, destination: str, zone: tzinfo | None = None
) -> Document:
    """The document; times have the offset of `zone`, this host's if None."""

    def text(at_s: float | None) -> str | None:
        # A latest start may lie before the calendar begins: then there is no date of it.
        return None if at_s is None or not has_date(at_s) else rfc3339(at(at_s, zone))

    asked, sure = estimate.question, estimate.at_confidence
    return {
        "schema": SCHEMA,
        "source": source,
        "destination": destination,
        "estimated_at": rfc3339(at(asked.now_s, zone)),
        "bytes": asked.total_bytes,
        "files": asked.files,
        "streams": estimate.streams,
        "rate_bps": estimate.rate_bps,
        "duration_s": estimate.duration_s,
        "intervals": [_interval(one) for one in estimate.intervals],
        "confidence": asked.confidence,
        "rate_at_confidence_bps": sure.rate_low_bps,
        "duration_at_confidence_s": sure.duration_high_s,
        "basis": estimate.basis,
        "transfers": estimate.transfers,
        "newest_transfer": text(estimate.newest_s),
        "new_kind": estimate.is_new_kind,
        "start": rfc3339(at(asked.begins_s, zone)),
        "deadline": text(asked.deadline_s),
        "meets_deadline": estimate.meets_deadline,
        "deadline_confidence": _rounded(estimate.deadline_confidence),
        "latest_start": text(estimate.latest_start_s),
        "reservation": _reservation(estimate, zone),
    }


def at(seconds: float, zone: tzinfo | None) -> datetime:
    """A POSIX time in a zone, in this host's if None."""
    return datetime.fromtimestamp(seconds, UTC).astimezone(zone)


def has_date(seconds: float) -> bool:
    """Whether a POSIX time is within the years that have dates."""
    return FIRST_S <= seconds <= LAST_S


def _rounded(confidence: float | None) -> float | None:
    return None if confidence is None else round(confidence, 3)


def _interval(one: Interval) -> EstimateInterval:
    return {
        "cover": one.cover,
        "rate_low_bps": one.rate_low_bps,
        "rate_high_bps": one.rate_high_bps,
        "duration_low_s": one.duration_low_s,
        "duration_high_s": one.duration_high_s,
    }


def _reservation(estimate: TransferEstimate, zone: tzinfo | None) -> NetworkReservation | None:
    if (one := estimate.reservation) is None:
        return None
    return {
        "rate_bps": one.rate_bps,
        "start": rfc3339(at(one.start_s, zone)),
        "end": rfc3339(at(one.end_s, zone)),
    }
