"""Rules for RBUDP alone: what left the path idle between blasts, what lowered the rate.

The stated rate is a demand, not a discovery: nothing slows down by itself. So a run that falls
short either loses packets (at the receiving host or on the path), or leaves the path idle between
blasts (He et al. 2002, eq. 4), or its sender is late.
"""

from __future__ import annotations

import math

from farline.findings.figures import Figures
from farline.findings.finding import Finding, percent, rate_flag
from farline.findings.rbudp_figures import RbudpFigures
from farline.findings.rules.limits import limits_of
from farline.findings.rules.losses import explain_missing_rate, is_lossy, lost, lost_share
from farline.profiles.blasts import payload_for
from farline.spec.units import rate_human, size_human, size_text, time_human

PAYLOAD_MAX, IN_FLIGHT_MAX = 8 << 30, 64
"""The most that the spec allows."""

_MIB = 1 << 20


def rbudp_of(figures: Figures) -> RbudpFigures:
    """The figures that only RBUDP has; the rules here are asked for its runs alone."""
    assert figures.rbudp is not None
    return figures.rbudp


def stream_rate_bps(figures: Figures) -> float:
    """Stated rate of one stream; 0 is as fast as the host can."""
    return figures.asked_bps / figures.streams


def rtt_us(figures: Figures) -> float | None:
    """Round-trip time of the run, or what it was before the blasts began."""
    check = rbudp_of(figures).path_check
    known = (figures.mean_rtt_us, check["min_rtt_us"] if check else None, figures.min_rtt_us)
    return next((float(value) for value in known if value), None)


def lowered_rate(figures: Figures) -> Finding | None:
    """Losses above the bound that was set have lowered the rate."""
    bound, paced_bps = rbudp_of(figures).loss_bound, figures.pacing_bps
    stated_bps = stream_rate_bps(figures)
    if bound is None or paced_bps is None or not stated_bps:
        return None
    if paced_bps >= limits_of(figures).rate_lowered * stated_bps:
        return None
    line = (
        f"loss bound: more than {percent(bound)} of the packets were lost at the stated "
        f"{rate_human(stated_bps)} per stream, so it sent {rate_human(paced_bps)} on average"
    )
    return Finding("cwnd", line, remedies=(f"the rate that it settled at: {rate_flag(paced_bps)}",))


def idle_path(figures: Figures) -> Finding | None:
    """The path stands idle between passes, more than losses cost: a payload is too small."""
    rate_bps, rtt = stream_rate_bps(figures), rtt_us(figures)
    if not rate_bps or rtt is None:
        return None
    rbudp = rbudp_of(figures)
    total = rbudp.total_efficiency(rate_bps, rtt)
    window = rbudp.window_efficiency(rate_bps, rtt)
    idle = 1 - min(total, window)
    if idle <= 1 - limits_of(figures).efficient or idle < lost_share(figures):
        return None
    if not explain_missing_rate(figures, idle):
        return None
    return _short_payload(figures, rtt) if total <= window else _few_blasts(figures, rtt)


def _short_payload(figures: Figures, rtt: float) -> Finding:
    """All there was to send is little beside what the path holds."""
    rbudp, rate_bps = rbudp_of(figures), stream_rate_bps(figures)
    share = limits_of(figures).efficiency_wanted
    line = (
        f"payload: {size_human(rbudp.sent_bytes)} per stream at {rate_human(rate_bps)} over "
        f"{time_human(rtt)} allow {percent(rbudp.total_efficiency(rate_bps, rtt))} of the rate "
        "(He et al. 2002, eq. 4)"
    )
    wanted = payload_for(rate_bps, rtt / 1e6, share)
    more = (
        f"for {percent(share)} of the rate: {size_human(wanted)} per stream, "
        f"-n {_whole_mib(wanted * figures.streams)}"
    )
    return Finding("application", line, remedies=(more,))


