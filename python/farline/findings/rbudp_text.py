"""What every verdict about an RBUDP run says besides its rule: others on the path, known bounds."""

from __future__ import annotations

from collections.abc import Sequence

from farline.findings.figures import Figures
from farline.findings.finding import Finding, counted, percent, rate_flag
from farline.findings.rbudp_figures import RbudpFigures
from farline.findings.rules.blasts import rtt_us
from farline.findings.rules.limits import LIMITS
from farline.findings.rules.losses import lost_share
from farline.profiles.application_bound import Bound, newest_bound
from farline.profiles.blasts import Blasts, carried_share
from farline.spec._types import PathCheck
from farline.spec.units import rate_human, size_human, time_human

CARRIED = LIMITS["rbudp"].carried

MOSTLY_LOST = 0.5
"""Share of a train from which its loss by itself says that the rate is too much."""


def for_others(figures: Figures, found: Finding) -> Finding:
    """The finding, with what the rate does to others in front where the path is shared."""
    check = figures.rbudp.path_check if figures.rbudp else None
    if check is None or not check["shared"]:
        return found
    line = f"{shared_line(check)}; {found.line}"
    remedies = (*_give_way(figures, check), *found.remedies)
    return Finding(found.limit, line, found.evidence, tuple(dict.fromkeys(remedies)))


def shared_line(check: PathCheck) -> str:
    """What a blast at the stated rate does to others on a path that showed it is shared."""
    if _carries_less(check):
        return (
            f"shared path: it carried {rate_human(check['carried_bps'])} of the stated "
            f"{rate_human(check['rate_bps'])} before the blast, so none is left for others"
        )
    if check["lost_share"] >= MOSTLY_LOST:
        lost = percent(check["lost_share"])
        return f"shared path: {lost} of a short train at the stated rate was lost before the blast"
    waited_us = max(0, check["idle_rtt_us"] - check["min_rtt_us"])
    return (
        f"shared path: packets waited {time_human(waited_us)} in queues before the blast: "
        "others use it, and the blast displaces their traffic"
    )


def _carries_less(check: PathCheck) -> bool:
    share = carried_share(check)
    return share is not None and share < CARRIED


def _give_way(figures: Figures, check: PathCheck) -> tuple[str, ...]:
    gives = "a transport that shares the path with others: --transport udt"
    share = carried_share(check)
    if share is None or share >= CARRIED:
        return (gives,)
    most_bps = CARRIED * share * figures.asked_bps / figures.streams
    return (f"what the path carries: {rate_flag(most_bps)}", gives)


def check_line(check: PathCheck) -> str:
    """What was measured before the blasts, for people."""
    waited_us = max(0, check["idle_rtt_us"] - check["min_rtt_us"])
    queue = f", of which {time_human(waited_us)} in queues" if waited_us else ""
    round_trip = f"round-trip time {time_human(check['idle_rtt_us'])}{queue}"
    if carried_share(check) is None:
        return f"before the blast: {round_trip}; no train at the stated rate was measured"
    return (
        f"before the blast the path carried {rate_human(check['carried_bps'])} of the stated "
        f"{rate_human(check['rate_bps'])}, {percent(check['lost_share'])} lost; {round_trip}"
    )


def blasts_line(blasts: Blasts) -> str:
    """How many blasts became whole, of what payload, after how many passes."""
    size = size_human(blasts.payload_bytes)
    count = "1 blast of" if blasts.whole == 1 else f"{blasts.whole} blasts of up to"
    passes = "1 pass each"
    if blasts.passes_most > 1:
        passes = f"{blasts.passes_mean:.3g} passes on average, at most {blasts.passes_most}"
    return f"{count} {size}, {passes}"


def bound_text(figures: Figures, bounds: Sequence[Bound]) -> tuple[str, bool]:
    """What is known of the application bound, and whether the stated rate is above it."""
    bound = newest_bound(bounds, figures.direction) if figures.rbudp else None
    if bound is None:
        return "", False
    least = "at least " if bound.only_as_asked else ""
    streams = (
        f" with {counted(bound.streams, 'stream')}" if bound.streams != figures.streams else ""
    )
    line = (
        f"the application bound measured here on {bound.started_at[:10]}{streams} was "
        f"{least}{rate_human(bound.application_bps)}"
    )
    above = figures.asked_bps > bound.application_bps and not bound.only_as_asked
    return f"{line}, and the stated rate is above it" if above else line, above


def evidence(figures: Figures) -> list[str]:
    """What every verdict about an RBUDP run rests on besides the common figures."""
    rbudp = figures.rbudp
    if rbudp is None:
        return []
    lines = []
    if rbudp.blasts is not None:
        lines.append(blasts_line(rbudp.blasts))
    if rbudp.paced_share is not None:
        paced = percent(rbudp.paced_share)
        lines.append(f"senders waited for their pacing {paced} of the time{_in_flight(rbudp)}")
    again = percent(figures.retransmits / figures.sent_packets) if figures.sent_packets else "0 %"
    lines.append(
        f"{figures.sent_packets} packets sent, {figures.retransmits} of them retransmissions "
        f"({again}); {percent(lost_share(figures))} missing after the first pass"
    )
    if rbudp.path_check is not None:
        lines.append(check_line(rbudp.path_check))
    rate_bps, rtt = figures.asked_bps / figures.streams, rtt_us(figures)
    if rate_bps and rtt is not None:
        lines.append(
            f"the blasts in flight allow {percent(rbudp.window_efficiency(rate_bps, rtt))} of the"
            f" rate, and the total of {size_human(rbudp.sent_bytes)} per stream"
            f" {percent(rbudp.total_efficiency(rate_bps, rtt))} (He et al. 2002, eq. 4)"
        )
    return lines


def _in_flight(rbudp: RbudpFigures) -> str:
    if rbudp.in_flight_mean is None:
        return ""
    return f"; {rbudp.in_flight_mean:.2g} of {rbudp.in_flight} blasts were in flight on average"
