"""Rules about the run as a whole: it failed, was too short, or reached the rate it was given."""

from __future__ import annotations

import re

from farline.findings.figures import Figures
from farline.findings.finding import Finding, percent
from farline.findings.rules.limits import limits_of
from farline.findings.rules.losses import is_lossy
from farline.spec.units import rate_human, time_human

_TOTAL = re.compile(r"the server allows (\d+) bit/s")
"""How a server's word names its limit over all streams."""


def failed(figures: Figures) -> Finding | None:
    """The run ended with an error."""
    if figures.status != "failed":
        return None
    return Finding("unknown", f"the run failed: {figures.error or 'no reason given'}")


def nothing_moved(figures: Figures) -> Finding | None:
    """No byte arrived."""
    if figures.throughput_bps > 0:
        return None
    return Finding("unknown", "no data arrived, so there is nothing to judge")


def harness(figures: Figures) -> Finding | None:
    """There was no network in the run."""
    if figures.transport != "null":
        return None
    limit = rate_human(figures.throughput_bps)
    line = f"harness: this run used no network; {limit} is the most that the harness allows"
    return Finding("harness", line, remedies=("a real transport: --transport tcp",))


def too_short(figures: Figures) -> Finding | None:
    """Over before anything could hold it back."""
    if figures.moved_s >= limits_of(figures).short_s:
        return None
    span = time_human(figures.moved_s * 1e6)
    line = f"too short to tell what limited it ({span} of data)"
    return Finding("unknown", line, remedies=("a longer run: -t 10",))


def rate(figures: Figures) -> Finding | None:
    """The requested rate was reached; datagrams that were lost on the way speak against it."""
    reached = figures.throughput_bps / figures.asked_bps if figures.asked_bps else 0.0
    lossy = figures.transport == "udp" and is_lossy(figures)
    if reached < limits_of(figures).rate_reached or lossy:
        return None
    if figures.rate_note and figures.asked_by == "-b":
        return _rate_of_server(figures)
    line = f"rate: {percent(reached)} of the requested {rate_human(figures.asked_bps)} reached"
    total = (f"requested rate: {rate_human(figures.asked_bps)} in total",)
    return Finding("rate", line, total, _higher_rate(figures))


def _higher_rate(figures: Figures) -> tuple[str, ...]:
    """A higher rate or none; for blasts only on a path that nobody else uses."""
    if figures.rbudp is None:
        return (f"a higher rate, or no limit: {figures.asked_by} 0",)
    if figures.rbudp.shared:
        return ()
    alone = f"a higher rate, if nobody else uses the path and it has room: {figures.asked_by}"
    return (alone,)


def _rate_of_server(figures: Figures) -> Finding:
    """The server holds the run to its limit: a higher rate would be refused.

    A record does not say whether a ticket was used, so both ways to a higher limit are named.
    """
    total = _TOTAL.search(figures.rate_note)
    limit_bps = float(total[1]) if total else figures.asked_bps
    line = f"rate: reached the server's limit of {rate_human(limit_bps)}"
    remedies = (
        "with a ticket: ask the server's operator for one with a higher limit: farline ticket"
        " make HOST --limit-rate RATE",
        "without a ticket: ask for a higher limit of the server: farline serve --anonymous-rate"
        " RATE",
    )
    return Finding("rate", line, (f"the server: {figures.rate_note}",), remedies)