def _few_blasts(figures: Figures, rtt: float) -> Finding:
    """The blasts in flight hold less than the path does: the sender waits for reports."""
    rbudp, rate_bps = rbudp_of(figures), stream_rate_bps(figures)
    allowed = percent(rbudp.window_efficiency(rate_bps, rtt))
    size = size_human(rbudp.payload_bytes)
    blasts = f"{rbudp.in_flight} blasts of {size}" if rbudp.in_flight > 1 else f"a blast of {size}"
    passes = f" and {rbudp.passes:.2g} passes each" if rbudp.passes > 1.05 else ""
    allow = "allow" if rbudp.in_flight > 1 else "allows"
    line = (
        f"payload: {blasts} in flight at {rate_human(rate_bps)} over {time_human(rtt)}{passes} "
        f"{allow} {allowed} of the rate (He et al. 2002, eq. 4)"
    )
    remedies = (*_larger_blasts(figures, rtt), *early(rbudp))
    return Finding("receive-window", line, remedies=remedies)


def _larger_blasts(figures: Figures, rtt: float) -> tuple[str, ...]:
    """A payload that gives nine tenths of the rate by itself, or enough blasts at once for all."""
    rbudp, rate_bps = rbudp_of(figures), stream_rate_bps(figures)
    wanted = limits_of(figures).efficiency_wanted
    payload = payload_for(rate_bps, rtt / 1e6, wanted / rbudp.in_flight) * rbudp.passes
    larger = f"for {percent(wanted)} of the rate: --payload {_whole_mib(payload)}"
    blasts = math.ceil(rbudp.in_flight / rbudp.window_efficiency(rate_bps, rtt))
    more = f"for all of it, more blasts at once: --in-flight {blasts}"
    return (
        *((larger,) if rbudp.payload_bytes < payload <= PAYLOAD_MAX else ()),
        *((more,) if rbudp.in_flight < blasts <= IN_FLIGHT_MAX else ()),
    )


def _whole_mib(size_bytes: float) -> str:
    return size_text(max(1, math.ceil(size_bytes / _MIB)) * _MIB)


def early(rbudp: RbudpFigures) -> tuple[str, ...]:
    """The remedy against passes that are waited for."""
    waits = not rbudp.early and rbudp.passes > 1
    return ("send missing packets again while a blast goes on: --early",) if waits else ()


def waiting_blasts(figures: Figures) -> Finding | None:
    """As many blasts as are allowed were always in flight, and the pacing held little back."""
    rbudp, limits = rbudp_of(figures), limits_of(figures)
    if rbudp.in_flight_mean is None or rbudp.paced_share is None:
        return None
    if rbudp.paced_share >= limits.pacing_seldom:
        return None
    if rbudp.in_flight_mean < limits.slots_full * rbudp.in_flight:
        return None
    line = (
        f"receive window: {rbudp.in_flight_mean:.2g} of {rbudp.in_flight} blasts were in flight "
        "on average, so new data waited until one was complete"
    )
    if is_lossy(figures):
        line += f"; {lost(figures)}"
    more = min(IN_FLIGHT_MAX, 2 * rbudp.in_flight)
    blasts = (f"more blasts at once: --in-flight {more}",) if more > rbudp.in_flight else ()
    return Finding("receive-window", line, remedies=(*blasts, *early(rbudp)))


def idle_between(figures: Figures) -> Finding | None:
    """For much of the time no blast was in flight at all, though the rate was not reached."""
    rbudp, limits = rbudp_of(figures), limits_of(figures)
    if figures.status != "complete" or rbudp.in_flight_mean is None or rbudp.paced_share is None:
        return None
    if rbudp.in_flight_mean >= limits.blast_in_flight or rbudp.paced_share >= limits.pacing_seldom:
        return None
    line = (
        f"application: no blast was in flight {percent(1 - rbudp.in_flight_mean)} of the time; the "
        "sender waited for the report on the last one, or had nothing to send"
    )
    more = ("start a blast before the last one is complete: --in-flight 2",)
    return Finding("application", line, remedies=more if rbudp.in_flight == 1 else ())
