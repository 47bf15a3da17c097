"""`farline.estimate`: how long a copy will take, how sure that is, and what to reserve."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from html import escape
from typing import TYPE_CHECKING

from farline.api.copy import Location, location_texts
from farline.api.stores import StoreLike, folder_of
from farline.errors import UsageError

if TYPE_CHECKING:
    from farline.estimating import Question, TransferEstimate
    from farline.estimating.path_estimator import Interval
    from farline.spec._types import TransferEstimate as Document


@dataclass(frozen=True)
class Estimate:
    """What a copy is expected to take. Durations are seconds; points in time have their zone."""

    transfer: TransferEstimate
    """The estimate itself, with the prediction that it rests on."""
    locations: tuple[str, ...]
    zone: tzinfo | None = None
    """Of the deadline that was given; None is this host's."""

    @property
    def duration_s(self) -> float:
        """The duration in the middle: half of such copies take longer."""
        return self.transfer.duration_s

    @property
    def rate_bps(self) -> float:
        """The rate in the middle: payload bits per second over the whole time."""
        return self.transfer.rate_bps

    @property
    def sure_duration_s(self) -> float:
        """The duration that is kept with the confidence that was asked for."""
        return self.transfer.sure_duration_s

    def interval(self, cover: float = 0.8) -> Interval:
        """Where rate and duration of a share of such copies lie: 0.5, 0.8 or 0.95.

        Raises:
            UsageError: for another share.
        """
        try:
            return self.transfer.interval(cover)
        except KeyError:
            raise UsageError(f"cover: {cover!r} is not allowed; allowed: 0.5, 0.8, 0.95") from None

    @property
    def latest_start(self) -> datetime | None:
        """When the copy has to start for the deadline to hold.

        None without a deadline, and where it would have been before the calendar begins.
        """
        from farline.estimating.document import has_date

        at_s = self.transfer.latest_start_s
        if at_s is None or not has_date(at_s):
            return None
        return datetime.fromtimestamp(at_s, UTC).astimezone(self.zone)

    @property
    def meets_deadline(self) -> bool | None:
        """Whether it does when started as asked; None without a deadline."""
        return self.transfer.meets_deadline

    @property
    def document(self) -> Document:
        """The document that `farline estimate --json` prints."""
        from farline.estimating.document import document_of

        *sources, destination = self.locations
        return document_of(self.transfer, ", ".join(sources), destination, self.zone)

    def __str__(self) -> str:
        """The duration and between which 8 in 10 such copies lie, in words."""
        from farline.estimating.words import headline

        return headline(self.transfer)

    def __repr__(self) -> str:
        """One line."""
        return f"<farline.Estimate of a copy to {self.locations[-1]}: {self}>"

    def _repr_html_(self) -> str:
        """The same with what it rests on, for a notebook."""
        from farline.estimating.words import basis_words

        return f"<p><b>{escape(str(self))}</b><br>{escape(basis_words(self.transfer))}</p>"


def estimate(
    source: Location | Iterable[Location],
    destination: Location,
    *,
    size_bytes: int | None = None,
    files: int | None = None,
    deadline: str | datetime | None = None,
    start: str | datetime | None = None,
    confidence: float = 0.9,
    streams: int | None = None,
    concurrency: int | None = None,
    link_bps: float | None = None,
    rtt_s: float | None = None,
    sample_s: float | None = None,
    store: StoreLike = None,
) -> Estimate:
    """Estimates how long a copy from `source` to `destination` will take; nothing is sent.

    With `sample_s` the copy itself runs so long first: what arrives is kept, and a copy continues
    there.

    Without `size_bytes` sources on this host are counted; with it alone, it is of one file. A
    `deadline` or `start` is a text as `farline estimate` takes it ("2026-12-01 18:00", "36h") or a
    `datetime`, which is in this host's zone if it has none. `confidence` is that with which a
    deadline is to hold, 0.5 to 0.99. `link_bps` and `rtt_s` are of the path, where no copy over it
    has shown them.

    Raises:
        UsageError: for locations, amounts, times or a confidence that cannot be.
        FarlineError: what the sample failed with.
        SystemFailure: when the store cannot be read.
    """
    from farline.copying.estimates import estimate_copy, question_of
    from farline.copying.locations import read_endpoints
    from farline.copying.sample import take_sample

    locations = location_texts(source, destination)
    ends = read_endpoints(locations)

    def asked(sample: str | None) -> tuple[Question, tzinfo | None]:
        return question_of(
            ends, time.time(), size_bytes=size_bytes, files=files, deadline=deadline, start=start,
            confidence=confidence, streams=streams, concurrency=concurrency, link_bps=link_bps,
            rtt_s=rtt_s, sample=sample,
        )  # fmt: skip

    question, zone = asked(None)
    if sample_s is not None:
        # Asked anew: the sample has taken time, and what cannot be asked is refused before it.
        question, zone = asked(take_sample(ends, sample_s, folder_of(store)))
    return Estimate(estimate_copy(ends, question, folder_of(store)), locations, zone)
