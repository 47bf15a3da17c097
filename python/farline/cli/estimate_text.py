"""An estimate as lines for people, with a picture of its intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import tzinfo
from typing import TYPE_CHECKING

from farline.cli.shown import shown
from farline.estimating.document import at, has_date
from farline.estimating.times import time_text
from farline.estimating.words import SHARES, basis_words, headline, span_words
from farline.spec.units import counted, rate_human, size_human

if TYPE_CHECKING:
    from farline.estimating.estimate import TransferEstimate
    from farline.estimating.path_estimator import Interval

BAR_WIDTH = 20
SPANS_WIDTH = 22
"""Least width of the column of durations."""
WIDTH = 80
_SHORT_S = 3600.0
"""Reservations below it are told to the second."""


def lines(
    estimate: TransferEstimate, source: str, destination: str, zone: tzinfo | None
) -> Iterator[str]:
    """What is estimated, the headline, intervals, what it rests on, deadline and reservation."""
    asked = estimate.question
    amount = f"{size_human(asked.total_bytes)} in {counted(asked.files, 'file')}"
    yield shown(f"{amount}, {source} -> {destination}, {counted(estimate.streams, 'stream')}")
    yield headline(estimate)
    yield ""
    yield from _table(estimate)
    yield ""
    yield from _wrapped("basis", basis_words(estimate))
    yield from _deadline(estimate, zone)
    yield from _reservation(estimate, zone)


def _table(estimate: TransferEstimate) -> Iterator[str]:
    """A row for each interval: durations, rates, and where it lies between the widest's ends."""
    widest = estimate.intervals[-1]
    told = [
        f"{span_words(one.duration_low_s)} to {span_words(one.duration_high_s)}"
        for one in estimate.intervals
    ]
    width = max(SPANS_WIDTH, *map(len, told))
    for one, spans in zip(estimate.intervals, told, strict=True):
        rates = f"{rate_human(one.rate_low_bps)} to {rate_human(one.rate_high_bps)}"
        bar = _bar(one, estimate.duration_s, widest)
        yield f"{SHARES[one.cover]:<9} {spans:<{width}} {bar} {rates}"


def _bar(one: Interval, middle_s: float, widest: Interval) -> str:
    """The interval on a logarithmic scale, the middle marked."""
    low, high = math.log(widest.duration_low_s), math.log(widest.duration_high_s)

    def place(seconds: float) -> int:
        share = (math.log(seconds) - low) / (high - low) if high > low else 0.5
        return round(min(max(share, 0.0), 1.0) * (BAR_WIDTH - 1))

    first, last, middle = map(place, (one.duration_low_s, one.duration_high_s, middle_s))
    cells = ["━" if first <= cell <= last else " " for cell in range(BAR_WIDTH)]
    cells[middle] = "●"
    return "".join(cells)


def _wrapped(name: str, text: str) -> Iterator[str]:
    """One row of a name and a text; what does not fit goes on below."""
    import textwrap

    for at_line, line in enumerate(textwrap.wrap(text, WIDTH - 10)):
        yield f"{name if at_line == 0 else '':<10}{line}"


def _deadline(estimate: TransferEstimate, zone: tzinfo | None) -> Iterator[str]:
    asked, latest_s = estimate.question, estimate.latest_start_s
    if asked.deadline_s is None or latest_s is None or estimate.deadline_confidence is None:
        return
    when = time_text(at(asked.deadline_s, zone))
    sure = _sure(estimate.deadline_confidence)
    start = "now" if asked.start_s is None else f"at {time_text(at(asked.start_s, zone))}"
    yield f"{'deadline':<10}{when}: {sure} sure to be met if started {start}"
    latest = time_text(at(latest_s, zone)) if has_date(latest_s) else ""
    confidence = f"{100 * asked.confidence:.3g} %"
    if estimate.meets_deadline:
        yield f"{'':<10}start by {latest} to be {confidence} sure"
        return
    needed = span_words(estimate.sure_duration_s)
    if latest_s < asked.now_s:
        late = f"the latest start{f', {latest},' if latest else ''} is past"
        yield f"{'':<10}to be {confidence} sure, allow {needed}; {late}"
        return
    yield f"{'':<10}to be {confidence} sure, start by {latest}: allow {needed}"


def _sure(confidence: float) -> str:
    """`87 %`, `less than 1 %`, `more than 99 %`."""
    if confidence <= 0.01:
        return "less than 1 %"
    return "more than 99 %" if confidence >= 0.99 else f"{100 * confidence:.0f} %"


def _reservation(estimate: TransferEstimate, zone: tzinfo | None) -> Iterator[str]:
    share = f"{100 * estimate.question.confidence:.3g} %"
    if (one := estimate.reservation) is None:
        late = "the copy needs more time than is left"
        if estimate.meets_deadline is not False:
            late = f"{span_words(estimate.sure_duration_s)} cannot be reserved"
        yield f"{'reserve':<10}none: for {share} confidence {late}"
        return
    exact = estimate.sure_duration_s < _SHORT_S
    start, end = (time_text(at(time_s, zone), exact) for time_s in (one.start_s, one.end_s))
    yield f"{'reserve':<10}{rate_human(one.rate_bps)} from {start}"
    yield f"{'':<10}to {end} ({span_words(estimate.sure_duration_s)}), for {share} confidence"
